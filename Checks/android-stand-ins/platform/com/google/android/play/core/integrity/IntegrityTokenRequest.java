package com.google.android.play.core.integrity;

import androidx.annotation.Nullable;

public abstract class IntegrityTokenRequest {
    public abstract String nonce();

    @Nullable
    public abstract Long cloudProjectNumber();

    public static Builder builder() {
        return new Builder() {
            private String nonce;
            private Long number;

            @Override
            public Builder setNonce(String nonce) { this.nonce = nonce; return this; }

            @Override
            public Builder setCloudProjectNumber(long number) { this.number = number; return this; }

            @Override
            public IntegrityTokenRequest build() {
                if (nonce == null) throw new IllegalStateException("Missing required properties: nonce");
                String nonce = this.nonce;
                Long number = this.number;
                return new IntegrityTokenRequest() {
                    @Override
                    public String nonce() { return nonce; }

                    @Override
                    public Long cloudProjectNumber() { return number; }
                };
            }
        };
    }

    public abstract static class Builder {
        public Builder() {}

        public abstract Builder setNonce(String nonce);

        public abstract Builder setCloudProjectNumber(long number);

        public abstract IntegrityTokenRequest build();
    }
}
