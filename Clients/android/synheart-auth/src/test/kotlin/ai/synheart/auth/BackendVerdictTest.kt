package ai.synheart.auth

import kotlinx.coroutines.runBlocking
import org.junit.Assert.assertEquals
import org.junit.Test

/** The service itself must confirm what a backend says about an identity, even if the backend repeats it. */
class BackendVerdictTest {
    private val origin = "https://api.example.com"

    /** A device with an interrupted rotation, whose backend answers each request with `INVALID_SIGNATURE`. */
    private fun afterInterruptedRotation(onRequest: World.(Int) -> Unit = {}, body: suspend World.(suspend () -> HttpResponse) -> Unit) = World.run {
        register()
        loseRequest(World.ROTATE, 3)
        expect<SynheartAuthException.NetworkError>(Recovery.RETRY) { client.rotateKey(appId) }
        var count = 0
        val network = phone.network
        phone.network = { request, send ->
            if (request.url.startsWith(origin)) {
                onRequest(count++)
                refusal(401, "INVALID_SIGNATURE")
            } else {
                network(request, send)
            }
        }
        val client = SynheartAuth(phone.configuration(origins = setOf(origin)))
        requests.clear()
        body { client.send(appId, HttpRequest("GET", "$origin/v1/x")) }
        assertEquals("requests to the backend", 2, count)
        assertEquals("rotations", 1, count(World.ROTATE))
    }

    @Test
    fun `a refusal that a backend repeats after a rotation is an error only if the service confirms it`() =
        afterInterruptedRotation { send ->
            assertEquals(401, send().status)
            assertEquals(1, count(World.STATUS))
            expectWorking()
        }

    @Test
    fun `a repeated verdict that the service confirms is an error`() =
        afterInterruptedRotation({ if (it == 1) service.device(appId, runBlocking { client.getDeviceId(appId) }!!, "revoke") }) { send ->
            // The client believes the service's answer, not the backend's.
            expect<SynheartAuthException.DeviceRevoked>(Recovery.RESET) { send() }
            assertEquals(1, count(World.STATUS))
        }
}
