package android.security;

import android.os.Build;

/** What the Keystore says about a failure. Hidden before API 33, though exceptions carried it as their cause. */
public class KeyStoreException extends Exception {
    public static final int ERROR_OTHER = 1, ERROR_USER_AUTHENTICATION_REQUIRED = 2, ERROR_KEYSTORE_UNINITIALIZED = 3,
        ERROR_INTERNAL_SYSTEM_ERROR = 4, ERROR_PERMISSION_DENIED = 5, ERROR_KEY_DOES_NOT_EXIST = 6, ERROR_KEY_CORRUPTED = 7,
        ERROR_ID_ATTESTATION_FAILURE = 8, ERROR_ATTESTATION_CHALLENGE_TOO_LARGE = 9, ERROR_KEYMINT_FAILURE = 10,
        ERROR_KEYSTORE_FAILURE = 11, ERROR_UNIMPLEMENTED = 12, ERROR_INCORRECT_USAGE = 13, ERROR_KEY_NOT_TEMPORALLY_VALID = 14,
        ERROR_KEY_OPERATION_EXPIRED = 15, ERROR_ATTESTATION_KEYS_UNAVAILABLE = 16,
        ERROR_DEVICE_REQUIRES_UPGRADE_FOR_ATTESTATION = 17;
    public static final int RETRY_NEVER = 1, RETRY_WITH_EXPONENTIAL_BACKOFF = 2, RETRY_WHEN_CONNECTIVITY_AVAILABLE = 3,
        RETRY_AFTER_NEXT_REBOOT = 4;

    private final int code;
    private final int retryPolicy;

    /** An exception for an internal code of the Keystore (positive) or of KeyMint (negative). */
    public KeyStoreException(int code, String message, int retryPolicy) {
        super(message);
        this.code = code;
        this.retryPolicy = retryPolicy;
    }

    /** The codes that Android documents for the internal ones. */
    public int getNumericErrorCode() {
        isPublic();
        switch (code) {
            case 2: case -26: case -72: return ERROR_USER_AUTHENTICATION_REQUIRED;
            case 3: return ERROR_KEYSTORE_UNINITIALIZED;
            case 4: return ERROR_INTERNAL_SYSTEM_ERROR;
            case 6: return ERROR_PERMISSION_DENIED;
            case 7: case 17: return ERROR_KEY_DOES_NOT_EXIST;
            case 8: return ERROR_KEY_CORRUPTED;
            case 22: return ERROR_ATTESTATION_KEYS_UNAVAILABLE;
            case -28: return ERROR_KEY_OPERATION_EXPIRED;
            case -66: return ERROR_ID_ATTESTATION_FAILURE;
            case -68: case -100: return ERROR_UNIMPLEMENTED;
            default: return code > 0 ? ERROR_KEYSTORE_FAILURE : ERROR_KEYMINT_FAILURE;
        }
    }

    public boolean isTransientFailure() {
        isPublic();
        return code == -28 || code == -48 || code == -49 || code == -54 || code == 22 && retryPolicy != RETRY_NEVER;
    }

    public boolean isSystemError() {
        isPublic();
        return isTransientFailure() || code == 3 || code == 4 || code == 22 || code == -66 || code == -68 || code == -100 || code == -1000;
    }

    /** API 34. */
    public int getRetryPolicy() {
        if (Build.VERSION.SDK_INT < 34) throw new NoSuchMethodError("getRetryPolicy");
        return retryPolicy;
    }

    private static void isPublic() {
        if (Build.VERSION.SDK_INT < 33) throw new NoSuchMethodError("android.security.KeyStoreException is hidden before API 33");
    }

    @Override
    public String toString() { return super.toString() + " (internal Keystore code: " + code + ")"; }
}
