package android.util;

import androidx.annotation.NonNull;
import androidx.annotation.Nullable;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;

/** Android's log, kept in memory. */
public final class Log {
    public static final int VERBOSE = 2, DEBUG = 3, INFO = 4, WARN = 5, ERROR = 6, ASSERT = 7;

    /** Stand-in only: what was logged: priority, tag and message, separated by a space. */
    public static final List<String> lines = new CopyOnWriteArrayList<>();

    private Log() {}

    public static int println(int priority, @Nullable String tag, @NonNull String message) {
        lines.add(priority + " " + tag + " " + message);
        return message.length();
    }
}
