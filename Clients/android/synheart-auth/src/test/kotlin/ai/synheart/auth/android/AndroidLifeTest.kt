package ai.synheart.auth.android

import ai.synheart.auth.Configuration
import ai.synheart.auth.HttpRequest
import ai.synheart.auth.IdentityState
import ai.synheart.auth.Recovery
import ai.synheart.auth.Registration
import ai.synheart.auth.ResetReason
import ai.synheart.auth.RotationReason
import ai.synheart.auth.RunningService
import ai.synheart.auth.SynheartAuth
import ai.synheart.auth.SynheartAuthException
import ai.synheart.auth.TestPhone
import ai.synheart.auth.plain
import ai.synheart.standins.GoogleStandIn
import ai.synheart.standins.KeystoreDaemon
import ai.synheart.standins.KeystoreDaemon.Call
import ai.synheart.standins.PlayStandIn
import android.util.Log
import com.google.android.play.core.integrity.model.IntegrityErrorCode
import com.google.android.play.core.integrity.model.StandardIntegrityErrorCode
import java.io.File
import java.util.concurrent.CountDownLatch
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.awaitCancellation
import kotlinx.coroutines.delay
import kotlinx.coroutines.runBlocking
import org.junit.Assert.assertEquals
import org.junit.Assert.assertFalse
import org.junit.Assert.assertNotEquals
import org.junit.Assert.assertThrows
import org.junit.Assert.assertTrue
import org.junit.Test

/** The client with Android's own key store, storage and attestation, against the real service, on a failing phone. */
class AndroidLifeTest {
    private class Life(val phone: TestPhone, val appId: String, val android: AndroidConfiguration) {
        /** A client with Android's own key store, storage and attestation. Its pauses pass at once. */
        fun client(): SynheartAuth {
            val real = android.with(phone.device.context(), phone.sleeper) {}
            return SynheartAuth(
                Configuration(
                    real.baseUrl, real.keyStore, real.storage, real.attestation, phone.clock, sleeper = phone.sleeper,
                    logger = real.logger, rotatesAutomatically = false,
                ),
            )
        }

        val deviceIds: List<String> get() = phone.service.devices(appId).map { it.string("device_id") }

        fun passTwoSeconds() {
            phone.clock.elapsedOffset += 2_000
        }

        fun signs(client: SynheartAuth = client()): Boolean = runBlocking {
            client.send(appId, HttpRequest("GET", "${phone.service.publicUrl}/auth/v1/device/status")).status == 200
        }
    }

    private fun life(
        policy: AndroidProof = AndroidProof.EITHER, proof: AndroidProof = AndroidProof.EITHER, vararg edits: Pair<String, Any?>,
        body: suspend Life.() -> Unit,
    ) = TestPhone(policy).use { phone ->
        val appId = phone.service.newApp(phone.record(*edits))
        runBlocking { Life(phone, appId, AndroidConfiguration(phone.service.publicUrl, proof = proof, usesStrongBox = true)).body() }
    }

    private inline fun <reified Failure : SynheartAuthException> expect(recovery: Recovery, crossinline body: suspend () -> Any?): Failure {
        val failure = assertThrows(Failure::class.java) { runBlocking { body() } }
        assertEquals(failure.toString(), recovery, failure.recovery)
        return failure
    }

    // Life

    @Test
    fun `one line creates a working client`() = life {
        val client = SynheartAuth.create(phone.device.context(), AndroidConfiguration(phone.service.publicUrl))
        val registration = client.registerDevice(appId)
        assertEquals(Registration.Status.REGISTERED, registration.status)
        assertTrue(signs(client))
        client.rotateKey(appId, RotationReason.COMPROMISE)
        assertTrue(signs(client))
        assertTrue(Log.lines.any { "SynheartAuth REGISTRATION_FINISHED app=$appId" in it })
        client.resetDeviceIdentity(appId, ResetReason.USER_REQUESTED)
        assertEquals(IdentityState.UNREGISTERED, client.state(appId))
        client.close()
    }

    @Test
    fun `the service sees a key of the StrongBox`() {
        // A chain raises the assurance only if there is a list of revoked keys.
        val list = File.createTempFile("revoked", ".json").apply {
            writeText("""{"entries":{}}""")
            deleteOnExit()
        }
        life(AndroidProof.BOTH, AndroidProof.BOTH, "android.key_attestation" to mapOf("status_list" to list.path)) {
            client().registerDevice(appId)
            val assurance = plain(phone.service.devices(appId).single().members["assurance"]) as Map<*, *>
            // The app record trusts a test authority in place of Google, which no production app can.
            assertEquals("test", assurance["app"])
            assertEquals("strongbox", assurance["key"])
        }
    }

    @Test
    fun `standard tokens are opened at Google`() = GoogleStandIn().use { google ->
        RunningService("SYNHEART_AUTH_PROVIDERS_GOOGLE_URL" to google.serve()).use { service ->
            TestPhone(AndroidProof.PLAY_INTEGRITY, service).use { phone ->
                phone.device.play.google = google
                val record = phone.record("android.play_integrity" to mapOf("service_account" to google.serviceAccount()))
                val appId = service.newApp(record)
                val android = AndroidConfiguration(service.publicUrl, cloudProjectNumber = 7, proof = AndroidProof.PLAY_INTEGRITY)
                val life = Life(phone, appId, android)
                runBlocking { life.client().registerDevice(appId) }
                assertTrue(life.signs())
                assertEquals(1, phone.device.play.warmUps.get())
            }
        }
    }

    @Test
    fun `a rotation proves itself again, with a new chain and a new token`() =
        life(AndroidProof.BOTH, AndroidProof.BOTH, "keys.reattest_on_rotation" to true) {
            val client = client()
            val deviceId = client.registerDevice(appId).deviceId
            assertEquals(deviceId, client.rotateKey(appId).deviceId)
            assertTrue(signs(client))
            assertEquals(2, phone.device.play.requests.get())
        }

    // The hardware of phones, and the policies that accept it

    private enum class Hardware(val proofs: Set<String>, val prepare: TestPhone.() -> Unit) {
        COMPLETE(setOf("token", "chain"), {}),
        WITHOUT_PLAY(setOf("chain"), { device.play.failAlways(IntegrityErrorCode.PLAY_STORE_NOT_FOUND) }),
        GOOGLE_BLOCKED(setOf("chain"), { device.play.failAlways(IntegrityErrorCode.NETWORK_ERROR) }),
        WITHOUT_ATTESTATION(setOf("token"), { device.keystore.attestation = KeystoreDaemon.Attestation.NONE }),
        ATTESTATION_REFUSED(setOf("token"), { device.keystore.attestation = KeystoreDaemon.Attestation.REFUSED }),
        SOFTWARE_KEYS(setOf("token"), { device.keystore.attestation = KeystoreDaemon.Attestation.SOFTWARE }),
        NEITHER(emptySet(), {
            device.keystore.attestation = KeystoreDaemon.Attestation.NONE
            device.play.failAlways(IntegrityErrorCode.PLAY_STORE_NOT_FOUND)
        }),
    }

    private fun registers(policy: AndroidProof, proofs: Set<String>): Boolean = when (policy) {
        AndroidProof.PLAY_INTEGRITY -> "token" in proofs
        AndroidProof.KEY_ATTESTATION -> "chain" in proofs
        AndroidProof.BOTH -> proofs.size == 2
        AndroidProof.EITHER -> proofs.isNotEmpty()
    }

    @Test
    fun `each device registers exactly under the policies that its proofs meet`() {
        for (policy in AndroidProof.entries) {
            for (hardware in Hardware.entries) {
                for (proof in setOf(policy, AndroidProof.EITHER)) {
                    life(policy, proof) {
                        hardware.prepare(phone)
                        val outcome = runCatching { client().registerDevice(appId) }
                        val what = "$policy, $hardware, sends $proof: ${outcome.exceptionOrNull()}"
                        assertEquals(what, registers(policy, hardware.proofs), outcome.isSuccess)
                        if (outcome.isSuccess) {
                            assertTrue(what, signs())
                        } else {
                            assertEquals(what, 0, deviceIds.size)
                            // The state is not final: once the phone can attest, it registers.
                            phone.device.keystore.attestation = KeystoreDaemon.Attestation.HARDWARE
                            phone.device.play.failAlways(0)
                            client().registerDevice(appId)
                            assertTrue(what, signs())
                        }
                    }
                }
            }
        }
    }

    // Failures of a phone with an identity

    @Test
    fun `before the first unlock nothing works and nothing is lost`() = life {
        val client = client()
        val deviceId = client.registerDevice(appId).deviceId
        phone.device.reboot()
        phone.restart()
        val restarted = client()
        for (call in listOf<suspend () -> Any?>(
            { restarted.isRegistered(appId) }, { restarted.registerDevice(appId) }, { restarted.getDeviceId(appId) },
            { restarted.signRequest(appId, "GET", "/") }, { restarted.rotateKey(appId) },
        )) {
            expect<SynheartAuthException.StorageError>(Recovery.RETRY) { call() }
        }
        phone.device.unlock()
        assertTrue(restarted.isRegistered(appId))
        assertEquals(Registration.Status.ALREADY_REGISTERED, restarted.registerDevice(appId).status)
        assertEquals(listOf(deviceId), deviceIds)
        assertTrue(signs(restarted))
    }

    @Test
    fun `a Keystore that fails ends no identity`() = life {
        val deviceId = client().registerDevice(appId).deviceId
        for (call in Call.entries) {
            for (code in listOf(
                KeystoreDaemon.SYSTEM_ERROR, KeystoreDaemon.LOCKED, KeystoreDaemon.SECURE_HW_BUSY, KeystoreDaemon.UNKNOWN_ERROR,
                KeystoreDaemon.TOO_MANY_OPERATIONS, KeystoreDaemon.INVALID_KEY_BLOB, KeystoreDaemon.VALUE_CORRUPTED,
            )) {
                phone.device.keystore.failAlways(call, code)
                val client = client()
                for (use in listOf<suspend () -> Any?>(
                    { client.signRequest(appId, "GET", "/") }, { client.isRegistered(appId) }, { client.registerDevice(appId) },
                )) {
                    try {
                        use()
                    } catch (error: SynheartAuthException) {
                        assertTrue("$call $code: $error", error is SynheartAuthException.KeystoreError || error is SynheartAuthException.StorageError)
                        assertEquals("$call $code: $error", Recovery.RETRY, error.recovery)
                    }
                }
                phone.device.keystore.works()
                assertEquals(Registration.Status.ALREADY_REGISTERED, client.registerDevice(appId).status)
                assertTrue("$call $code", signs(client))
            }
        }
        assertEquals(listOf(deviceId), deviceIds)
    }

    @Test
    fun `a Keystore that fails for one call of a registration leaves one device`() {
        for (call in listOf(Call.GET, Call.GENERATE, Call.SIGN_START, Call.SIGN_FINISH, Call.CIPHER_START, Call.CIPHER_FINISH, Call.DELETE)) {
            for (before in listOf(0, 1, 4)) {
                life {
                    repeat(before) { phone.device.keystore.failNext(call, 0) }
                    phone.device.keystore.failNext(call, KeystoreDaemon.SYSTEM_ERROR)
                    runCatching { client().registerDevice(appId) }
                    phone.device.keystore.works()
                    assertFalse("$call $before", client().registerDevice(appId).deviceId.isEmpty())
                    assertTrue("$call $before", signs())
                    // The service has one device, because no answer was lost. If a policy requires a certificate chain, a lost answer can
                    // leave a second device.
                    assertEquals("$call $before", 1, deviceIds.size)
                }
            }
        }
    }

    @Test
    fun `a Keystore that fails during a rotation leaves a device that signs`() {
        for (call in listOf(Call.GET, Call.GENERATE, Call.SIGN_START, Call.SIGN_FINISH, Call.CIPHER_START, Call.CIPHER_FINISH, Call.DELETE)) {
            for (before in listOf(0, 1, 3)) {
                life {
                    val deviceId = client().registerDevice(appId).deviceId
                    repeat(before) { phone.device.keystore.failNext(call, 0) }
                    phone.device.keystore.failNext(call, KeystoreDaemon.SYSTEM_ERROR)
                    runCatching { client().rotateKey(appId) }
                    phone.device.keystore.works()
                    val client = client()
                    assertTrue("$call $before", signs(client))
                    client.rotateKey(appId)
                    assertTrue("$call $before", signs(client))
                    assertEquals("$call $before", listOf(deviceId), deviceIds)
                }
            }
        }
    }

    @Test
    fun `a key that the system invalidated leads to a new registration`() = life {
        val client = client()
        val deviceId = client.registerDevice(appId).deviceId
        phone.device.keystore.failAlways(Call.SIGN_START, KeystoreDaemon.KEY_PERMANENTLY_INVALIDATED)
        expect<SynheartAuthException.KeyInvalidated>(Recovery.REGISTER) { client.signRequest(appId, "GET", "/") }
        assertEquals(IdentityState.KEY_INVALID, client.state(appId))
        phone.device.keystore.works()
        assertNotEquals(deviceId, client.registerDevice(appId).deviceId)
        assertTrue(signs(client))
    }

    /** Events by which a phone permanently loses a key. */
    private val losses = listOf<(KeystoreDaemon, String) -> Unit>(
        KeystoreDaemon::lose, KeystoreDaemon::corrupt, { keystore, _ -> keystore.deleteEverything() },
    )

    @Test
    fun `a lost key leads to a new registration, in one process`() {
        for (loss in losses) life {
            val client = client()
            val deviceId = client.registerDevice(appId).deviceId
            loss(phone.device.keystore, "synheart_auth_$appId")
            val suspected = expect<SynheartAuthException.KeystoreError>(Recovery.RETRY) { client.signRequest(appId, "GET", "/") }
            assertEquals(2.seconds, suspected.retryAfter)
            assertTrue(client.isRegistered(appId))
            assertEquals(IdentityState.REGISTERED, client.state(appId))
            passTwoSeconds()
            expect<SynheartAuthException.KeyInvalidated>(Recovery.REGISTER) { client.signRequest(appId, "GET", "/") }
            assertNotEquals(deviceId, client.registerDevice(appId).deviceId)
            assertTrue(signs(client))
        }
    }

    /** An app's launch on a phone that has lost the key. */
    private fun Life.launch(client: SynheartAuth) = expect<SynheartAuthException.KeystoreError>(Recovery.RETRY) {
        client.registerDevice(appId)
        // A key that is found but unusable is noticed here.
        client.signRequest(appId, "GET", "/")
    }

    @Test
    fun `a lost key leads to a new registration at the second launch, without a reset`() {
        for (loss in losses) life {
            val deviceId = client().registerDevice(appId).deviceId
            loss(phone.device.keystore, "synheart_auth_$appId")
            phone.restart()
            launch(client())
            phone.restart()
            val second = client()
            second.state(appId)
            passTwoSeconds()
            second.registerDevice(appId)
            assertTrue(signs(second))
            assertNotEquals(deviceId, second.getDeviceId(appId))
        }
    }

    @Test
    fun `the Keystore's data on another phone are a new device once a canary made there worked`() = life {
        val deviceId = client().registerDevice(appId).deviceId
        // A manufacturer's transfer tool copies the app's records and the Keystore's blobs to a new phone. The new phone's
        // hardware refuses the blobs.
        phone.device.keystore.aliases().forEach(phone.device.keystore::corrupt)
        phone.restart()
        val client = client()
        launch(client)
        passTwoSeconds()
        // The canary (a test key) is a copy too, and fails as well.
        launch(client)
        assertTrue(signs(client))
        assertNotEquals(deviceId, client.getDeviceId(appId))
    }

    @Test
    fun `cleared app data, and a backup on another phone, are a new device`() = life {
        val deviceId = client().registerDevice(appId).deviceId
        phone.device.clearAppData()
        phone.restart()
        val client = client()
        assertEquals(IdentityState.UNREGISTERED, client.state(appId))
        assertNotEquals(deviceId, client.registerDevice(appId).deviceId)
    }

    @Test
    fun `Google that is unavailable for a moment is asked again`() = life(AndroidProof.PLAY_INTEGRITY, AndroidProof.PLAY_INTEGRITY) {
        phone.device.play.failRequests(
            IntegrityErrorCode.NETWORK_ERROR, IntegrityErrorCode.TOO_MANY_REQUESTS, IntegrityErrorCode.CLIENT_TRANSIENT_ERROR,
        )
        assertEquals(Registration.Status.REGISTERED, client().registerDevice(appId).status)
    }

    @Test
    fun `if Google stays unavailable, the error has recovery RETRY`() = life(AndroidProof.PLAY_INTEGRITY, AndroidProof.PLAY_INTEGRITY) {
        phone.device.play.failAlways(StandardIntegrityErrorCode.GOOGLE_SERVER_UNAVAILABLE)
        val client = client()
        expect<SynheartAuthException.AttestationFailed>(Recovery.RETRY) { client.registerDevice(appId) }
        phone.device.play.failAlways(0)
        client.registerDevice(appId)
    }

    @Test
    fun `if Google is blocked or silent, key attestation alone suffices to register and rotate`() {
        for (fault in listOf(IntegrityErrorCode.GOOGLE_SERVER_UNAVAILABLE, PlayStandIn.neverAnswers())) {
            life(AndroidProof.EITHER, AndroidProof.EITHER, "keys.reattest_on_rotation" to true) {
                phone.device.play.failAlways(fault)
                // The deadline of 10 s for Google's answer passes at once. No other deadline passes.
                phone.sleeper.onDeadline = { limit -> if (limit != 10.seconds) awaitCancellation() }
                val client = client()
                val device = client.registerDevice(appId)
                assertEquals(Registration.Status.REGISTERED, device.status)
                assertEquals(device.deviceId, client.rotateKey(appId).deviceId)
                assertTrue(signs(client))
            }
        }
    }

    @Test
    fun `a wrong project number is a wrong configuration`() = life(AndroidProof.PLAY_INTEGRITY, AndroidProof.PLAY_INTEGRITY) {
        phone.device.play.failAlways(IntegrityErrorCode.CLOUD_PROJECT_NUMBER_IS_INVALID)
        expect<SynheartAuthException.NotConfigured>(Recovery.CONFIGURE) { client().registerDevice(appId) }
    }

    @Test
    fun `a Keystore that hangs costs one call, and the identity stays`() = life {
        val client = client()
        client.registerDevice(appId)
        val answer = CountDownLatch(1)
        phone.device.keystore.hold(Call.SIGN_START, answer)
        // Only the call that hangs reaches its deadline.
        val started = phone.device.keystore.count(Call.SIGN_START)
        phone.sleeper.onDeadline = { while (phone.device.keystore.count(Call.SIGN_START) == started) delay(2) }
        expect<SynheartAuthException.KeystoreError>(Recovery.RETRY) { client.signRequest(appId, "GET", "/") }
        phone.device.keystore.works()
        phone.sleeper.onDeadline = { awaitCancellation() }
        answer.countDown()
        assertTrue(signs())
    }

    @Test
    fun `three processes that register at once are one device`() = life(AndroidProof.KEY_ATTESTATION, AndroidProof.KEY_ATTESTATION) {
        val processes = List(3) { OtherProcess.start(phone.device.folder, "register", appId, phone.service.publicUrl) }
        val ids = processes.map { process -> process.inputStream.bufferedReader().use { it.readLine() } }
        assertEquals(deviceIds, ids.distinct())
        assertTrue(signs())
    }

    @Test
    fun `on a full disk the device signs, a change is a temporary error, and a reset works`() = life {
        client().registerDevice(appId)
        val process = OtherProcess.start(phone.device.folder, "live", appId, phone.service.publicUrl, withoutBlocks = true)
        assertEquals(
            listOf("signed", "ALREADY_REGISTERED", "STORAGE_ERROR RETRY", "kotlin.Unit", "UNREGISTERED", "STORAGE_ERROR RETRY"),
            process.inputStream.bufferedReader().use { it.readLines() },
        )
        assertEquals(listOf("deregistered"), phone.service.devices(appId).map { it.string("status") })
        assertEquals(emptyList<String>(), phone.keys(appId))
        client().registerDevice(appId)
        assertTrue(signs())
    }

    @Test
    fun `a full disk keeps the old record`() = life {
        val deviceId = client().registerDevice(appId).deviceId
        // The temporary file cannot be created.
        val folder = phone.device.credentialEncrypted().resolve("no_backup/ai.synheart.auth").toFile()
        val aside = folder.resolveSibling("aside")
        assertTrue(folder.renameTo(aside) && folder.createNewFile())
        expect<SynheartAuthException.StorageError>(Recovery.RETRY) { client().rotateKey(appId) }
        assertTrue(folder.delete() && aside.renameTo(folder))
        assertTrue(signs())
        assertEquals(listOf(deviceId), deviceIds)
    }
}
