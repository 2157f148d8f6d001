package com.google.android.play.core.integrity;

import com.google.android.gms.tasks.Task;
import java.util.Set;

/** Makes standard requests: after one slow preparation, they are answered fast. */
public interface StandardIntegrityManager {
    Task<StandardIntegrityTokenProvider> prepareIntegrityToken(PrepareIntegrityTokenRequest request);

    interface StandardIntegrityTokenProvider {
        Task<StandardIntegrityToken> request(StandardIntegrityTokenRequest request);
    }

    abstract class StandardIntegrityToken {
        public StandardIntegrityToken() {}

        public abstract String token();
    }

    abstract class PrepareIntegrityTokenRequest {
        /** Stand-in only: the number that the app set. {@code PlayStandIn} reads it. */
        public abstract long cloudProjectNumber();

        public static Builder builder() {
            return new Builder() {
                private Long number;

                @Override
                public Builder setCloudProjectNumber(long number) { this.number = number; return this; }

                @Override
                public PrepareIntegrityTokenRequest build() {
                    if (number == null) throw new IllegalStateException("Missing required properties: cloudProjectNumber");
                    long number = this.number;
                    return new PrepareIntegrityTokenRequest() {
                        @Override
                        public long cloudProjectNumber() { return number; }
                    };
                }
            };
        }

        public abstract static class Builder {
            public Builder() {}

            public abstract Builder setCloudProjectNumber(long number);

            public abstract PrepareIntegrityTokenRequest build();
        }
    }

    abstract class StandardIntegrityTokenRequest {
        public abstract String requestHash();

        public abstract Set<Integer> verdictOptOut();

        public static Builder builder() {
            return new Builder() {
                private String requestHash;
                private Set<Integer> optOut = Set.of();

                @Override
                public Builder setRequestHash(String hash) { requestHash = hash; return this; }

                @Override
                public Builder setVerdictOptOut(Set<Integer> optOut) { this.optOut = Set.copyOf(optOut); return this; }

                @Override
                public StandardIntegrityTokenRequest build() {
                    String hash = requestHash;
                    Set<Integer> verdicts = optOut;
                    return new StandardIntegrityTokenRequest() {
                        @Override
                        public String requestHash() { return hash; }

                        @Override
                        public Set<Integer> verdictOptOut() { return verdicts; }
                    };
                }
            };
        }

        public abstract static class Builder {
            public Builder() {}

            public abstract Builder setRequestHash(String hash);

            public abstract Builder setVerdictOptOut(Set<Integer> optOut);

            public abstract StandardIntegrityTokenRequest build();
        }
    }
}
