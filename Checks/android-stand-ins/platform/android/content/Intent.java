package android.content;

import android.net.Uri;
import androidx.annotation.NonNull;

/** A description of an activity to start. */
public class Intent {
    public static final String ACTION_VIEW = "android.intent.action.VIEW";
    public static final int FLAG_ACTIVITY_NEW_TASK = 0x10000000;
    private final String action;
    private final Uri data;

    public Intent(String action, Uri data) {
        this.action = action;
        this.data = data;
    }

    @NonNull
    public Intent addFlags(int flags) { return this; }

    @Override
    public String toString() { return action + " " + data; }
}
