package android.util;

import androidx.annotation.NonNull;
import androidx.annotation.Nullable;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;

/** Android's log, kept in memory. */
public final class Log {
    public static final int VERBOSE = 2, DEBUG = 3, INFO = 4, WARN = 5, ERROR = 6, ASSERT = 7;

    /** Stand-in only: the logged lines. Each has the priority, the tag and the message, separated by spaces. */
    public static final List<String> lines = new CopyOnWriteArrayList<>();

    private Log() {}

    public static int println(int priority, @Nullable String tag, @NonNull String message) {
        lines.add(priority + " " + tag + " " + message);
        return message.length();
    }
}
