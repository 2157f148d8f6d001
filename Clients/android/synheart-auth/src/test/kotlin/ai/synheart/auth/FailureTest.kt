package ai.synheart.auth

import ai.synheart.auth.SynheartAuthException.*
import ai.synheart.auth.android.AndroidProof
import ai.synheart.standins.KeystoreDaemon
import com.google.android.play.core.integrity.model.IntegrityErrorCode
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.async
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.launch
import org.junit.Assert.assertEquals
import org.junit.Assert.assertNotEquals
import org.junit.Assert.assertNull
import org.junit.Assert.assertSame
import org.junit.Assert.assertTrue
import org.junit.Test

/** Every row of the failure tables of the registration page and the errors page, against the real service. */
class FailureTest {
    // The following tests check the failure table of the registration page.

    @Test
    fun `challenge 5xx or no network is a network error with back-off`() = World.run {
        answer(World.CHALLENGE, refusal(503, "SERVICE_UNAVAILABLE"))
        loseRequest(World.CHALLENGE)
        assertEquals(Registration.Status.REGISTERED, register().status)
        assertEquals(2, phone.sleeper.pauses.size)
        assertTrue(phone.sleeper.pauses[0] in 1.seconds..1.5.seconds)
        assertTrue(phone.sleeper.pauses[1] in 2.seconds..2.5.seconds)
    }

    @Test
    fun `five attempts without the service are enough`() = World.run {
        loseRequest(World.CHALLENGE, 5)
        expect<NetworkError>(Recovery.RETRY) { register() }
        assertEquals(4, phone.sleeper.pauses.size)
        assertEquals(IdentityState.UNREGISTERED, client.state(appId))
        register()
        assertEquals(1, liveDevices().size)
    }

    @Test
    fun `Retry-After replaces the computed delay`() = World.run {
        answer(World.CHALLENGE, refusal(503, "SERVICE_UNAVAILABLE", "Retry-After" to "17"))
        register()
        assertEquals(listOf(17.seconds), phone.sleeper.pauses.toList())
    }

    @Test
    fun `an expired challenge is fetched again`() = World.run {
        answer(World.REGISTER, refusal(400, "CHALLENGE_EXPIRED"))
        register()
        assertEquals(2, count(World.CHALLENGE))
        assertEquals(1, liveDevices().size)
    }

    @Test
    fun `a challenge whose life passes on the way is not sent`() = World.run {
        var isLate = true
        val google = phone.configuration().attestation
        val client = SynheartAuth(phone.configuration(attestation = { subject ->
            if (isLate) phone.clock.elapsedOffset += 91_000
            isLate = false
            google.attest(subject)
        }))
        client.registerDevice(appId)
        assertEquals(2, count(World.CHALLENGE))
        assertEquals(1, count(World.REGISTER))
    }

    @Test
    fun `a device that cannot attest does not register`() = World.run {
        phone.device.play.failAlways(IntegrityErrorCode.PLAY_STORE_NOT_FOUND)
        expect<AttestationUnavailable>(Recovery.NONE) { register() }
        assertEquals(1, count(World.CHALLENGE))
        assertEquals(IdentityState.UNREGISTERED, client.state(appId))
    }

    @Test
    fun `a refused attestation is tried once more, then reported`() = World.run {
        phone.device.play.failAlways(IntegrityErrorCode.APP_UID_MISMATCH)
        expect<AttestationFailed>(Recovery.NONE) { register() }
        assertEquals(2, phone.device.play.requests.get())
        assertEquals(2, count(World.CHALLENGE))
        assertEquals(0, count(World.REGISTER))
        phone.device.play.failAlways(0)
        register()
    }

    @Test
    fun `an attestation provider that is unavailable is asked again for the same challenge`() = World.run {
        phone.device.play.failRequests(IntegrityErrorCode.NETWORK_ERROR, IntegrityErrorCode.TOO_MANY_REQUESTS)
        register()
        assertEquals(1, count(World.CHALLENGE))
        assertEquals(listOf(5, 10), phone.sleeper.pauses.map { it.inWholeSeconds.toInt() })
    }

    @Test
    fun `an attestation provider that stays unavailable is reported, and may be asked later`() = World.run {
        phone.device.play.failAlways(IntegrityErrorCode.NETWORK_ERROR)
        expect<AttestationFailed>(Recovery.RETRY) { register() }
        assertEquals(listOf(5, 10, 20), phone.sleeper.pauses.map { it.inWholeSeconds.toInt() })
        phone.device.play.failAlways(0)
        register()
        assertEquals(1, liveDevices().size)
    }

    @Test
    fun `an attestation provider that never answers is left after its limit`() = World.run {
        phone.device.play.failRequests(ai.synheart.standins.PlayStandIn.neverAnswers())
        phone.sleeper.onDeadline = { kotlinx.coroutines.delay(300) }
        expect<AttestationFailed>(Recovery.RETRY) { register() }
        assertEquals(IdentityState.UNREGISTERED, client.state(appId))
    }

    @Test
    fun `an unknown challenge restarts the registration`() = World.run {
        answer(World.REGISTER, refusal(400, "INVALID_CHALLENGE"))
        register()
        assertEquals(2, count(World.CHALLENGE))
    }

    @Test
    fun `a proof that the service refuses is reported as ATTESTATION_FAILED`() = World.run {
        phone.google.deviceLabels = "MEETS_BASIC_INTEGRITY"
        expect<AttestationFailed>(Recovery.NONE) { register() }
        assertEquals(1, count(World.REGISTER))
        assertEquals(IdentityState.UNREGISTERED, client.state(appId))
    }

    @Test
    fun `register 5xx or a lost answer is repeated with a fresh challenge and the same key`() = World.run {
        answer(World.REGISTER, refusal(500, "INTERNAL_ERROR"))
        loseAnswer(World.REGISTER)
        register()
        assertEquals(3, count(World.CHALLENGE))
        assertEquals(1, liveDevices().size)
        assertEquals(1, phone.keys(appId).size)
    }

    @Test
    fun `a registered device registers without network`() = World.run {
        val deviceId = register().deviceId
        requests.clear()
        assertEquals(Registration(Registration.Status.ALREADY_REGISTERED, deviceId), register())
        assertTrue(requests.isEmpty())
    }

    @Test
    fun `callers that register at once share one registration`() = World.run {
        coroutineScope {
            val results = List(8) { async { register() } }.map { it.await() }
            assertEquals(1, results.map { it.deviceId }.toSet().size)
        }
        assertEquals(1, count(World.REGISTER))
    }

    @Test
    fun `a caller that does not wait learns that a registration is in progress`() = World.run {
        coroutineScope {
            at(World.CHALLENGE) { send ->
                expect<RegistrationInProgress>(Recovery.RETRY) { client.registerDevice(appId, joins = false) }
                send()
            }
            register()
        }
    }

    @Test
    fun `a device that the service holds is pending until an operator decides`() = World.run(edits = arrayOf("registration.approval" to "manual")) {
        val pending = register()
        assertEquals(Registration.Status.PENDING, pending.status)
        assertEquals(IdentityState.REGISTERING, client.state(appId))
        assertEquals(pending.deviceId, client.getDeviceId(appId))
        expect<NotRegistered>(Recovery.REGISTER) { client.signRequest(appId, "GET", "/") }
        assertEquals(DeviceStatus.Status.PENDING, client.status(appId).status)
        restart()
        assertEquals(Registration.Status.PENDING, register().status)
        assertEquals(1, count(World.REGISTER))
        service.device(appId, pending.deviceId, "approve")
        assertEquals(Registration(Registration.Status.REGISTERED, pending.deviceId), register())
        expectWorking()
    }

    @Test
    fun `a device that an operator rejects is unregistered`() = World.run(edits = arrayOf("registration.approval" to "manual")) {
        service.device(appId, register().deviceId, "reject")
        expect<AttestationFailed>(Recovery.NONE) { register() }
        assertEquals(IdentityState.UNREGISTERED, client.state(appId))
    }

    @Test
    fun `a rejected device keeps its key until the app resets it`() =
        World.run(AndroidProof.KEY_ATTESTATION, edits = arrayOf("registration.approval" to "manual")) {
            service.device(appId, register().deviceId, "reject")
            expect<AttestationFailed>(Recovery.NONE) { register() }
            val rejected = record().journal
            // The key's attestation names a used challenge. With a new key, the phone would register again in spite of the rejection.
            restart()
            expect<AttestationFailed>(Recovery.RESET) { register() }
            expect<AttestationFailed>(Recovery.RESET) { register() }
            assertEquals(rejected, record().journal)
            assertEquals(1, service.devices(appId).size)
            client.resetDeviceIdentity(appId, ResetReason.USER_REQUESTED)
            assertEquals(Registration.Status.PENDING, register().status)
        }

    @Test
    fun `after a lost answer, key attestation needs one new key`() = World.run(AndroidProof.KEY_ATTESTATION) {
        loseAnswer(World.REGISTER)
        register()
        assertEquals(2, liveDevices().size)
        assertEquals(1, phone.keys(appId).size)
        expectWorking()
    }

    @Test
    fun `a registration key that became unusable after a lost answer is replaced`() = World.run {
        loseAnswer(World.REGISTER, 5)
        expect<NetworkError>(Recovery.RETRY) { register() }
        phone.keys(appId).forEach(phone.device.keystore::corrupt)
        expect<KeystoreError>(Recovery.RETRY) { register() }
        passTwoSeconds()
        assertEquals(Registration.Status.REGISTERED, register().status)
        expectWorking()
    }

    @Test
    fun `a pending device whose key became unusable registers again`() = World.run(edits = arrayOf("registration.approval" to "manual")) {
        val first = register()
        phone.keys(appId).forEach(phone.device.keystore::corrupt)
        expect<KeystoreError>(Recovery.RETRY) { register() }
        passTwoSeconds()
        val second = register()
        assertEquals(Registration.Status.PENDING, second.status)
        assertNotEquals(first.deviceId, second.deviceId)
        service.device(appId, second.deviceId, "approve")
        assertEquals(Registration(Registration.Status.REGISTERED, second.deviceId), register())
        expectWorking()
    }

    // The following tests check the failure table of the errors page.

    @Test
    fun `a lost key invalidates the identity, and the next registration starts afresh`() = World.run {
        val first = register().deviceId
        phone.keys(appId).forEach(phone.device.keystore::lose)
        expectLost { client.signRequest(appId, "GET", "/") }
        assertEquals(IdentityState.KEY_INVALID, client.state(appId))
        assertTrue(!client.isRegistered(appId))
        expect<KeyInvalidated>(Recovery.REGISTER) { client.signRequest(appId, "GET", "/") }
        assertNotEquals(first, register().deviceId)
        expectWorking()
    }

    @Test
    fun `a Keystore that is locked or busy loses no identity`() = World.run {
        val deviceId = register().deviceId
        for (code in listOf(KeystoreDaemon.LOCKED, KeystoreDaemon.SYSTEM_ERROR)) {
            phone.device.keystore.failEverything(code)
            val error = org.junit.Assert.assertThrows(SynheartAuthException::class.java) {
                kotlinx.coroutines.runBlocking { client.signRequest(appId, "GET", "/") }
            }
            assertTrue("$error", error is KeystoreError || error is StorageError || error is SigningFailed)
            phone.device.keystore.works()
            assertEquals(IdentityState.REGISTERED, client.state(appId))
        }
        restart()
        assertEquals(deviceId, register().deviceId)
        expectWorking()
    }

    @Test
    fun `a revoked device is told so, and registers again only after a reset`() = World.run {
        val deviceId = register().deviceId
        service.device(appId, deviceId, "revoke")
        expect<DeviceRevoked>(Recovery.RESET) { send() }
        assertEquals(IdentityState.REGISTERED, client.state(appId))
        client.resetDeviceIdentity(appId, ResetReason.SERVER_INSTRUCTED)
        assertNotEquals(deviceId, register().deviceId)
        expectWorking()
    }

    @Test
    fun `a wrong clock is learned and the request signed again`() = World.run {
        register()
        phone.clock.wallOffset = 3_600_000
        expectWorking()
        assertEquals(3, count(World.STATUS) + count(World.CHALLENGE))
        requests.clear()
        restart()
        expectWorking()
        assertEquals(1, requests.size)
    }

    @Test
    fun `a registration learns the clock before it signs`() = World.run {
        phone.clock.wallOffset = -7_200_000
        register()
        requests.clear()
        expectWorking()
        assertEquals(1, requests.size)
    }

    @Test
    fun `a clock that is off by more than a day has recovery CORRECT_CLOCK`() = World.run {
        register()
        phone.clock.wallOffset = 30L * 3_600_000
        expect<ClockSkew>(Recovery.CORRECT_CLOCK) { send() }
        expect<ClockSkew>(Recovery.CORRECT_CLOCK) { client.correctClockSkew(System.currentTimeMillis() / 1000.0) }
        phone.clock.wallOffset = 3_600_000
        client.correctClockSkew(System.currentTimeMillis() / 1000.0, appId)
        requests.clear()
        expectWorking()
        assertEquals(1, requests.size)
    }

    @Test
    fun `a replayed nonce is signed again once`() = World.run {
        register()
        answer(World.STATUS, refusal(409, "NONCE_REPLAY"))
        expectWorking()
        answer(World.STATUS, refusal(409, "NONCE_REPLAY"), refusal(409, "NONCE_REPLAY"))
        expect<NonceReplay>(Recovery.RETRY) { send() }
    }

    @Test
    fun `a refused rotation keeps the old key`() = World.run {
        register()
        answer(World.ROTATE, refusal(409, "ROTATION_FAILED"))
        expect<RotationFailed>(Recovery.RETRY) { client.rotateKey(appId) }
        expectWorking()
        assertNull(client.status(appId).keyRotatedAt)
    }

    @Test
    fun `a rotation that cannot reach the service is tried three times a minute apart, and signing goes on`() = World.run {
        register()
        loseRequest(World.ROTATE, 3)
        phone.sleeper.onRetry = { expectWorking() }
        expect<NetworkError>(Recovery.RETRY) { client.rotateKey(appId) }
        assertEquals(listOf(60.seconds, 120.seconds), phone.sleeper.pauses.toList())
        phone.sleeper.onRetry = {}
        // The next launch finishes the rotation with the same key.
        restart()
        client.maintain(appId)
        assertTrue(client.status(appId).keyRotatedAt != null)
        assertEquals(1, phone.keys(appId).size)
    }

    @Test
    fun `Google that is unavailable during a rotation is asked again after 5, 10 and 20 s, for the same challenge`() =
        World.run(edits = arrayOf("keys.reattest_on_rotation" to true)) {
            register()
            val before = count(World.CHALLENGE)
            phone.device.play.failRequests(IntegrityErrorCode.NETWORK_ERROR, IntegrityErrorCode.TOO_MANY_REQUESTS, IntegrityErrorCode.INTERNAL_ERROR)
            client.rotateKey(appId)
            assertEquals(listOf(5, 10, 20), phone.sleeper.pauses.map { it.inWholeSeconds.toInt() })
            assertEquals(1, count(World.CHALLENGE) - before)
            expectWorking()
            // After other error codes, the client does not ask Google again.
            for (code in listOf(IntegrityErrorCode.APP_UID_MISMATCH, IntegrityErrorCode.PLAY_STORE_VERSION_OUTDATED)) {
                val asked = phone.device.play.requests.get()
                phone.device.play.failAlways(code)
                assertTrue(runCatching { client.rotateKey(appId) }.isFailure)
                assertEquals(asked + 1, phone.device.play.requests.get())
            }
            phone.device.play.failAlways(IntegrityErrorCode.NETWORK_ERROR)
            val asked = phone.device.play.requests.get()
            expect<AttestationFailed>(Recovery.RETRY) { client.rotateKey(appId) }
            assertEquals(asked + 4, phone.device.play.requests.get())
            expectWorking()
            phone.device.play.failAlways(0)
            client.rotateKey(appId)
            expectWorking()
        }

    @Test
    fun `a rotation whose answer is lost is finished by the next call`() = World.run {
        register()
        loseAnswer(World.ROTATE, 3)
        expect<NetworkError>(Recovery.RETRY) { client.rotateKey(appId) }
        // The service would accept the old key for another minute. This scripted answer refuses it, so `send` finishes the rotation.
        answer(World.STATUS, refusal(401, "INVALID_SIGNATURE"))
        expectWorking()
        assertEquals(1, phone.keys(appId).size)
    }

    @Test
    fun `a key too old to rotate calls for a reset`() = World.run {
        register()
        answer(World.ROTATE, refusal(403, "KEY_EXPIRED"))
        expect<ServerError>(Recovery.RESET) { client.rotateKey(appId) }
        answer(World.STATUS, refusal(403, "KEY_EXPIRED"))
        expectWorking()
        assertEquals(2, count(World.ROTATE))
    }

    @Test
    fun `a request before the registration is refused locally`() = World.run {
        expect<NotRegistered>(Recovery.REGISTER) { client.signRequest(appId, "GET", "/") }
        expect<NotRegistered>(Recovery.REGISTER) { client.rotateKey(appId) }
        expect<NotRegistered>(Recovery.REGISTER) { client.deviceToken(appId) }
        assertTrue(requests.isEmpty())
    }

    @Test
    fun `a device that the service does not know is told so with its own error`() = World.run {
        register()
        answer(World.STATUS, refusal(401, "NOT_REGISTERED"))
        val error = expect<ServerError>(Recovery.RESET) { send() }
        assertEquals("NOT_REGISTERED", error.code)
        assertEquals(IdentityState.REGISTERED, client.state(appId))
    }

    @Test
    fun `an unconfigured client says so`() = World.run {
        expect<NotConfigured>(Recovery.CONFIGURE) { SynheartAuth.shared.isRegistered(appId) }
        expect<NotConfigured>(Recovery.CONFIGURE) { client.isRegistered("not an id") }
        for (url in listOf("http://example.com", "example.com", "https://", "https://a.example/x", "https://u@a.example", "ftp://a.example")) {
            expect<NotConfigured>(Recovery.CONFIGURE) { phone.configuration(baseUrl = url) }
        }
    }

    @Test
    fun `a record that cannot be read now is waited for`() = World.run {
        val deviceId = register().deviceId
        restart()
        phone.device.reboot()
        expect<StorageError>(Recovery.RETRY) { register() }
        phone.device.unlock()
        assertEquals(deviceId, register().deviceId)
        assertEquals(1, count(World.REGISTER))
    }

    @Test
    fun `an answer that is not the service's changes no state`() = World.run {
        register()
        answer(World.STATUS, HttpResponse(403, body = "<html>".toByteArray()))
        assertEquals(403, send().status)
        expectWorking()
        answer(World.TOKEN, HttpResponse(401, body = "{}".toByteArray()))
        expect<NetworkError>(Recovery.RETRY) { client.deviceToken(appId) }
        expectWorking()
    }

    @Test
    fun `any other code of the service is passed on`() = World.run {
        register()
        answer(World.TOKEN, refusal(403, "SOME_FUTURE_CODE"))
        assertEquals("SOME_FUTURE_CODE", expect<ServerError>(Recovery.NONE) { client.deviceToken(appId) }.code)
    }

    @Test
    fun `each code has a class, and fromCode finds it`() {
        for (code in OwnCode.entries) {
            val error = SynheartAuthException.fromCode(code.name, "m")
            assertEquals(code.name, error.code)
            assertEquals(code.recovery, error.recovery)
            // KEY_INVALIDATED -> KeyInvalidated
            val name = code.name.split("_").joinToString("") { it.lowercase().replaceFirstChar(Char::uppercase) }
            assertEquals(name, error.javaClass.simpleName)
        }
        assertSame(ServerError::class.java, SynheartAuthException.fromCode("RATE_LIMITED").javaClass)
        assertEquals("UNKNOWN", SynheartAuthException.fromCode("a b").code)
    }

    @Test
    fun `a service that demands a rotation gets it`() = World.run {
        val deviceId = register().deviceId
        service.device(appId, deviceId, "force-rotation", mapOf("within_seconds" to 3600, "reason" to "compromise"))
        assertTrue(client.status(appId).mustRotate)
        client.maintain(appId)
        val status = client.status(appId)
        assertTrue(!status.mustRotate && status.keyRotatedAt != null)
        expectWorking()
    }

    @Test
    fun `a demand that arrives after the rotation is about the replaced key, and nothing is due`() = World.run {
        val deviceId = register().deviceId
        for (request in listOf<suspend () -> Any?>({ client.status(appId) }, { send() })) {
            service.device(appId, deviceId, "force-rotation", mapOf("within_seconds" to 3600, "reason" to "compromise"))
            at(World.STATUS) { send -> send().also { client.rotateKey(appId, RotationReason.COMPROMISE) } }
            request()
            assertNull(record().rotationDemand)
        }
    }

    @Test
    fun `a rotation for compromise does not join a scheduled one, whose caller joins it`() = World.run {
        register()
        coroutineScope {
            loseRequest(World.ROTATE)
            val bodies = java.util.concurrent.CopyOnWriteArrayList<String>()
            val inner = phone.network
            phone.network = { request, send ->
                if (request.isTo(World.ROTATE)) bodies.add(String(request.body))
                inner(request, send)
            }
            phone.sleeper.onRetry = { duration ->
                if (bodies.size == 1) launch { client.rotateKey(appId, RotationReason.COMPROMISE) }
                kotlinx.coroutines.delay(duration)
            }
            client.rotateKey(appId)
            assertTrue("$bodies", bodies.drop(1).all { "compromise" in it } && bodies.size >= 2)
        }
        expectWorking()
    }
}
