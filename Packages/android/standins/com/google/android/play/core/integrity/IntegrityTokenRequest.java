package com.google.android.play.core.integrity;

public abstract class IntegrityTokenRequest {
    public abstract String nonce();

    public abstract Long cloudProjectNumber();

    public static Builder builder() { return new Builder(); }

    public static class Builder {
        private String nonce;
        private Long cloudProjectNumber;

        public Builder setNonce(String nonce) { this.nonce = nonce; return this; }

        public Builder setCloudProjectNumber(long number) { cloudProjectNumber = number; return this; }

        public IntegrityTokenRequest build() {
            String nonce = this.nonce;
            Long number = cloudProjectNumber;
            if (nonce == null) throw new IllegalStateException("no nonce");
            return new IntegrityTokenRequest() {
                @Override
                public String nonce() { return nonce; }

                @Override
                public Long cloudProjectNumber() { return number; }
            };
        }
    }
}
