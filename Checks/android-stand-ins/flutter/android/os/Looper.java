package android.os;

/** Stand-in: represents the main thread. It has no queue of messages. */
public final class Looper {
    private static final Looper MAIN = new Looper();

    private Looper() {}

    public static Looper getMainLooper() {
        return MAIN;
    }
}
