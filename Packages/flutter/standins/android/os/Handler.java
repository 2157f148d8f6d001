package android.os;

import java.util.concurrent.Executor;
import java.util.concurrent.Executors;

/** Stand-in: runs what is posted one after another, on one thread. */
public class Handler {
    private static final Executor MAIN = Executors.newSingleThreadExecutor(task -> {
        Thread thread = new Thread(task, "main looper");
        thread.setDaemon(true);
        return thread;
    });

    public Handler(Looper looper) {
        if (looper == null) {
            throw new NullPointerException("looper");
        }
    }

    public final boolean post(Runnable task) {
        MAIN.execute(task);
        return true;
    }
}
