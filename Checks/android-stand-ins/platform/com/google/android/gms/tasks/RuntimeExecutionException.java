package com.google.android.gms.tasks;

/** The exception that a failed task throws instead of returning a result. It is public, like Google's class. */
public class RuntimeExecutionException extends RuntimeException { // stand-in only
    public RuntimeExecutionException(Throwable cause) { super(cause); }
}
