package com.google.android.gms.tasks;

import androidx.annotation.NonNull;
import androidx.annotation.Nullable;
import java.util.concurrent.Executor;

/** A result of Google Play services that may arrive later. {@code ai.synheart.standins.PendingTask} implements it. */
public abstract class Task<TResult> {
    public Task() {}

    /** Google calls this listener on the main thread. */
    @NonNull
    public Task<TResult> addOnCompleteListener(@NonNull OnCompleteListener<TResult> listener) {
        throw new UnsupportedOperationException("addOnCompleteListener is not implemented");
    }

    @NonNull
    public Task<TResult> addOnCompleteListener(@NonNull Executor executor, @NonNull OnCompleteListener<TResult> listener) {
        throw new UnsupportedOperationException("addOnCompleteListener is not implemented");
    }

    public abstract boolean isComplete();

    public abstract boolean isSuccessful();

    public abstract boolean isCanceled();

    @Nullable
    public abstract Exception getException();

    /** Throws {@link IllegalStateException} before the task is complete, and {@link RuntimeExecutionException} if it failed. */
    public abstract TResult getResult();
}
