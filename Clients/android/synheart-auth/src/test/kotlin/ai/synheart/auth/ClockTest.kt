package ai.synheart.auth

import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.async
import kotlinx.coroutines.coroutineScope
import org.junit.Assert.assertEquals
import org.junit.Test

/** The device's clock, while requests are on their way. */
class ClockTest {
    private val origin = "https://api.example.com"
    private val path = "/v1/x"
    private val accepted = HttpResponse(200, emptyList(), ByteArray(0))

    private fun World.client() = SynheartAuth(phone.configuration(origins = setOf(origin)))

    @Test
    fun `a request that was signed before another one learned the clock is signed again`() = World.run {
        register()
        val client = client()
        coroutineScope {
            val arrived = CompletableDeferred<Unit>()
            val released = CompletableDeferred<Unit>()
            at(path) {
                arrived.complete(Unit)
                released.await()
                refusal(401, "CLOCK_SKEW")
            }
            answer(path, accepted)
            phone.clock.wallOffset = 3_600_000
            val slow = async { client.send(appId, HttpRequest("GET", origin + path)).status }
            arrived.await()
            assertEquals(200, client.send(appId, HttpRequest("GET", statusUrl)).status)
            released.complete(Unit)
            assertEquals(200, slow.await())
        }
        assertEquals(2, count(path))
    }
}
