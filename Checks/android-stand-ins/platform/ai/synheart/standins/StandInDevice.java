package ai.synheart.standins;

import android.content.Context;
import android.os.UserManager;
import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.security.Security;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * A phone with one app: its storage, its lock, its Keystore and Google's services. All state that outlives the process is in a folder,
 * so that another process with the same folder acts as another process of the app.
 */
public final class StandInDevice {
    private static volatile StandInDevice current;

    /** The folder that has all state of the phone. */
    public final Path folder;
    /** The Keystore. */
    public final KeystoreDaemon keystore;
    /** Play Integrity, as the app on the phone sees it; null in an app without Google's library. */
    public final PlayStandIn play;
    /** The number of the app's calls to the user manager, which runs in another process. */
    public final AtomicInteger userManagerCalls = new AtomicInteger();
    /** The app's name. */
    public final String packageName = "com.example.app";

    private StandInDevice(Path folder) {
        this.folder = folder;
        try {
            Files.createDirectories(folder.resolve("user/0"));
            Files.createDirectories(folder.resolve("user_de/0").resolve(packageName));
            if (!isLockedSinceBoot()) Files.createDirectories(credentialEncrypted());
            keystore = new KeystoreDaemon(folder.resolve("keystore"), packageName);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        PlayStandIn library = null;
        try { library = new PlayStandIn(packageName); } catch (NoClassDefFoundError error) { /* without Google's library */ }
        play = library;
    }

    /** The phone that the process runs on. */
    public static StandInDevice current() {
        StandInDevice device = current;
        if (device == null) throw new IllegalStateException("no StandInDevice was started");
        return device;
    }

    /** Simulates the start of an app process on the phone whose state is in this folder. */
    public static synchronized StandInDevice start(Path folder) {
        current = new StandInDevice(folder);
        if (Security.getProvider(KeystoreProvider.NAME) == null) Security.addProvider(new KeystoreProvider());
        return current;
    }

    /** A context like that of an activity or a service of the app. */
    public Context context() { return new AppContext(false); }

    /** Restarts the phone. Until {@link #unlock}, the credential-encrypted storage cannot be read. */
    public void reboot() {
        try {
            Path encrypted = folder.resolve("user/encrypted");
            Files.move(credentialEncrypted(), encrypted);
            // A link whose target does not exist: no file is found below it, and none can be created.
            Files.createSymbolicLink(credentialEncrypted(), Path.of("/proc/none/locked"));
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    /** The user enters the credential for the first time since the phone started. */
    public void unlock() {
        try {
            Files.delete(credentialEncrypted());
            Files.move(folder.resolve("user/encrypted"), credentialEncrypted());
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    /** Deletes the app's data and keys, as "Clear storage" and uninstalling do. */
    public void clearAppData() {
        keystore.deleteEverything();
        delete(credentialEncrypted().toFile());
        delete(folder.resolve("user_de/0").resolve(packageName).toFile());
        if (!credentialEncrypted().toFile().mkdirs()) throw new IllegalStateException("no data folder");
    }

    public boolean isLockedSinceBoot() { return Files.isSymbolicLink(credentialEncrypted()); }

    /** The app's data folder in credential-encrypted storage. */
    public Path credentialEncrypted() { return folder.resolve("user/0").resolve(packageName); }

    private static void delete(File file) {
        File[] children = file.listFiles();
        if (children != null && !Files.isSymbolicLink(file.toPath())) for (File child : children) delete(child);
        if (Files.exists(file.toPath(), LinkOption.NOFOLLOW_LINKS) && !file.delete()) throw new IllegalStateException("cannot delete " + file);
    }

    private final class AppContext extends Context {
        private final boolean isDeviceProtected;

        AppContext(boolean isDeviceProtected) { this.isDeviceProtected = isDeviceProtected; }

        @Override
        public Context getApplicationContext() { return new AppContext(false); }

        @Override
        public String getPackageName() { return packageName; }

        @Override
        public File getNoBackupFilesDir() {
            Path data = isDeviceProtected ? folder.resolve("user_de/0").resolve(packageName) : credentialEncrypted();
            File directory = data.resolve("no_backup").toFile();
            // Android logs a failure and returns the path.
            if (!directory.isDirectory() && !directory.mkdir()) android.util.Log.println(android.util.Log.WARN, "ContextImpl", "Failed to ensure no_backup");
            return directory;
        }

        @Override
        public Object getSystemService(String name) {
            if (!name.equals(UserManager.class.getName())) return null;
            return new UserManager() {
                @Override
                public boolean isUserUnlocked() {
                    userManagerCalls.incrementAndGet();
                    return !isLockedSinceBoot();
                }
            };
        }

        @Override
        public Context createDeviceProtectedStorageContext() { return new AppContext(true); }

        @Override
        public boolean isDeviceProtectedStorage() { return isDeviceProtected; }
    }
}
