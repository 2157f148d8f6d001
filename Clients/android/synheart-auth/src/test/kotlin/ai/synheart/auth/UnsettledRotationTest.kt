package ai.synheart.auth

import ai.synheart.auth.android.AndroidProof
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.async
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.delay
import org.junit.Assert.assertEquals
import org.junit.Assert.assertTrue
import org.junit.Test

/** A rotation that the service has committed, or may still commit, and that the client has not settled. */
class UnsettledRotationTest {
    private class Operation(val path: String, val run: suspend World.() -> Any?)

    private val operations = listOf(
        Operation(World.TOKEN) { client.deviceToken(appId) },
        Operation(World.STATUS) { client.status(appId) },
        Operation(World.STATUS) { assertEquals(200, send().status) },
    )

    @Test
    fun `a request of the old key finishes a rotation whose answer was lost, while its next attempt is paused`() {
        for (operation in operations) World.run {
            register()
            val pause = CompletableDeferred<Unit>()
            phone.sleeper.onRetry = { pause.await() }
            loseAnswer(World.ROTATE)
            coroutineScope {
                val rotation = async { client.rotateKey(appId) }
                while (phone.sleeper.pauses.isEmpty()) delay(2)
                // The service would accept the old key for a status request for another minute. This scripted answer refuses it at once.
                if (operation.path == World.STATUS) answer(World.STATUS, refusal(401, "INVALID_SIGNATURE"))
                operation.run(this@run)
                pause.complete(Unit)
                rotation.await()
            }
            assertEquals(2, count(World.ROTATE))
            expectWorking()
        }
    }

    @Test
    fun `a request of the old key that arrives after the rotation is signed again`() {
        for (operation in operations) World.run {
            register()
            // With this reason there is no overlap: the service refuses the old key at once.
            at(operation.path) { send ->
                client.rotateKey(appId, RotationReason.COMPROMISE)
                send()
            }
            val before = count(operation.path)
            operation.run(this)
            assertEquals(before + 2, count(operation.path))
        }
    }

    @Test
    fun `a key that is called too old after it was rotated is not rotated again`() = World.run {
        register()
        at(World.STATUS) {
            client.rotateKey(appId)
            refusal(403, "KEY_EXPIRED")
        }
        assertEquals(200, send().status)
        assertEquals(1, count(World.ROTATE))
    }

    @Test
    fun `a refused signature is repeated once, and only if the key changed`() {
        for (operation in operations) World.run {
            register()
            answer(operation.path, refusal(401, "INVALID_SIGNATURE"))
            expect<SynheartAuthException.ServerError>(Recovery.RESET) { operation.run(this) }
            assertEquals(1, count(operation.path))
            for (attempt in 1..2) at(operation.path) {
                client.rotateKey(appId)
                refusal(401, "INVALID_SIGNATURE")
            }
            expect<SynheartAuthException.ServerError>(Recovery.RESET) { operation.run(this) }
            assertEquals(3, count(operation.path))
            expectWorking()
        }
    }

    @Test
    fun `a reset after an unanswered rotation deregisters the device, under each scheme`() {
        for (scheme in SignatureScheme.entries) World.run {
            client = client(scheme)
            register()
            // The service has the new key, and no longer accepts the old one. The record names the old one.
            loseAnswer(World.ROTATE)
            loseRequest(World.STATUS, 2)
            expect<SynheartAuthException.NetworkError>(Recovery.RETRY) { client.rotateKey(appId, RotationReason.COMPROMISE) }
            client.resetDeviceIdentity(appId, ResetReason.USER_REQUESTED)
            assertEquals("$scheme", 0, liveDevices().size)
        }
    }

    @Test
    fun `a copy that was dated by a clock a year ahead blocks rotations for 15 minutes, not for a year`() {
        // The service refuses the first copy for its date, or three copies get lost.
        val failures = listOf<suspend World.() -> Unit>(
            { expect<SynheartAuthException.ClockSkew>(Recovery.CORRECT_CLOCK) { client.rotateKey(appId) } },
            {
                loseRequest(World.ROTATE, 3)
                expect<SynheartAuthException.NetworkError>(Recovery.RETRY) { client.rotateKey(appId) }
            },
        )
        for (fail in failures) World.run(AndroidProof.KEY_ATTESTATION, "keys.reattest_on_rotation" to true) {
            register()
            phone.clock.wallOffset = 365L * 86_400_000
            fail()
            phone.clock.wallOffset = 0
            val waiting = expect<SynheartAuthException.RotationFailed>(Recovery.RETRY) { client.rotateKey(appId) }
            assertTrue("$waiting", waiting.retryAfter!! in 800.seconds..901.seconds)
            expireCopies()
            client.rotateKey(appId)
            expectWorking()
        }
    }
}
