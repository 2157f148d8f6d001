package android.os;

import androidx.annotation.NonNull;
import java.util.concurrent.Executor;
import java.util.concurrent.Executors;

/** Stand-in: runs the posted tasks one after another, on one thread. */
public class Handler {
    private static final Executor MAIN = Executors.newSingleThreadExecutor(task -> {
        Thread thread = new Thread(task, "main looper");
        thread.setDaemon(true);
        return thread;
    });

    public Handler(@NonNull Looper looper) {
        if (looper == null) {
            throw new NullPointerException("looper");
        }
    }

    public final boolean post(@NonNull Runnable task) {
        MAIN.execute(task);
        return true;
    }
}
