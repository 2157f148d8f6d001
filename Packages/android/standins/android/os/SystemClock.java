package android.os;

public final class SystemClock {
    private SystemClock() {}

    /** Milliseconds since the device booted, sleep included. */
    public static long elapsedRealtime() { return System.nanoTime() / 1_000_000; }
}
