package ai.synheart.auth.concurrency

import ai.synheart.auth.DeviceClock
import ai.synheart.auth.Situation
import ai.synheart.auth.SleepPurpose
import ai.synheart.auth.Sleeper
import ai.synheart.auth.SynheartAuthException
import ai.synheart.auth.failure
import kotlin.time.Duration
import kotlin.time.Duration.Companion.milliseconds
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.ExperimentalCoroutinesApi
import kotlinx.coroutines.SupervisorJob
import kotlinx.coroutines.launch

/** A function of the app threw `CancellationException` although nothing cancelled it, for example by a timeout of its own. */
internal class ForeignCancellationException(cause: CancellationException) : Exception("cancelled by itself", cause)

/**
 * The dispatcher of the client's own code. [Dispatchers.Default] has too few threads: an app that makes blocking calls on all of them
 * (OkHttp's `execute()` in a `CoroutineWorker`) would wait for a client that waits for a thread.
 */
internal val WORK = Dispatchers.IO.limitedParallelism(16)

/** The scope of coroutines that may outlive their callers. */
internal val detached = CoroutineScope(SupervisorJob() + WORK)

/**
 * The value of [body]; null once [limit] has passed. Then, and when the caller is cancelled, this function cancels
 * `body`. It does not wait until `body` ends, because a function of the app may ignore its cancellation. [unclaimed]
 * receives a value that comes too late.
 */
@OptIn(ExperimentalCoroutinesApi::class)
internal suspend fun <Value : Any> withDeadline(
    limit: Duration, sleeper: Sleeper, unclaimed: (Value) -> Unit = {}, body: suspend () -> Value,
): Value? {
    val answer = CompletableDeferred<Result<Value>?>()
    val work = detached.launch {
        val result = try {
            Result.success(body())
        } catch (error: CancellationException) {
            // If the deadline or the caller ended the wait, `answer` is already complete and this result is ignored.
            Result.failure(ForeignCancellationException(error))
        } catch (error: Throwable) {
            Result.failure(error)
        }
        if (!answer.complete(result)) result.onSuccess(unclaimed)
    }
    val timer = detached.launch {
        sleeper.sleep(limit, SleepPurpose.DEADLINE)
        answer.complete(null)
    }
    var isOver = false
    try {
        val result = answer.await()
        isOver = true
        return result?.getOrThrow()
    } finally {
        // The value may come just as the caller is cancelled. The caller does not receive it then, so [unclaimed] gets it.
        if (!isOver && !answer.complete(null)) answer.getCompleted()?.onSuccess(unclaimed)
        work.cancel()
        timer.cancel()
    }
}

/** Whether a call may still act. After its deadline, or once its caller no longer waits, the client sends nothing more for it. */
internal class CallLife(limit: Duration, private val clock: DeviceClock) {
    private val end = clock.elapsedMillis + limit.inWholeMilliseconds

    @Volatile
    private var isOver = false

    /** Ends the call before its deadline. */
    fun finish() {
        isOver = true
    }

    /** The remaining time. Throws `NETWORK_ERROR` if there is none. */
    fun remaining(): Duration {
        val remaining = end - clock.elapsedMillis
        if (remaining <= 0 || isOver) throw deadlinePassed()
        return remaining.milliseconds
    }
}

/** The call's deadline has passed. Its operation may still succeed. */
internal fun deadlinePassed(): SynheartAuthException =
    failure(Situation.DEADLINE_PASSED, "the call's deadline has passed; what it began may still be done")

/** The identity was reset while the operation waited. */
internal fun resetMeanwhile(): SynheartAuthException = failure(Situation.ENDED, "the identity was reset while the operation waited")

/** The client was closed. */
internal fun closed(): SynheartAuthException = failure(Situation.ENDED, "the client was closed")
