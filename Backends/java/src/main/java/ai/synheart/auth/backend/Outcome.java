package ai.synheart.auth.backend;

import java.util.Map;

/** The result for a request. */
public sealed interface Outcome {
    /**
     * The request may pass.
     *
     * @param identity who signed it; null in observe mode, where the service would have refused it
     * @param observed the code that the service would have refused it with, in observe mode; else null
     */
    record Verification(Identity identity, String observed) implements Outcome {
    }

    /** The request may not pass, and this is its answer. */
    record Refusal(int status, Map<String, String> headers, byte[] body) implements Outcome {
    }
}
