package ai.synheart.auth

import ai.synheart.auth.identity.ClockOffset
import kotlin.time.Duration.Companion.hours
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.async
import kotlinx.coroutines.coroutineScope
import org.junit.Assert.assertEquals
import org.junit.Assert.assertFalse
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

    @Test
    fun `a clock that cannot be stored is an error of the storage, and corrected as soon as it can be`() = World.run {
        register()
        phone.clock.wallOffset = 3_600_000
        phone.isFull = true
        expect<SynheartAuthException.StorageError>(Recovery.RETRY) { client.status(appId) }
        phone.isFull = false
        client.status(appId)
    }

    @Test
    fun `a round trip in which the device slept teaches no offset`() = World.run {
        register()
        at(World.STATUS) { send -> send().also { phone.clock.elapsedOffset += 300_000 } }
        client.status(appId)
        assertFalse(record().clockOffset.isNews(ClockOffset.NONE))
    }

    @Test
    fun `a request that left late because the device slept is signed again`() = World.run {
        register()
        val client = client()
        val late = suspend {
            phone.clock.elapsedOffset += 600_000
            refusal(401, "CLOCK_SKEW")
        }
        at(World.STATUS) { late() }
        client.status(appId)
        at(World.STATUS) { late() }
        assertEquals(200, client.send(appId, HttpRequest("GET", statusUrl, deadline = 1.hours)).status)
        at(path) { late() }
        answer(path, accepted)
        assertEquals(200, client.send(appId, HttpRequest("GET", origin + path, deadline = 1.hours)).status)
        assertFalse(record().clockOffset.isNews(ClockOffset.NONE))
    }

    @Test
    fun `a wrong clock is learned also when the refused request took long`() = World.run {
        register()
        phone.clock.wallOffset = 3_600_000
        at(World.STATUS) { send -> send().also { phone.clock.elapsedOffset += 90_000 } }
        assertEquals(200, client.send(appId, HttpRequest("GET", statusUrl, deadline = 1.hours)).status)
    }
}
