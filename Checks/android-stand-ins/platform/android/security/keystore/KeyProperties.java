package android.security.keystore;

public abstract class KeyProperties {
    public static final int PURPOSE_ENCRYPT = 1, PURPOSE_DECRYPT = 2, PURPOSE_SIGN = 4, PURPOSE_VERIFY = 8;
    public static final String KEY_ALGORITHM_EC = "EC", KEY_ALGORITHM_AES = "AES", DIGEST_SHA256 = "SHA-256", BLOCK_MODE_GCM = "GCM",
        ENCRYPTION_PADDING_NONE = "NoPadding";

    private KeyProperties() {}
}
