package ai.synheart.auth

import org.junit.Assert.assertEquals
import org.junit.Test

/** A rotation that the service has committed, or may still commit, and that the client has not settled. */
class UnsettledRotationTest {
    @Test
    fun `a reset after an unanswered rotation deregisters the device, under each scheme`() {
        for (scheme in SignatureScheme.entries) World.run {
            client = client(scheme)
            register()
            // The service has the new key, and accepts the old one no more. The record names the old one.
            loseAnswer(World.ROTATE)
            loseRequest(World.STATUS, 2)
            expect<SynheartAuthException.NetworkError>(Recovery.RETRY) { client.rotateKey(appId, RotationReason.COMPROMISE) }
            client.resetDeviceIdentity(appId, ResetReason.USER_REQUESTED)
            assertEquals("$scheme", 0, liveDevices().size)
        }
    }
}
