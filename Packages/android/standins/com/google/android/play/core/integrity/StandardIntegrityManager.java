package com.google.android.play.core.integrity;

import com.google.android.gms.tasks.Task;

/** Standard requests: prepared once, answered fast. */
public interface StandardIntegrityManager {
    Task<StandardIntegrityTokenProvider> prepareIntegrityToken(PrepareIntegrityTokenRequest request);

    interface StandardIntegrityTokenProvider {
        Task<StandardIntegrityToken> request(StandardIntegrityTokenRequest request);
    }

    abstract class StandardIntegrityToken {
        public abstract String token();
    }

    abstract class PrepareIntegrityTokenRequest {
        public abstract long cloudProjectNumber();

        public static Builder builder() { return new Builder(); }

        public static class Builder {
            private long cloudProjectNumber;

            public Builder setCloudProjectNumber(long number) { cloudProjectNumber = number; return this; }

            public PrepareIntegrityTokenRequest build() {
                long number = cloudProjectNumber;
                return new PrepareIntegrityTokenRequest() {
                    @Override
                    public long cloudProjectNumber() { return number; }
                };
            }
        }
    }

    abstract class StandardIntegrityTokenRequest {
        public abstract String requestHash();

        public static Builder builder() { return new Builder(); }

        public static class Builder {
            private String requestHash;

            public Builder setRequestHash(String hash) { requestHash = hash; return this; }

            public StandardIntegrityTokenRequest build() {
                String hash = requestHash;
                return new StandardIntegrityTokenRequest() {
                    @Override
                    public String requestHash() { return hash; }
                };
            }
        }
    }
}
