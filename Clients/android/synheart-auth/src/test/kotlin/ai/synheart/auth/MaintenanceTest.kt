package ai.synheart.auth

import ai.synheart.auth.wire.hex
import ai.synheart.auth.wire.sha256
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.delay
import kotlinx.coroutines.withTimeout
import org.junit.Assert.assertEquals
import org.junit.Assert.assertTrue
import org.junit.Test

/** Automatic rotations: after a failure, a new cause or an hour later the same one starts another one in the same process. */
class MaintenanceTest {
    private suspend fun eventually(condition: () -> Boolean) = withTimeout(20.seconds) { while (!condition()) delay(5) }

    private fun World.demand(withinSeconds: Int, reason: String, deviceId: String) =
        service.device(appId, deviceId, "force-rotation", mapOf("within_seconds" to withinSeconds, "reason" to reason))

    /** Lets three attempts at a demanded rotation fail. Returns the device's id. */
    private suspend fun World.failToRotate(): String {
        client = SynheartAuth(phone.configuration(rotatesAutomatically = true))
        val deviceId = register().deviceId
        demand(3_600, "scheduled", deviceId)
        loseRequest(World.ROTATE, 3)
        assertEquals(200, send().status)
        eventually { phone.log.count { "ROTATION_FAILED" in it } == 3 }
        // The same demand is no new cause.
        assertEquals(200, send().status)
        delay(100)
        assertEquals(3, count(World.ROTATE))
        return deviceId
    }

    @Test
    fun `a new demand starts a rotation after one that failed`() = World.run {
        demand(7_200, "compromise", failToRotate())
        assertEquals(200, send().status)
        eventually { record().keyRotatedAt != null }
        assertEquals(4, count(World.ROTATE))
    }

    @Test
    fun `a demand that comes during a run starts the next one although the run fails`() {
        val clock = TestClock()
        val turn = ai.synheart.auth.identity.MaintenanceTurn(clock)
        val first = turn.begin()!!
        assertEquals(null, turn.begin())
        turn.allow()
        turn.end(first, hasFailed = true)
        val second = turn.begin()!!
        turn.end(second, hasFailed = true)
        assertEquals(null, turn.begin())
        clock.elapsedOffset += 3_600_000
        assertTrue(turn.begin() != null)
    }

    @Test
    fun `the same demand starts a rotation again after an hour`() = World.run {
        failToRotate()
        phone.clock.elapsedOffset += 3_600_000
        assertEquals(200, send().status)
        eventually { record().keyRotatedAt != null }
        assertEquals(4, count(World.ROTATE))
    }

    @Test
    fun `a rotation whose answer was lost is finished for the compromise that was demanded since`() = World.run {
        val deviceId = register().deviceId
        loseAnswer(World.ROTATE)
        loseRequest(World.STATUS, 3)
        loseRequest(World.ROTATE, 2)
        expect<SynheartAuthException.NetworkError>(Recovery.RETRY) { client.rotateKey(appId) }
        demand(3_600, "compromise", deviceId)
        forgetAnswers()
        val reasons = mutableListOf<String>()
        val network = phone.network
        phone.network = { request, send ->
            if (request.isTo(World.ROTATE)) reasons.add(String(request.body))
            network(request, send)
        }
        client = SynheartAuth(phone.configuration(rotatesAutomatically = true))
        assertEquals(200, send().status)
        eventually { record().journal == null }
        assertTrue("$reasons", reasons.isNotEmpty() && "\"reason\":\"compromise\"" in reasons.first())
    }

    @Test
    fun `a failed rotation does not keep the next identity from rotating`() = World.run {
        failToRotate()
        client.resetDeviceIdentity(appId, ResetReason.USER_REQUESTED)
        register()
        val old = record().run { copy(registeredAt = registeredAt!! - 91L * 86_400) }
        phone.configuration().storage.write(sha256(appId.toByteArray()).hex(), old.toBytes())
        assertEquals(200, send().status)
        eventually { record().keyRotatedAt != null }
    }
}
