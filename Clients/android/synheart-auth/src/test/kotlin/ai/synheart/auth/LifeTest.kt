package ai.synheart.auth

import ai.synheart.auth.android.AndroidProof
import ai.synheart.auth.wire.USER_AGENT
import java.util.concurrent.CopyOnWriteArrayList
import kotlinx.coroutines.runBlocking
import org.junit.Assert.assertEquals
import org.junit.Assert.assertFalse
import org.junit.Assert.assertNotEquals
import org.junit.Assert.assertNull
import org.junit.Assert.assertTrue
import org.junit.Test

/** The whole life of a device against the real service, on stand-ins for Android. */
class LifeTest {
    private fun life(proof: AndroidProof, vararg edits: Pair<String, Any?>) = TestPhone(proof).use { phone ->
        runBlocking {
            val appId = phone.service.newApp(phone.record(*edits))
            val client = phone.client()
            assertEquals(IdentityState.UNREGISTERED, client.state(appId))
            assertFalse(client.isRegistered(appId))
            val states = client.stateFlow(appId)

            val registration = client.registerDevice(appId)
            assertEquals(Registration.Status.REGISTERED, registration.status)
            assertEquals(registration.deviceId, client.getDeviceId(appId))
            assertTrue(client.isRegistered(appId))
            assertEquals(IdentityState.REGISTERED, states.value)
            assertEquals(Registration.Status.ALREADY_REGISTERED, client.registerDevice(appId).status)

            val first = client.status(appId)
            assertEquals(registration.deviceId, first.deviceId)
            assertEquals(DeviceStatus.Status.REGISTERED, first.status)
            assertNull(first.keyRotatedAt)

            for (scheme in SignatureScheme.entries) {
                val answer = SynheartAuth(phone.configuration(scheme = scheme))
                    .send(appId, HttpRequest("GET", "${phone.service.publicUrl}/auth/v1/device/status"))
                assertEquals(String(answer.body), 200, answer.status)
            }
            assertTrue(client.deviceToken(appId).token.count { it == '.' } == 2)

            val rotation = client.rotateKey(appId)
            assertEquals(registration.deviceId, rotation.deviceId)
            assertNotEquals(first.keyThumbprint, client.status(appId).keyThumbprint)
            client.rotateKey(appId, RotationReason.COMPROMISE)
            assertEquals(1, phone.keys(appId).size)

            // Another process of the app finds all state.
            phone.restart()
            val other = phone.client()
            assertEquals(Registration.Status.ALREADY_REGISTERED, other.registerDevice(appId).status)
            assertEquals(registration.deviceId, other.status(appId).deviceId)

            other.resetDeviceIdentity(appId, ResetReason.USER_REQUESTED)
            assertEquals(IdentityState.UNREGISTERED, other.state(appId))
            assertNull(other.getDeviceId(appId))
            assertEquals(0, phone.keys(appId).size)
            assertEquals(listOf("deregistered"), phone.service.devices(appId).map { it.string("status") })
            assertNotEquals(registration.deviceId, other.registerDevice(appId).deviceId)
        }
    }

    @Test
    fun `a device lives with Play Integrity`() = life(AndroidProof.PLAY_INTEGRITY)

    @Test
    fun `a device lives with Key Attestation`() = life(AndroidProof.KEY_ATTESTATION)

    @Test
    fun `a device lives with both proofs, and attests each rotation`() =
        life(AndroidProof.BOTH, "keys.reattest_on_rotation" to true, "keys.key_proof" to "required")

    @Test
    fun `the client names itself in its own requests, and changes nothing in those of the app`() = TestPhone().use { phone ->
        val agents = CopyOnWriteArrayList<List<String>>()
        phone.network = { request, send ->
            agents += request.headers.filter { it.first.equals("User-Agent", ignoreCase = true) }.map { it.second }
            send(request)
        }
        runBlocking {
            val appId = phone.service.newApp(phone.record())
            val client = phone.client()
            client.registerDevice(appId)
            client.status(appId)
            assertTrue(agents.size >= 3)
            assertTrue("$agents", agents.all { it == listOf(USER_AGENT) })
            assertTrue(USER_AGENT, Regex("synheart-auth/[0-9.]+ \\(kotlin\\)").matches(USER_AGENT))
            agents.clear()
            val url = "${phone.service.publicUrl}/auth/v1/device/status"
            client.send(appId, HttpRequest("GET", url))
            client.send(appId, HttpRequest("GET", url, listOf("User-Agent" to "app/2")))
            assertEquals(listOf(emptyList(), listOf("app/2")), agents)
        }
    }

    @Test
    fun `a device lives in development mode`() = TestPhone().use { phone ->
        runBlocking {
            val appId = phone.service.newApp(phone.record("build_channel" to "dev", "development_integrity_allowed" to true))
            val client = SynheartAuth(phone.configuration(attestation = DevelopmentAttestation))
            client.registerDevice(appId)
            assertEquals(DeviceStatus.Status.REGISTERED, client.status(appId).status)
            client.rotateKey(appId)
            client.resetDeviceIdentity(appId, ResetReason.USER_REQUESTED)
        }
    }
}
