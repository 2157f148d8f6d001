package ai.synheart.auth

import ai.synheart.auth.SynheartAuthException.*
import ai.synheart.standins.KeystoreDaemon
import org.junit.Assert.assertEquals
import org.junit.Assert.assertFalse
import org.junit.Assert.assertNotEquals
import org.junit.Test

/** A key vanishes, or is found but cannot sign, as after a restore. It is the current key, or the new key of a rotation. */
class LostKeyTest {
    private val losses: List<(KeystoreDaemon, String) -> Unit> = listOf(KeystoreDaemon::lose, KeystoreDaemon::corrupt)

    private val World.nextKey: String get() = phone.keys(appId).single { it.endsWith("_next") }

    private fun eachLoss(body: suspend World.((String) -> Unit) -> Unit) =
        losses.forEach { loss -> World.run { body { alias -> loss(phone.device.keystore, alias) } } }

    @Test
    fun `each operation with a lost key calls for a registration, which makes a new key`() {
        val operations = listOf<suspend World.() -> Any?>(
            { client.deviceToken(appId) }, { client.status(appId) }, { client.rotateKey(appId) }, { client.signRequest(appId, "GET", "/") },
        )
        for (operation in operations) eachLoss { lose ->
            val first = register().deviceId
            phone.keys(appId).forEach(lose)
            expectLost { operation() }
            assertEquals(IdentityState.KEY_INVALID, client.state(appId))
            val second = register()
            assertEquals(Registration.Status.REGISTERED, second.status)
            assertNotEquals(first, second.deviceId)
            assertEquals(1, phone.keys(appId).size)
            expectWorking()
        }
    }

    @Test
    fun `the status of a pending device whose key is lost calls for a registration`() = World.run(edits = arrayOf("registration.approval" to "manual")) {
        val first = register()
        phone.keys(appId).forEach(phone.device.keystore::corrupt)
        expectLost { client.status(appId) }
        val second = register()
        assertEquals(Registration.Status.PENDING, second.status)
        assertNotEquals(first.deviceId, second.deviceId)
    }

    /** Tries a rotation that the service refuses. Afterwards the new key exists, and no copy of the request can take effect later. */
    private suspend fun World.rotateInVainForEvidence() {
        register()
        repeat(3) { answer(World.ROTATE, refusal(403, "ATTESTATION_REQUIRED")) }
        loseRequest(World.CHALLENGE, 3)
        expect<NetworkError>(Recovery.RETRY) { client.rotateKey(appId) }
    }

    /** Tries a rotation whose request is lost three times. The client must assume that the three copies may still arrive. */
    private suspend fun World.rotateInVain() {
        register()
        loseRequest(World.ROTATE, 3)
        expect<NetworkError>(Recovery.RETRY) { client.rotateKey(appId) }
    }

    @Test
    fun `a lost pending key is replaced if no copy of its rotation is open`() = eachLoss { lose ->
        rotateInVainForEvidence()
        lose(nextKey)
        suspectNextKey()
        client.rotateKey(appId)
        assertEquals(1, phone.keys(appId).size)
        expectWorking()
    }

    /**
     * Lets the client get the first answer that the pending key (the new key of the rotation) is lost. The client does not
     * believe it. Then two seconds pass.
     */
    private fun World.suspectNextKey() {
        expect<KeystoreError>(Recovery.RETRY) { client.rotateKey(appId) }
        passTwoSeconds()
    }

    @Test
    fun `a lost pending key is kept in the journal while a copy may take effect`() = eachLoss { lose ->
        rotateInVain()
        lose(nextKey)
        suspectNextKey()
        expect<RotationFailed>(Recovery.RETRY) { client.rotateKey(appId) }
        assertEquals(3, count(World.ROTATE))
        expectWorking()
        expireCopies()
        client.rotateKey(appId)
        assertEquals(1, phone.keys(appId).size)
        expectWorking()
    }

    @Test
    fun `a pending key that is lost after its copies expired calls for another rotation`() = eachLoss { lose ->
        rotateInVain()
        lose(nextKey)
        suspectNextKey()
        expireCopies()
        // The current key is intact, so the recovery is RETRY instead of REGISTER.
        expect<RotationFailed>(Recovery.RETRY) { client.rotateKey(appId) }
        client.rotateKey(appId)
        assertEquals(1, phone.keys(appId).size)
        expectWorking()
    }

    @Test
    fun `losing both keys while a copy may take effect asks for a registration, and logs no FOREIGN_KEY`() = eachLoss { lose ->
        rotateInVain()
        phone.keys(appId).forEach(lose)
        // One suspicion for each of the two keys.
        suspectNextKey()
        suspectNextKey()
        expect<KeyInvalidated>(Recovery.REGISTER) { client.rotateKey(appId) }
        assertEquals(IdentityState.KEY_INVALID, client.state(appId))
        assertFalse("${phone.log}", phone.log.any { "FOREIGN_KEY" in it })
        assertEquals(Registration.Status.REGISTERED, register().status)
        expectWorking()
    }

    @Test
    fun `losing the new key after the service took it keeps the old key, and logs no FOREIGN_KEY`() = eachLoss { lose ->
        register()
        loseAnswer(World.ROTATE, 3)
        // With this reason there is no overlap: the service refuses the old key at once.
        expect<NetworkError>(Recovery.RETRY) { client.rotateKey(appId, RotationReason.COMPROMISE) }
        lose(nextKey)
        suspectNextKey()
        // The service might refuse the old key by mistake, so only the app gives the key up.
        expect<RotationFailed>(Recovery.RESET) { client.rotateKey(appId) }
        assertEquals(IdentityState.REGISTERED, client.state(appId))
        assertFalse("${phone.log}", phone.log.any { "FOREIGN_KEY" in it })
        client.resetDeviceIdentity(appId, ResetReason.USER_REQUESTED)
        assertEquals(Registration.Status.REGISTERED, register().status)
        expectWorking()
    }
}
