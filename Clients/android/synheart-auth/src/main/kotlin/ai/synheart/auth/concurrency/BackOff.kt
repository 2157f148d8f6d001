package ai.synheart.auth.concurrency

import ai.synheart.auth.SleepPurpose
import ai.synheart.auth.Sleeper
import ai.synheart.auth.SynheartAuthException
import kotlin.time.Duration
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.launch

/** The pauses of one operation. Another operation can end them: a reset, or a rotation with a stronger reason, does not wait for them. */
internal class BackOff(private val sleeper: Sleeper) {
    private val end = CompletableDeferred<Unit>()

    /** Whether a stronger operation has taken the place of this one. */
    @Volatile
    var isSuperseded = false
        private set

    /** Whether the operation must stop. */
    val isEnded: Boolean get() = end.isCompleted

    /** Ends the current pause and all later ones. */
    fun end(isSuperseded: Boolean = false) {
        this.isSuperseded = isSuperseded
        end.complete(Unit)
    }

    /** Waits. Throws [failure] if the wait was ended. */
    suspend fun pause(duration: Duration, failure: () -> SynheartAuthException) {
        coroutineScope {
            val pause = launch { sleeper.sleep(duration, SleepPurpose.RETRY) }
            val watch = launch {
                end.await()
                pause.cancel()
            }
            pause.join()
            watch.cancel()
        }
        if (isEnded) throw failure()
    }
}
