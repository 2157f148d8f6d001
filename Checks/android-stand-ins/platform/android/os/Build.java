package android.os;

public class Build {
    public static class VERSION {
        /** The Android API level. A test may change it. */
        public static volatile int SDK_INT = 36;
    }
}
