package ai.synheart.auth

import kotlin.time.Duration
import kotlin.time.Duration.Companion.hours
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.minutes
import kotlin.time.Duration.Companion.seconds

/** Exponential back-off: `min(base * 2^attempt + random(0, jitter), maximum)` (RFC-AUTH-MOBILE-0001 section 12). */
internal enum class RetryPolicy(val base: Duration, val jitter: Duration, val maximum: Duration, val attempts: Int) {
    /** The requests for a challenge and for a registration. */
    REGISTRATION(1.seconds, 500.milliseconds, 30.seconds, 5),

    /** Rotation: three attempts now, more at the next launch. */
    ROTATION(60.seconds, Duration.ZERO, 1.hours, 3),

    /** The requests to Google Play while it cannot answer: retries after 5, 10 and 20 s, as Google advises. */
    PROVIDER(5.seconds, Duration.ZERO, 20.seconds, 4),

    /** Reading a record that is unavailable. */
    STORAGE(100.milliseconds, Duration.ZERO, 2.seconds, 5),
    ;

    /**
     * The delay after an attempt; null after the last one.
     *
     * @param attempt the number of the attempt, from 0
     * @param random at least 0 and below 1
     * @param retryAfter the service's `Retry-After`: it replaces the computed delay, also if it is shorter
     */
    fun delay(attempt: Int, random: Double, retryAfter: Duration? = null): Duration? {
        if (attempt + 1 >= attempts) return null
        if (retryAfter != null) return retryAfter.coerceIn(Duration.ZERO, LONGEST_RETRY_AFTER)
        var delay = base
        repeat(attempt) { if (delay < maximum) delay *= 2 }
        return minOf(delay + jitter * random, maximum)
    }

    companion object {
        /** The client waits no longer than this for a `Retry-After`. */
        val LONGEST_RETRY_AFTER = 5.minutes
    }
}

/** A random number of at least 0 and below 1. */
internal fun RandomSource.fraction(): Double {
    val bytes = bytes(2)
    return ((bytes[0].toInt() and 0xFF shl 8) or (bytes[1].toInt() and 0xFF)) / 65_536.0
}
