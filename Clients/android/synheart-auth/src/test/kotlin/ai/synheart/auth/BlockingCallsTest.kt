package ai.synheart.auth

import ai.synheart.auth.concurrency.BlockingCalls
import ai.synheart.auth.concurrency.CallKind
import ai.synheart.auth.concurrency.NoAnswerException
import java.util.concurrent.CountDownLatch
import java.util.concurrent.atomic.AtomicInteger
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitCancellation
import kotlinx.coroutines.cancelAndJoin
import kotlinx.coroutines.channels.Channel
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import org.junit.Assert.assertEquals
import org.junit.Assert.assertFalse
import org.junit.Assert.assertThrows
import org.junit.Assert.assertTrue
import org.junit.Test

/** Calls of a provider that blocks, and that may hang. */
class BlockingCallsTest {
    /** The deadlines of current waits, oldest first. */
    private val deadlines = Channel<CompletableDeferred<Unit>>(Channel.UNLIMITED)
    private val calls = BlockingCalls { _, purpose ->
        if (purpose == SleepPurpose.DEADLINE) CompletableDeferred<Unit>().also { deadlines.send(it) }.await() else awaitCancellation()
    }

    private class Hang {
        private val started = CompletableDeferred<Unit>()
        private val latch = CountDownLatch(1)

        suspend fun isRunning() = started.await()
        fun end() = latch.countDown()

        fun run() {
            started.complete(Unit)
            latch.await()
        }
    }

    private suspend fun passDeadline() {
        deadlines.receive().complete(Unit)
    }

    @Test
    fun `calls are made one at a time`() = runBlocking {
        val running = AtomicInteger()
        val jobs = List(20) {
            async(Dispatchers.Default) {
                calls.run(CallKind.SIGN) {
                    assertEquals(1, running.incrementAndGet())
                    Thread.yield()
                    running.decrementAndGet()
                }
            }
        }
        jobs.forEach { it.await() }
    }

    @Test
    fun `a call that hangs is left behind, and calls of its kind fail until it returns`() = runBlocking(Dispatchers.Default) {
        val hang = Hang()
        val caller = async { runCatching { calls.run(CallKind.CREATE_KEY) { hang.run() } } }
        hang.isRunning()
        passDeadline()
        assertTrue(caller.await().exceptionOrNull() is NoAnswerException)
        assertTrue(calls.hasChangeLeftBehind)
        assertThrows(NoAnswerException::class.java) { runBlocking { calls.run(CallKind.CREATE_KEY) { } } }
        assertEquals(1, calls.run(CallKind.LOAD_KEY) { 1 })
        // A lock that guards the change is held until the change ends.
        val isReleased = CompletableDeferred<Unit>()
        calls.afterChanges { isReleased.complete(Unit) }
        assertFalse(isReleased.isCompleted)
        hang.end()
        isReleased.await()
        assertFalse(calls.hasChangeLeftBehind)
        assertEquals(2, calls.run(CallKind.CREATE_KEY) { 2 })
    }

    @Test
    fun `a cancelled caller stops waiting, and its change still holds the lock until it ends`() = runBlocking(Dispatchers.Default) {
        val hang = Hang()
        val isUnclaimed = CompletableDeferred<String>()
        val caller = launch {
            calls.run<String>(CallKind.WRITE_RECORD, unclaimed = { isUnclaimed.complete(it) }) {
                hang.run()
                "late"
            }
        }
        hang.isRunning()
        val waiting = launch { calls.run(CallKind.READ_RECORD) { } }
        waiting.cancelAndJoin()
        caller.cancelAndJoin()
        val isReleased = CompletableDeferred<Unit>()
        calls.afterChanges { isReleased.complete(Unit) }
        assertFalse(isReleased.isCompleted)
        hang.end()
        isReleased.await()
        assertEquals("late", isUnclaimed.await())
        assertEquals(3, calls.run(CallKind.WRITE_RECORD) { 3 })
    }

    @Test
    fun `an error reaches the caller, and the next call is made`() = runBlocking {
        assertThrows(IllegalStateException::class.java) { runBlocking { calls.run(CallKind.SIGN) { error("x") } } }
        assertEquals(4, calls.run(CallKind.SIGN) { 4 })
    }
}
