package android.os;

public final class Build {
    private Build() {}

    public static final class VERSION {
        /** A test may change it. */
        public static volatile int SDK_INT = 36;

        private VERSION() {}
    }
}
