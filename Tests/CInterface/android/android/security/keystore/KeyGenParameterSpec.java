package android.security.keystore;

import java.security.spec.AlgorithmParameterSpec;

public final class KeyGenParameterSpec implements AlgorithmParameterSpec {
    private final Builder built;

    private KeyGenParameterSpec(Builder built) { this.built = built; }

    public String getKeystoreAlias() { return built.alias; }

    public byte[] getAttestationChallenge() { return built.challenge; }

    public boolean isStrongBoxBacked() { return built.isStrongBoxBacked; }

    public static final class Builder {
        private final String alias;
        private byte[] challenge;
        private boolean isStrongBoxBacked;

        public Builder(String keystoreAlias, int purposes) { alias = keystoreAlias; }

        public Builder setAlgorithmParameterSpec(AlgorithmParameterSpec spec) { return this; }

        public Builder setDigests(String... digests) { return this; }

        public Builder setAttestationChallenge(byte[] attestationChallenge) {
            challenge = attestationChallenge;
            return this;
        }

        public Builder setIsStrongBoxBacked(boolean isStrongBoxBacked) {
            this.isStrongBoxBacked = isStrongBoxBacked;
            return this;
        }

        public KeyGenParameterSpec build() { return new KeyGenParameterSpec(this); }
    }
}
