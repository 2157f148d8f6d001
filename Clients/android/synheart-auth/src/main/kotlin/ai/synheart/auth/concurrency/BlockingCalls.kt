package ai.synheart.auth.concurrency

import ai.synheart.auth.SleepPurpose
import ai.synheart.auth.Sleeper
import kotlin.coroutines.EmptyCoroutineContext
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.Job
import kotlinx.coroutines.launch

/** The kinds of calls that may block. While a call hangs, the client makes no other call of its kind. */
internal enum class CallKind(
    /** Whether the call changes something that other processes read. */
    val isChange: Boolean = false,
) {
    CREATE_KEY(true), LOAD_KEY, SIGN, CHECK_KEYS, DELETE_KEY(true),
    READ_RECORD, WRITE_RECORD(true), REMOVE_RECORD(true), SET_RECORD_ASIDE, CHECK_STORAGE, LOCK_RECORD,
}

/** The call did not return within its limit, or an earlier call of its kind still hangs. */
internal class NoAnswerException : Exception()

/**
 * Makes the blocking calls of one provider (files, Keystore) one after another, on threads in addition to those of [Dispatchers.IO],
 * which the app's own code may use up.
 *
 * A call that hangs is abandoned with its thread. Its caller gets [NoAnswerException], queued calls continue on another thread,
 * and calls of the same kind fail at once until the abandoned call returns. So a provider that hangs costs at most one thread for
 * each kind of call.
 *
 * Cancelling a caller ends its wait. A running call continues, and [afterChanges] waits for it if it is a change.
 */
internal class BlockingCalls(private val sleeper: Sleeper) {
    // A thread for each kind of call that may hang, and one for the kinds that do not.
    private val threads = Dispatchers.IO.limitedParallelism(CallKind.entries.size + 1)
    private val line = ArrayDeque<Call<*>>()
    private var running: Call<*>? = null
    private val leftBehind = mutableListOf<Call<*>>()
    private val afterwards = mutableListOf<() -> Unit>()

    private inner class Call<Value>(val kind: CallKind, val unclaimed: (Value) -> Unit, val body: () -> Value) {
        val answer = CompletableDeferred<Result<Value>>()

        /** Whether the caller no longer waits for the call. */
        var isDetached = false
            private set
        private var given: Result<Value>? = null

        fun work() {
            val result = try {
                Result.success(body())
            } catch (error: Throwable) {
                Result.failure(error)
            }
            val isClaimed = synchronized(this@BlockingCalls) {
                (!isDetached && answer.complete(result)).also { if (it) given = result }
            }
            if (!isClaimed) result.onSuccess(unclaimed)
        }

        fun giveUp() {
            answer.complete(Result.failure(NoAnswerException()))
        }

        /** Called when the caller stops waiting. Gives a value that the caller did not receive to [unclaimed]. */
        fun leave() {
            val lost = synchronized(this@BlockingCalls) {
                isDetached = true
                line.remove(this)
                given
            }
            lost?.onSuccess(unclaimed)
        }
    }

    /**
     * Makes a call, after the calls queued before it.
     *
     * @param unclaimed receives a value that arrives too late
     * @throws NoAnswerException if the call does not return within 30 seconds
     */
    suspend fun <Value> run(kind: CallKind, unclaimed: (Value) -> Unit = {}, body: () -> Value): Value {
        val call = Call(kind, unclaimed, body)
        val isRefused = synchronized(this) { leftBehind.any { it.kind == kind }.also { if (!it) line.add(call) } }
        if (isRefused) throw NoAnswerException()
        advance()
        val result = try {
            call.answer.await()
        } catch (error: CancellationException) {
            call.leave()
            throw error
        }
        return result.getOrThrow()
    }

    /** Whether an abandoned call that changes keys or records may still take effect. */
    val hasChangeLeftBehind: Boolean get() = synchronized(this) { leftBehind.any { it.kind.isChange } }

    /**
     * Runs [action] once no call is left that changes keys or records and whose caller no longer waits; immediately if there
     * is none. Locks that guard changes are released this way.
     */
    fun afterChanges(action: () -> Unit) {
        val isNow = synchronized(this) { (!hasOpenChange()).also { if (!it) afterwards.add(action) } }
        if (isNow) action()
    }

    private fun hasOpenChange() =
        leftBehind.any { it.kind.isChange } || running?.let { it.isDetached && it.kind.isChange } == true

    private fun advance() {
        val call = synchronized(this) {
            if (running != null || line.isEmpty()) return
            line.removeFirst().also { running = it }
        }
        val timer = detached.launch {
            sleeper.sleep(LIMIT, SleepPurpose.DEADLINE)
            leaveBehind(call)
        }
        threads.dispatch(EmptyCoroutineContext) {
            call.work()
            finish(call, timer)
        }
    }

    private fun finish(call: Call<*>, timer: Job) {
        timer.cancel()
        val actions = synchronized(this) {
            if (running === call) running = null else leftBehind.remove(call)
            if (hasOpenChange()) emptyList() else afterwards.toList().also { afterwards.clear() }
        }
        for (action in actions) action()
        advance()
    }

    private fun leaveBehind(call: Call<*>) {
        val given = synchronized(this) {
            if (running !== call) return
            running = null
            leftBehind.add(call)
            val alike = line.filter { it.kind == call.kind }
            line.removeAll(alike)
            alike + call
        }
        for (each in given) each.giveUp()
        advance()
    }

    private companion object {
        val LIMIT = 30.seconds
    }
}
