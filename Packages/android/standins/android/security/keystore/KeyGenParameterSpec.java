package android.security.keystore;

import java.security.spec.AlgorithmParameterSpec;
import java.util.Date;

/** The part of a key's specification that the module uses. */
public final class KeyGenParameterSpec implements AlgorithmParameterSpec {
    private final Builder from;

    private KeyGenParameterSpec(Builder from) { this.from = from; }

    public String getKeystoreAlias() { return from.alias; }
    public int getPurposes() { return from.purposes; }
    public String[] getDigests() { return from.digests.clone(); }
    public AlgorithmParameterSpec getAlgorithmParameterSpec() { return from.algorithm; }
    public int getKeySize() { return from.keySize; }
    public byte[] getAttestationChallenge() { return from.challenge == null ? null : from.challenge.clone(); }
    public boolean isStrongBoxBacked() { return from.isStrongBoxBacked; }
    public boolean isUserAuthenticationRequired() { return from.isUserAuthenticationRequired; }
    public String[] getBlockModes() { return from.blockModes.clone(); }
    public String[] getEncryptionPaddings() { return from.paddings.clone(); }
    public Date getCertificateNotBefore() { return from.notBefore; }

    public static final class Builder {
        private final String alias;
        private final int purposes;
        private String[] digests = {}, blockModes = {}, paddings = {};
        private AlgorithmParameterSpec algorithm;
        private int keySize = -1;
        private byte[] challenge;
        private boolean isStrongBoxBacked, isUserAuthenticationRequired;
        private Date notBefore;

        public Builder(String alias, int purposes) {
            if (alias.isEmpty()) throw new IllegalArgumentException("keystoreAlias must not be empty");
            this.alias = alias;
            this.purposes = purposes;
        }

        public Builder setDigests(String... digests) { this.digests = digests.clone(); return this; }
        public Builder setAlgorithmParameterSpec(AlgorithmParameterSpec spec) { algorithm = spec; return this; }
        public Builder setKeySize(int bits) { keySize = bits; return this; }

        /** At most 128 bytes: the Keystore refuses more when it makes the key. */
        public Builder setAttestationChallenge(byte[] challenge) { this.challenge = challenge == null ? null : challenge.clone(); return this; }

        /** API 28. */
        public Builder setIsStrongBoxBacked(boolean isStrongBoxBacked) {
            if (android.os.Build.VERSION.SDK_INT < 28) throw new NoSuchMethodError("setIsStrongBoxBacked");
            this.isStrongBoxBacked = isStrongBoxBacked;
            return this;
        }

        public Builder setUserAuthenticationRequired(boolean isRequired) { isUserAuthenticationRequired = isRequired; return this; }
        public Builder setBlockModes(String... modes) { blockModes = modes.clone(); return this; }
        public Builder setEncryptionPaddings(String... paddings) { this.paddings = paddings.clone(); return this; }
        public Builder setCertificateNotBefore(Date date) { notBefore = date; return this; }
        public KeyGenParameterSpec build() { return new KeyGenParameterSpec(this); }
    }
}
