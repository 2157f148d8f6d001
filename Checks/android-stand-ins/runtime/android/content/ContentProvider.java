package android.content;

import android.database.Cursor;
import android.net.Uri;
import androidx.annotation.NonNull;
import androidx.annotation.Nullable;

/** The part of Android's class that a provider overrides. */
public abstract class ContentProvider {
    private Context context;

    /** Null until the system has made the provider. */
    @Nullable
    public final Context getContext() { return context; }

    /** Stand-in only: creates the provider, as Android does before {@code Application.onCreate}. Tests call it. */
    public final void attach(Context context) {
        this.context = context;
        onCreate();
    }

    public abstract boolean onCreate();

    @Nullable
    public abstract Cursor query(
        @NonNull Uri uri, @Nullable String[] projection, @Nullable String selection, @Nullable String[] selectionArgs, @Nullable String sortOrder);

    @Nullable
    public abstract String getType(@NonNull Uri uri);

    @Nullable
    public abstract Uri insert(@NonNull Uri uri, @Nullable ContentValues values);

    public abstract int delete(@NonNull Uri uri, @Nullable String selection, @Nullable String[] selectionArgs);

    public abstract int update(@NonNull Uri uri, @Nullable ContentValues values, @Nullable String selection, @Nullable String[] selectionArgs);
}
