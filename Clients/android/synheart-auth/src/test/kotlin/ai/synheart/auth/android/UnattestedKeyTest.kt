package ai.synheart.auth.android

import ai.synheart.auth.IdentityState
import ai.synheart.auth.Recovery
import ai.synheart.auth.Registration
import ai.synheart.auth.SynheartAuthException
import ai.synheart.auth.World
import ai.synheart.auth.expect
import ai.synheart.standins.KeystoreDaemon
import ai.synheart.standins.KeystoreDaemon.Call
import android.security.StandInKeyStoreExceptions.Provisioning
import com.google.android.play.core.integrity.model.IntegrityErrorCode
import org.junit.Assert.assertEquals
import org.junit.Test

/** A phone without Google Play. Its hardware cannot attest a key until it has fetched attestation keys over the network. */
class UnattestedKeyTest {
    private fun busyPhone(body: suspend World.() -> Unit) = World.run(AndroidProof.EITHER) {
        phone.device.play.failAlways(IntegrityErrorCode.PLAY_STORE_NOT_FOUND)
        phone.device.keystore.failAlways(Call.GENERATE, KeystoreDaemon.OUT_OF_KEYS, Provisioning.PENDING_CONNECTIVITY)
        body()
    }

    @Test
    fun `if the hardware can attest again during the retry, the client makes a new key and registers it`() = busyPhone {
        phone.sleeper.onRetry = { phone.device.keystore.works() }
        assertEquals(Registration.Status.REGISTERED, register().status)
        assertEquals(2, count(World.CHALLENGE))
        assertEquals(1, count(World.REGISTER))
        assertEquals(1, phone.keys(appId).size)
        expectWorking()
    }

    @Test
    fun `hardware that cannot attest now may attest later`() = busyPhone {
        expect<SynheartAuthException.AttestationFailed>(Recovery.RETRY) { register() }
        assertEquals(IdentityState.UNREGISTERED, client.state(appId))
        phone.device.keystore.works()
        assertEquals(Registration.Status.REGISTERED, register().status)
        expectWorking()
    }

    @Test
    fun `hardware that never attests ends in AttestationUnavailable without a retry`() = busyPhone {
        phone.device.keystore.works()
        phone.device.keystore.attestation = KeystoreDaemon.Attestation.REFUSED
        expect<SynheartAuthException.AttestationUnavailable>(Recovery.NONE) { register() }
        assertEquals(1, count(World.CHALLENGE))
    }
}
