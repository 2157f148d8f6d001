package ai.synheart.auth.identity

import kotlin.math.abs

/** The offset is at most 24 hours either way. A larger one is no drift: the device's date is wrong, or the
 * service asks for signatures of another time. */
internal const val MAXIMUM_CLOCK_OFFSET_MILLIS = 24L * 3600 * 1000

/** The client learns no clock offset from an exchange that took longer, because the device may have slept during it. */
internal const val LONGEST_ROUND_TRIP_MILLIS = 60_000L

/** Server clock minus local clock. */
@JvmInline
internal value class ClockOffset private constructor(val millis: Long) {
    /** The service's time at a local time, in unix seconds, rounded down. */
    fun serverTime(localMillis: Long): Long = Math.floorDiv(localMillis + millis, 1000L)

    /** Whether the difference to another offset matters. Header times have whole seconds, so a difference below 2 s may be rounding. */
    fun isNews(other: ClockOffset): Boolean = abs(millis - other.millis) >= 2000

    companion object {
        val NONE = ClockOffset(0)

        /** An offset; null beyond the limit. */
        fun of(millis: Long): ClockOffset? =
            if (millis in -MAXIMUM_CLOCK_OFFSET_MILLIS..MAXIMUM_CLOCK_OFFSET_MILLIS) ClockOffset(millis) else null

        /** The offset from a server time that was right half a round trip ago; null beyond the limit, or after too long a round trip. */
        fun of(serverSeconds: Long, receivedAtMillis: Long, roundTripMillis: Long): ClockOffset? {
            // A header's time has ten digits. The bounds keep the sum in range.
            if (serverSeconds !in 0..9_999_999_999 || receivedAtMillis !in 0..Long.MAX_VALUE / 4) return null
            if (roundTripMillis > LONGEST_ROUND_TRIP_MILLIS) return null
            return of(serverSeconds * 1000 + roundTripMillis / 2 - receivedAtMillis)
        }
    }
}
