package android.os;

public final class SystemClock {
    /** Stand-in only: how far a test has moved the clock. */
    public static volatile long offsetMillis;

    private SystemClock() {}

    /** Milliseconds since the device booted, sleep included. */
    public static long elapsedRealtime() { return System.nanoTime() / 1_000_000 + offsetMillis; }
}
