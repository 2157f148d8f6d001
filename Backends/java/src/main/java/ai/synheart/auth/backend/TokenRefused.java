package ai.synheart.auth.backend;

/** The token is not one that this backend accepts: answer 401. The message is for the log. */
public final class TokenRefused extends Exception {
    private static final long serialVersionUID = 1;

    TokenRefused(String reason) {
        super(reason);
    }
}
