package ai.synheart.auth

import ai.synheart.auth.android.AndroidProof
import kotlinx.coroutines.runBlocking
import org.junit.Assert.assertEquals
import org.junit.Assert.assertTrue
import org.junit.Test

/** An operator's wrong `server.public_origin` costs no device its identity. */
class WrongOriginTest {
    @Test
    fun `a service that was given another origin is an error of configuration, and nothing changes`() = runBlocking {
        for (configured in listOf("https://auht.example.com", "http://127.0.0.1:9", "https://127.0.0.2")) {
            RunningService("SYNHEART_AUTH_PUBLIC_ORIGIN" to configured).use { service ->
                TestPhone(AndroidProof.KEY_ATTESTATION, service).use { phone ->
                    val appId = service.newApp(phone.record())
                    val client = SynheartAuth(phone.configuration(scheme = SignatureScheme.TWO))
                    val id = client.registerDevice(appId).deviceId
                    val (state, keys) = client.state(appId) to phone.keys(appId)
                    val sent = mutableListOf<String>()
                    phone.network = { request, send -> send(request).also { sent += TestPhone.path(request) } }
                    val calls = listOf<suspend () -> Any>(
                        { client.deviceToken(appId) }, { client.rotateKey(appId) }, { client.status(appId) },
                        { client.send(appId, HttpRequest("GET", "${service.publicUrl}/auth/v1/device/status")) },
                    )
                    repeat(3) {
                        for (call in calls) {
                            val error = runCatching { call() }.exceptionOrNull() as SynheartAuthException
                            assertEquals("MISDIRECTED_REQUEST", error.code)
                            assertEquals(Recovery.NONE, error.recovery)
                            assertTrue("$error", service.publicUrl in error.message.orEmpty())
                        }
                    }
                    assertEquals("one request a call", 3 * calls.size, sent.size)
                    assertTrue("$sent", "/auth/v1/device/register" !in sent)
                    assertEquals(state, client.state(appId))
                    assertEquals(id, client.getDeviceId(appId))
                    // The key of the refused rotation also remains, for the next attempt.
                    assertTrue(phone.keys(appId).containsAll(keys))
                }
            }
        }
    }
}
