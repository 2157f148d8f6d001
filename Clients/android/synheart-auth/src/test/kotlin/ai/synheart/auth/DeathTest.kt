package ai.synheart.auth

import ai.synheart.auth.android.AndroidProof
import kotlinx.coroutines.runBlocking
import org.junit.Assert.assertEquals
import org.junit.Assert.assertTrue
import org.junit.Test

/**
 * The process dies before each external call: each read and write of the record, each call of the Keystore and of the
 * attestation, each request. So it also dies after each of them. In every case, the next launch ends with one device that can
 * sign.
 */
class DeathTest {
    private class Case(val proof: AndroidProof, vararg val edits: Pair<String, Any?>, val maximumRows: Int = 1, val isFull: Boolean = false)

    private val integrity = Case(AndroidProof.PLAY_INTEGRITY)

    // A key's attestation names the challenge for which the key was made. So after a lost answer the client registers a
    // new key, and the service then has two rows.
    private val chain = Case(AndroidProof.KEY_ATTESTATION, maximumRows = 2)
    private val reattesting = Case(AndroidProof.BOTH, "keys.reattest_on_rotation" to true, maximumRows = 2)

    private fun dieEverywhere(case: Case, atLeast: Int, prepare: suspend (SynheartAuth, String) -> Unit, operation: suspend (SynheartAuth, String) -> Unit) {
        fun dieAt(point: Int) = TestPhone(case.proof).use { phone -> runBlocking { dieOnce(phone, case, point, prepare, operation) } }
        val points = dieAt(-1)
        for (point in 0 until points) dieAt(point)
        assertTrue("$points points", points >= atLeast)
    }

    /** Returns the number of points at which the operation can die. */
    private suspend fun dieOnce(
        phone: TestPhone, case: Case, point: Int, prepare: suspend (SynheartAuth, String) -> Unit,
        operation: suspend (SynheartAuth, String) -> Unit,
    ): Int {
        val appId = phone.service.newApp(phone.record(*case.edits))
        prepare(phone.client(), appId)
        phone.restart()
        val outside = Outside(dyingAt = point)
        try {
            val client = phone.client(outside)
            // The earlier process may have recorded a suspicion that the key is lost. Reading the state shows this process the
            // suspicion. From 2 s later on, another suspicious answer of the key store means that the key is lost.
            client.state(appId)
            phone.clock.elapsedOffset += 2_000
            phone.isFull = case.isFull
            operation(client, appId)
        } catch (_: Death) {
        }
        val what = "death after ${outside.calls}"
        assertEquals(what, point >= 0, outside.isDead)
        phone.isFull = false
        phone.restart()
        expectRecovery(phone, appId, case, what)
        return outside.calls.size
    }

    private suspend fun expectRecovery(phone: TestPhone, appId: String, case: Case, what: String) {
        try {
            val client = phone.client()
            client.state(appId)
            phone.clock.elapsedOffset += 2_000
            val registration = client.registerDevice(appId)
            finishRotation(phone, client, appId, what)
            assertEquals(what, 200, statusOf(phone, client, appId))
            assertEquals(what, 1, phone.keys(appId).size)
            assertEquals(what, IdentityState.REGISTERED, client.state(appId))
            val live = phone.service.devices(appId).filter { it.string("status") != "deregistered" }.map { it.string("device_id") }
            assertTrue("$what: $live", registration.deviceId in live && live.size <= case.maximumRows)
        } catch (error: SynheartAuthException) {
            throw AssertionError("$what: $error", error)
        }
    }

    private suspend fun statusOf(phone: TestPhone, client: SynheartAuth, appId: String) =
        client.send(appId, HttpRequest("GET", "${phone.service.publicUrl}/auth/v1/device/status")).status

    /**
     * Finishes a rotation that the death interrupted. If its new key must be attested again, the client cannot replace that
     * key while a copy of the rotation request may arrive: for 15 minutes. Signing continues meanwhile.
     */
    private suspend fun finishRotation(phone: TestPhone, client: SynheartAuth, appId: String, what: String) {
        val wait = try {
            return client.maintain(appId)
        } catch (error: SynheartAuthException.RotationFailed) {
            error.retryAfter?.inWholeSeconds ?: throw error
        }
        assertTrue("$what: $wait s", wait in 800..1000)
        assertEquals(what, 200, statusOf(phone, client, appId))
        phone.network = { request, send -> send(request).let { if (request.isTo("/status")) it.later(wait) else it } }
        client.maintain(appId)
        phone.network = { request, send -> send(request) }
    }

    private fun HttpResponse.later(seconds: Long): HttpResponse {
        val text = Regex("(\"server_timestamp\":)(\\d+)").replace(String(body)) { it.groupValues[1] + (it.groupValues[2].toLong() + seconds) }
        return HttpResponse(status, headers, text.toByteArray())
    }

    private val register: suspend (SynheartAuth, String) -> Unit = { client, appId -> client.registerDevice(appId) }
    private val rotate: suspend (SynheartAuth, String) -> Unit = { client, appId -> client.rotateKey(appId) }
    private val reset: suspend (SynheartAuth, String) -> Unit = { client, appId -> client.resetDeviceIdentity(appId, ResetReason.USER_REQUESTED) }
    private val nothing: suspend (SynheartAuth, String) -> Unit = { _, _ -> }

    @Test
    fun `a registration survives a death at each point`() = dieEverywhere(integrity, 10, nothing, register)

    @Test
    fun `a registration with a key attestation survives a death at each point`() = dieEverywhere(chain, 10, nothing, register)

    @Test
    fun `a rotation survives a death at each point`() = dieEverywhere(integrity, 10, register, rotate)

    @Test
    fun `a rotation that attests again survives a death at each point`() = dieEverywhere(reattesting, 15, register, rotate)

    @Test
    fun `a reset survives a death at each point`() = dieEverywhere(integrity, 7, register, reset)

    @Test
    fun `a reset on a full disk survives a death at each point`() = dieEverywhere(
        // On a full disk, a reset removes the record before it tells the service. A death in between leaves the device's old row there.
        Case(AndroidProof.PLAY_INTEGRITY, maximumRows = 2, isFull = true), 5, register, reset,
    )

    @Test
    fun `a new registration after a lost key survives a death at each point`() = dieEverywhere(
        // The service keeps the row of the lost key, so there can be two rows.
        Case(AndroidProof.PLAY_INTEGRITY, maximumRows = 2), 10,
        { client, appId ->
            client.registerDevice(appId)
            ai.synheart.standins.StandInDevice.current().keystore.let { store -> store.aliases().filter { appId in it }.forEach(store::lose) }
            try {
                client.signRequest(appId, "GET", "/")
            } catch (_: SynheartAuthException.KeystoreError) {
                // The key store's first suspicious answer fails this call. The key is not yet considered lost.
            }
        },
        register,
    )
}
