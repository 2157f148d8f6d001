package ai.synheart.auth

import java.util.concurrent.atomic.AtomicReference
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.CoroutineStart
import kotlinx.coroutines.Job
import kotlinx.coroutines.async
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.delay
import kotlinx.coroutines.launch
import kotlinx.coroutines.supervisorScope
import kotlinx.coroutines.withTimeout
import org.junit.Assert.assertEquals
import org.junit.Assert.assertTrue
import org.junit.Test

/** A caller is cancelled, or the client is closed, at each external call: at the places where a coroutine can be suspended. */
class CancellationTest {
    private class Operation(
        val name: String, val isRegistered: Boolean, val prepare: suspend World.() -> Unit = {}, val run: suspend World.(SynheartAuth) -> Any?,
    )

    private val operations = listOf(
        Operation("register", false) { it.registerDevice(appId) },
        Operation("rotate", true) { it.rotateKey(appId) },
        Operation("reset", true) { it.resetDeviceIdentity(appId, ResetReason.USER_REQUESTED) },
        Operation("send", true) { it.send(appId, HttpRequest("GET", statusUrl)) },
        Operation("sign", true) { it.signRequest(appId, "GET", "/v1/x") },
        Operation("token", true) { it.deviceToken(appId) },
        Operation("maintain", true, prepare = {
            service.device(appId, client.getDeviceId(appId)!!, "force-rotation")
            client.status(appId)
        }) { it.maintain(appId) },
    )

    private fun everywhere(body: suspend World.(Operation, SynheartAuth, Outside, Int) -> Unit) {
        for (operation in operations) {
            var call = 0
            do {
                var isReached = false
                World.run {
                    if (operation.isRegistered) register()
                    operation.prepare(this)
                    val outside = Outside()
                    val client = SynheartAuth(phone.configuration(outside))
                    body(operation, client, outside, call)
                    isReached = outside.calls.size > call
                    expectOneIdentity("${operation.name} at call $call of ${outside.calls}")
                }
                call++
            } while (isReached)
            assertTrue(operation.name, call > 2)
        }
    }

    private suspend fun World.expectOneIdentity(what: String) {
        try {
            val after = phone.client()
            after.registerDevice(appId)
            after.maintain(appId)
            assertEquals(what, 200, after.send(appId, HttpRequest("GET", statusUrl)).status)
            // A rotation whose caller was cancelled continues, and finally deletes the old key.
            withTimeout(20.seconds) { while (phone.keys(appId).size > 1) delay(1) }
            assertEquals(what, 1, phone.keys(appId).size)
            assertEquals(what, listOf(after.getDeviceId(appId)), liveDevices().map { it.string("device_id") })
        } catch (error: SynheartAuthException) {
            throw AssertionError("$what: $error", error)
        }
    }

    @Test
    fun `cancelling the caller ends its wait, and loses no identity`() = everywhere { operation, client, outside, call ->
        supervisorScope {
            val job = AtomicReference<Job>()
            val caller = async(start = CoroutineStart.LAZY) { operation.run(this@everywhere, client) }
            job.set(caller)
            outside.onCall = { if (it == call) job.get().cancel() }
            try {
                caller.await()
            } catch (_: CancellationException) {
            }
            assertTrue(caller.isCompleted)
        }
        // The operation that the caller began continues: another caller joins it, or waits for its lock.
        client.registerDevice(appId)
    }

    @Test
    fun `closing the client ends its operations, and a later client finishes them`() = everywhere { operation, client, outside, call ->
        outside.onCall = { if (it == call) client.close() }
        try {
            operation.run(this, client)
        } catch (error: SynheartAuthException) {
            assertEquals(Recovery.RETRY, error.recovery)
        }
        // Wait for a write that is still running: it takes effect although the client is closed.
        while (!outside.isQuiet) delay(1)
    }

    @Test
    fun `a caller that waits for another's registration can leave it`() = World.run {
        val isWaiting = CompletableDeferred<Unit>()
        val mayGoOn = CompletableDeferred<Unit>()
        at(World.CHALLENGE) { send ->
            isWaiting.complete(Unit)
            mayGoOn.await()
            send()
        }
        coroutineScope {
            val first = async { register() }
            isWaiting.await()
            val second = launch { register() }
            second.cancel()
            second.join()
            mayGoOn.complete(Unit)
            assertEquals(Registration.Status.REGISTERED, first.await().status)
        }
        expectWorking()
    }
}
