package android.content;

import androidx.annotation.NonNull;
import java.io.File;

/** The part of Android's Context that the SDK uses. {@code ai.synheart.standins.StandInDevice} implements it. */
public abstract class Context {
    /** The app's own context, in credential-encrypted storage, whatever storage this context is in. */
    public abstract Context getApplicationContext();

    public abstract String getPackageName();

    /** Creates the folder if it does not exist. If that fails, returns its path all the same. */
    public abstract File getNoBackupFilesDir();

    public final <T> T getSystemService(@NonNull Class<T> service) { return service.cast(getSystemService(service.getName())); }

    /** In this stand-in, the name of a service is the name of its class. */
    public abstract Object getSystemService(@NonNull String name);

    public abstract Context createDeviceProtectedStorageContext();

    public abstract boolean isDeviceProtectedStorage();
}
