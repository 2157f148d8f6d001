package android.content;

import android.database.Cursor;
import android.net.Uri;

/** The part of Android's class that a provider overrides. */
public abstract class ContentProvider {
    private Context context;

    /** Null until the system has made the provider. */
    public final Context getContext() { return context; }

    /** Stand-in only: what the system does, before {@code Application.onCreate}. */
    public final void attach(Context context) {
        this.context = context;
        onCreate();
    }

    public abstract boolean onCreate();

    public abstract Cursor query(Uri uri, String[] projection, String selection, String[] selectionArgs, String sortOrder);

    public abstract String getType(Uri uri);

    public abstract Uri insert(Uri uri, ContentValues values);

    public abstract int delete(Uri uri, String selection, String[] selectionArgs);

    public abstract int update(Uri uri, ContentValues values, String selection, String[] selectionArgs);
}
