package com.google.android.play.core.integrity;

/** Makes exceptions that only Google's library can make. */
public final class StandInFailures { // stand-in only
    private StandInFailures() {}

    public static Exception classic(int code) { return new IntegrityServiceException(code, null); }

    public static Exception standard(int code) { return new StandardIntegrityException(code, null); }
}
