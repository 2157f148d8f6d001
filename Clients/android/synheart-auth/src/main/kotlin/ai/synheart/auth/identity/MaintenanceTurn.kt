package ai.synheart.auth.identity

import ai.synheart.auth.DeviceClock
import java.util.concurrent.atomic.AtomicLong

/**
 * Lets automatic maintenance run once at a time. After a failure it may run again after an hour (the longest pause of a rotation), or
 * at once after a new demand or a reset. Without the pause, each request of the app would begin another cycle of attempts.
 */
internal class MaintenanceTurn(private val clock: DeviceClock) {
    /** The time from which it may run, on the clock of [DeviceClock.elapsedMillis]; the negative number of the run while it runs. */
    private val dueAt = AtomicLong(0)
    private val runs = AtomicLong(0)

    /** The run that the caller begins, and ends with [end]; null if it must not begin now. */
    fun begin(): Long? {
        val due = dueAt.get()
        if (due < 0 || due > clock.elapsedMillis) return null
        return (-runs.incrementAndGet()).takeIf { dueAt.compareAndSet(due, it) }
    }

    /** Ends a run. If [allow] was called meanwhile, the next one may begin at once in any case. */
    fun end(run: Long, hasFailed: Boolean) {
        dueAt.compareAndSet(run, if (hasFailed) clock.elapsedMillis + PAUSE_MILLIS else 0)
    }

    /** Lets it run again, even while it runs or after a failure. */
    fun allow() = dueAt.set(0)

    private companion object {
        const val PAUSE_MILLIS = 3_600_000L
    }
}
