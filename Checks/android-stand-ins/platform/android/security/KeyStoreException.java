package android.security;

import android.os.Build;
import androidx.annotation.Nullable;

/**
 * The Keystore's description of a failure. Before API 33 the class was hidden, but exceptions already had it as their cause.
 *
 * <p>Its constructors and some of its constants are hidden at every API level, so {@link StandInKeyStoreExceptions} makes the instances.
 */
public class KeyStoreException extends Exception {
    public static final int ERROR_OTHER = 1, ERROR_USER_AUTHENTICATION_REQUIRED = 2, ERROR_KEYSTORE_UNINITIALIZED = 3,
        ERROR_INTERNAL_SYSTEM_ERROR = 4, ERROR_PERMISSION_DENIED = 5, ERROR_KEY_DOES_NOT_EXIST = 6, ERROR_KEY_CORRUPTED = 7,
        ERROR_ID_ATTESTATION_FAILURE = 8, ERROR_ATTESTATION_CHALLENGE_TOO_LARGE = 9, ERROR_KEYMINT_FAILURE = 10,
        ERROR_KEYSTORE_FAILURE = 11, ERROR_UNIMPLEMENTED = 12, ERROR_INCORRECT_USAGE = 13, ERROR_KEY_NOT_TEMPORALLY_VALID = 14,
        ERROR_KEY_OPERATION_EXPIRED = 15, ERROR_ATTESTATION_KEYS_UNAVAILABLE = 16;
    private static final int DEVICE_REQUIRES_UPGRADE_FOR_ATTESTATION = 17;
    public static final int RETRY_NEVER = 1, RETRY_WITH_EXPONENTIAL_BACKOFF = 2, RETRY_WHEN_CONNECTIVITY_AVAILABLE = 3,
        RETRY_AFTER_NEXT_REBOOT = 4;
    static final int RKP_SUCCESS = 0, RKP_TEMPORARILY_UNAVAILABLE = 1, RKP_SERVER_REFUSED_ISSUANCE = 2, RKP_PENDING_CONNECTIVITY = 3,
        RKP_PENDING_SOFTWARE_REBOOT = 4;
    private static final int OUT_OF_KEYS = 22;

    private final int code, rkpStatus;

    /**
     * An exception for an internal code of the Keystore (positive) or of KeyMint (negative).
     *
     * @param rkpStatus the status of remote provisioning, which is used only for code 22
     */
    KeyStoreException(int code, @Nullable String message, int rkpStatus) {
        super(message);
        this.code = code;
        this.rkpStatus = code == OUT_OF_KEYS ? rkpStatus : RKP_SUCCESS;
    }

    public int getNumericErrorCode() {
        isPublic();
        return number();
    }

    private int number() {
        switch (code) {
            case 2: case -26: case -72: return ERROR_USER_AUTHENTICATION_REQUIRED;
            case 3: return ERROR_KEYSTORE_UNINITIALIZED;
            case 4: case 27: case 28: return ERROR_INTERNAL_SYSTEM_ERROR;
            case 6: return ERROR_PERMISSION_DENIED;
            case 7: case 17: return ERROR_KEY_DOES_NOT_EXIST;
            case 8: return ERROR_KEY_CORRUPTED;
            case 22: case 24: case 25: case 26: return ERROR_ATTESTATION_KEYS_UNAVAILABLE;
            case 23: return DEVICE_REQUIRES_UPGRADE_FOR_ATTESTATION;
            // Codes for wrong purposes, paddings, key formats, lengths and times, and for attestation without a challenge.
            case -2: case -3: case -5: case -8: case -10: case -11: case -13: case -14: case -16: case -17: case -18: case -21: case -22:
            case -34: case -35: case -36: case -37: case -40: case -51: case -52: case -53: case -57: case -58: case -59: case -63:
                return ERROR_INCORRECT_USAGE;
            // Codes for algorithms, sizes, modes, digests, curves, tags, rollback resistance and StrongBox that this hardware lacks.
            case -4: case -6: case -7: case -9: case -12: case -19: case -20: case -39: case -50: case -60: case -61: case -67: case -68:
            case -100: return ERROR_UNIMPLEMENTED;
            case -24: case -25: return ERROR_KEY_NOT_TEMPORALLY_VALID;
            case -28: return ERROR_KEY_OPERATION_EXPIRED;
            case -66: return ERROR_ID_ATTESTATION_FAILURE;
            default: return code > 0 ? ERROR_KEYSTORE_FAILURE : ERROR_KEYMINT_FAILURE;
        }
    }

    public boolean isTransientFailure() {
        isPublic();
        switch (code) {
            case -28: case -48: case -49: case -54: case -65: case 23: case 24: case 25: case 27: return true;
            case OUT_OF_KEYS: return rkpStatus != RKP_SUCCESS && rkpStatus != RKP_SERVER_REFUSED_ISSUANCE;
            default: return false;
        }
    }

    public boolean isSystemError() {
        isPublic();
        switch (code) {
            case -28: case -48: case -49: case -54: case -64: case -65: case -66: case -72: case -1000: case 3: case 4: return true;
            default: return code >= OUT_OF_KEYS && code <= 28 || number() == ERROR_UNIMPLEMENTED;
        }
    }

    public boolean requiresUserAuthentication() {
        isPublic();
        return number() == ERROR_USER_AUTHENTICATION_REQUIRED;
    }

    /**
     * Whether a retry may succeed, and when. Public since API 33, like the class. The value
     * {@link #RETRY_AFTER_NEXT_REBOOT} came with API 34.
     */
    public int getRetryPolicy() {
        isPublic();
        if (code == 24 || rkpStatus == RKP_PENDING_CONNECTIVITY) return RETRY_WHEN_CONNECTIVITY_AVAILABLE;
        if (code == 23 || rkpStatus == RKP_PENDING_SOFTWARE_REBOOT) return RETRY_AFTER_NEXT_REBOOT;
        return isTransientFailure() ? RETRY_WITH_EXPONENTIAL_BACKOFF : RETRY_NEVER;
    }

    /** Only for the stand-ins: the internal code. */
    int internalCode() { return code; }

    private static void isPublic() {
        if (Build.VERSION.SDK_INT < 33) throw new NoSuchMethodError("android.security.KeyStoreException is hidden before API 33");
    }

    @Override
    public String toString() {
        String codes = Build.VERSION.SDK_INT < 33 ? "" : String.format(" (public error code: %d internal Keystore code: %d)", number(), code);
        return super.toString() + codes;
    }
}
