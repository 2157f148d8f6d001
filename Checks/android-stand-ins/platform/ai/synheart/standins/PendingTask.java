package ai.synheart.standins;

import com.google.android.gms.tasks.OnCompleteListener;
import com.google.android.gms.tasks.RuntimeExecutionException;
import com.google.android.gms.tasks.Task;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CancellationException;
import java.util.concurrent.Executor;

/** A task that the stand-in completes at once, later or never. */
final class PendingTask<Result> extends Task<Result> {
    private final List<Runnable> listeners = new ArrayList<>();
    private boolean isComplete, isCanceled;
    private Result result;
    private Exception failure;

    static <Result> PendingTask<Result> of(Result result) {
        PendingTask<Result> task = new PendingTask<>();
        task.complete(result, null, false);
        return task;
    }

    static <Result> PendingTask<Result> failed(Exception failure) {
        PendingTask<Result> task = new PendingTask<>();
        task.complete(null, failure, false);
        return task;
    }

    /** Completes the task. Only the first call has an effect. */
    void complete(Result result, Exception failure, boolean isCanceled) {
        List<Runnable> waiting;
        synchronized (this) {
            if (isComplete) return;
            isComplete = true;
            this.isCanceled = isCanceled;
            this.result = result;
            this.failure = failure;
            waiting = new ArrayList<>(listeners);
            listeners.clear();
        }
        waiting.forEach(Runnable::run);
    }

    @Override
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

    @Override
    public synchronized boolean isComplete() { return isComplete; }

    @Override
    public synchronized boolean isCanceled() { return isCanceled; }

    @Override
    public synchronized boolean isSuccessful() { return isComplete && !isCanceled && failure == null; }

    @Override
    public synchronized Exception getException() { return failure; }

    @Override
    public synchronized Result getResult() {
        if (!isComplete) throw new IllegalStateException("Task is not yet complete");
        if (isCanceled) throw new CancellationException("Task is already canceled.");
        if (failure != null) throw new RuntimeExecutionException(failure);
        return result;
    }
}
