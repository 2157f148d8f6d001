package com.google.android.gms.tasks;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executor;

/** A result of Google Play services, now or later. */
public class Task<Result> {
    private final List<Runnable> listeners = new ArrayList<>();
    private boolean isComplete;
    private Result result;
    private Exception failure;

    public static <Result> Task<Result> of(Result result) {
        Task<Result> task = new Task<>();
        task.complete(result, null);
        return task;
    }

    public static <Result> Task<Result> failed(Exception failure) {
        Task<Result> task = new Task<>();
        task.complete(null, failure);
        return task;
    }

    /** Completes the task once. */
    public void complete(Result result, Exception failure) {
        List<Runnable> waiting;
        synchronized (this) {
            if (isComplete) return;
            isComplete = true;
            this.result = result;
            this.failure = failure;
            waiting = new ArrayList<>(listeners);
            listeners.clear();
        }
        waiting.forEach(Runnable::run);
    }

    public Task<Result> addOnCompleteListener(Executor executor, OnCompleteListener<Result> listener) {
        Runnable call = () -> executor.execute(() -> listener.onComplete(this));
        synchronized (this) {
            if (!isComplete) {
                listeners.add(call);
                return this;
            }
        }
        call.run();
        return this;
    }

    public synchronized boolean isComplete() { return isComplete; }

    public synchronized boolean isSuccessful() { return isComplete && failure == null; }

    public synchronized Exception getException() { return failure; }

    public synchronized Result getResult() {
        if (!isSuccessful()) throw new IllegalStateException("the task has no result");
        return result;
    }
}
