package android.security.keystore;

import androidx.annotation.NonNull;
import androidx.annotation.Nullable;
import java.security.spec.AlgorithmParameterSpec;
import java.util.Date;

/** The part of a key's specification that the SDK uses. */
public final class KeyGenParameterSpec implements AlgorithmParameterSpec {
    private final Builder from;

    private KeyGenParameterSpec(Builder from) { this.from = from; }

    @NonNull public String getKeystoreAlias() { return from.alias; }
    public int getPurposes() { return from.purposes; }
    @NonNull public String[] getDigests() { return from.digests.clone(); }
    @Nullable public AlgorithmParameterSpec getAlgorithmParameterSpec() { return from.algorithm; }
    public int getKeySize() { return from.keySize; }
    public byte[] getAttestationChallenge() { return from.challenge == null ? null : from.challenge.clone(); }
    public boolean isStrongBoxBacked() { return from.isStrongBoxBacked; }
    public boolean isUserAuthenticationRequired() { return from.isUserAuthenticationRequired; }
    @NonNull public String[] getBlockModes() { return from.blockModes.clone(); }
    @NonNull public String[] getEncryptionPaddings() { return from.paddings.clone(); }
    @NonNull public Date getCertificateNotBefore() { return from.notBefore; }

    public static final class Builder {
        private final String alias;
        private final int purposes;
        private String[] digests = {}, blockModes = {}, paddings = {};
        private AlgorithmParameterSpec algorithm;
        private int keySize = -1;
        private byte[] challenge;
        private boolean isStrongBoxBacked, isUserAuthenticationRequired;
        private Date notBefore;

        public Builder(@NonNull String alias, int purposes) {
            if (alias.isEmpty()) throw new IllegalArgumentException("keystoreAlias must not be empty");
            this.alias = alias;
            this.purposes = purposes;
        }

        @NonNull public Builder setDigests(String... digests) { this.digests = digests.clone(); return this; }
        public Builder setAlgorithmParameterSpec(@NonNull AlgorithmParameterSpec spec) { algorithm = spec; return this; }
        @NonNull public Builder setKeySize(int bits) { keySize = bits; return this; }

        /** Accepts a challenge of any length. When the key is created, the Keystore refuses more than 128 bytes. */
        @NonNull public Builder setAttestationChallenge(byte[] challenge) { this.challenge = challenge == null ? null : challenge.clone(); return this; }

        /** Since API 28. */
        @NonNull public Builder setIsStrongBoxBacked(boolean isStrongBoxBacked) {
            if (android.os.Build.VERSION.SDK_INT < 28) throw new NoSuchMethodError("setIsStrongBoxBacked");
            this.isStrongBoxBacked = isStrongBoxBacked;
            return this;
        }

        @NonNull public Builder setUserAuthenticationRequired(boolean isRequired) { isUserAuthenticationRequired = isRequired; return this; }
        @NonNull public Builder setBlockModes(String... modes) { blockModes = modes.clone(); return this; }
        @NonNull public Builder setEncryptionPaddings(String... paddings) { this.paddings = paddings.clone(); return this; }
        @NonNull public Builder setCertificateNotBefore(@NonNull Date date) { notBefore = date; return this; }
        @NonNull public KeyGenParameterSpec build() { return new KeyGenParameterSpec(this); }
    }
}
