package ai.synheart.auth.identity

import ai.synheart.auth.DeviceClock
import java.util.concurrent.atomic.AtomicLong

/**
 * Lets automatic maintenance run once at a time. After a failure it may run again after an hour (the longest pause of a rotation), or
 * at once after a new demand or a reset. Without the pause, each request of the app would begin another cycle of attempts.
 */
internal class MaintenanceTurn(private val clock: DeviceClock) {
    /** The time from which it may run, on the clock of [DeviceClock.elapsedMillis]; [RUNNING] while it runs. */
    private val dueAt = AtomicLong(0)

    /** Whether the caller may run it now. If so, the caller ends it with [end]. */
    fun begin(): Boolean {
        val due = dueAt.get()
        return (due == 0L || due <= clock.elapsedMillis) && dueAt.compareAndSet(due, RUNNING)
    }

    fun end(hasFailed: Boolean) = dueAt.set(if (hasFailed) clock.elapsedMillis + PAUSE_MILLIS else 0)

    /** Lets it run again, even while it runs or after a failure. */
    fun allow() = dueAt.set(0)

    private companion object {
        const val RUNNING = Long.MAX_VALUE
        const val PAUSE_MILLIS = 3_600_000L
    }
}
