package android.security;

/** Makes exceptions that on Android only the system makes. */
public final class StandInKeyStoreExceptions { // stand-in only
    /** The status of remote provisioning that an exception with code 22 (OUT_OF_KEYS) has. */
    public enum Provisioning { TEMPORARILY_UNAVAILABLE, REFUSED, PENDING_CONNECTIVITY, PENDING_SOFTWARE_REBOOT } // stand-in only

    private StandInKeyStoreExceptions() {}

    /** An exception for an internal code. */
    public static KeyStoreException of(int code, String message, Provisioning provisioning) {
        return new KeyStoreException(code, message, provisioning.ordinal() + KeyStoreException.RKP_TEMPORARILY_UNAVAILABLE);
    }

    /** The internal code of an exception. */
    public static int code(KeyStoreException error) { return error.internalCode(); }
}
