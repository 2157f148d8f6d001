package com.google.android.gms.tasks;

import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** Every task here has ended. */
public final class Tasks {
    public static <TResult> TResult await(Task<TResult> task, long timeout, TimeUnit unit)
            throws ExecutionException, InterruptedException, TimeoutException {
        if (task.getException() != null) throw new ExecutionException(task.getException());
        return task.getResult();
    }
}
