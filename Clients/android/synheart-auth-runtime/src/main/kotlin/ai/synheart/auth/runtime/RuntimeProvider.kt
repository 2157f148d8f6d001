package ai.synheart.auth.runtime

import ai.synheart.auth.android.RuntimeHostRegistry
import android.content.ContentProvider
import android.content.ContentValues
import android.content.Context
import android.database.Cursor
import android.net.Uri
import android.util.Log

/** Loads `libsynheart_native_crypto.so`. In processes of the app other than its main one, the app itself calls [load]. */
public object SynheartNative {
    /**
     * Loads the library, so that Synheart Core's runtime finds its functions. Later calls in a process load nothing.
     *
     * @return whether the functions are there. If they are not, Logcat has the reason
     */
    @JvmStatic
    public fun load(context: Context): Boolean = try {
        RuntimeHostRegistry.installIfNeeded(context)
        System.loadLibrary("synheart_native_crypto")
        true
    } catch (error: LinkageError) {
        // An app must start without the library: Core works without a device identity.
        Log.println(Log.ERROR, "SynheartAuth", "libsynheart_native_crypto.so cannot be loaded: $error")
        false
    }
}

/**
 * Loads the library when the app starts, so that Synheart Core's runtime finds its functions. Android creates an
 * app's providers before `Application.onCreate`.
 */
public class RuntimeProvider : ContentProvider() {
    override fun onCreate(): Boolean = context?.let { SynheartNative.load(it) } ?: false

    override fun query(uri: Uri, projection: Array<String>?, selection: String?, selectionArgs: Array<String>?, sortOrder: String?): Cursor? = null

    override fun getType(uri: Uri): String? = null

    override fun insert(uri: Uri, values: ContentValues?): Uri? = null

    override fun delete(uri: Uri, selection: String?, selectionArgs: Array<String>?): Int = 0

    override fun update(uri: Uri, values: ContentValues?, selection: String?, selectionArgs: Array<String>?): Int = 0
}
