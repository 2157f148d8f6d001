package com.google.android.gms.tasks;

/** What a failed task throws instead of its result. Google's class too is public. */
public class RuntimeExecutionException extends RuntimeException { // stand-in only
    public RuntimeExecutionException(Throwable cause) { super(cause); }
}
