package android.content;

import androidx.annotation.NonNull;
import java.io.File;

/** The part of Android's Context that the module uses. {@code ai.synheart.standins.StandInDevice} has one. */
public abstract class Context {
    /** The app's own context, in credential-encrypted storage, whatever storage this context is in. */
    public abstract Context getApplicationContext();

    public abstract String getPackageName();

    /** Made if it can be. */
    public abstract File getNoBackupFilesDir();

    public final <T> T getSystemService(@NonNull Class<T> service) { return service.cast(getSystemService(service.getName())); }

    /** The stand-in names a service by its class. */
    public abstract Object getSystemService(@NonNull String name);

    public abstract Context createDeviceProtectedStorageContext();

    public abstract boolean isDeviceProtectedStorage();
}
