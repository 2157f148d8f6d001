package com.google.android.play.core.integrity;

public abstract class IntegrityTokenRequest {
    public abstract String nonce();

    public static Builder builder() {
        return new Builder() {
            private String nonce;

            @Override
            public Builder setNonce(String nonce) {
                this.nonce = nonce;
                return this;
            }

            @Override
            public IntegrityTokenRequest build() {
                return new IntegrityTokenRequest() {
                    @Override
                    public String nonce() { return nonce; }
                };
            }
        };
    }

    public abstract static class Builder {
        public abstract Builder setNonce(String nonce);

        public abstract IntegrityTokenRequest build();
    }
}
