package android.os;

/** Stand-in: an object without function for the main thread's queue. */
public final class Looper {
    private static final Looper MAIN = new Looper();

    private Looper() {}

    public static Looper getMainLooper() {
        return MAIN;
    }
}
