package ai.synheart.auth.backend;

/** The published keys cannot be read now: answer 503. */
public final class KeysUnavailable extends Exception {
    private static final long serialVersionUID = 1;

    KeysUnavailable() {
        super("the auth service's keys could not be read");
    }
}
