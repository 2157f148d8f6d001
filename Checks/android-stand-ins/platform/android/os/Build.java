package android.os;

public class Build {
    public static class VERSION {
        /** A test may change it. */
        public static volatile int SDK_INT = 36;
    }
}
