package ai.synheart.auth.backend;

import java.util.Map;

/** The result for a request. */
public sealed interface Outcome {
    /**
     * The request may pass.
     *
     * @param identity who signed it; null if it passes only because its app is in observe mode
     * @param observed the code that the service would have refused it with, if it passes only because of observe mode; else null
     */
    record Verification(Identity identity, String observed) implements Outcome {
    }

    /** The request may not pass, and this is its answer. */
    record Refusal(int status, Map<String, String> headers, byte[] body) implements Outcome {
    }
}
