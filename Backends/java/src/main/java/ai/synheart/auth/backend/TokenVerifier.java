package ai.synheart.auth.backend;

import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.PublicKey;
import java.security.Signature;
import java.time.Duration;
import java.time.Instant;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.LongSupplier;

/** Checks the device tokens of one issuer offline, by the service's published keys. Make one for each process and share it. */
public final class TokenVerifier {
    private static final int TOKEN_LIMIT = 8192;
    private static final long LIFE = 600;

    private final Builder options;
    private final KeySet keys;

    private TokenVerifier(Builder options) {
        if (options.issuer.isEmpty() || options.audience.isEmpty() || options.tokenType.isEmpty()) {
            throw new IllegalArgumentException("issuer, audience and tokenType must not be empty");
        }
        if (options.leeway < 0 || options.leeway > 60) throw new IllegalArgumentException("leeway must be 0 to 60 seconds");
        this.options = options;
        String url = options.jwksURL == null
            ? options.issuer.replaceFirst("/+$", "") + "/auth/v1/.well-known/jwks.json" : options.jwksURL;
        keys = new KeySet(URI.create(url), options.timeout, options.insecureHTTP, options.monotonic);
    }

    /**
     * Starts the configuration of a verifier for the tokens of one issuer.
     *
     * @param issuer the expected {@code iss}: the service's public origin
     * @param audience the audience of this backend. It must match exactly
     */
    public static Builder of(String issuer, String audience) {
        return new Builder(issuer, audience);
    }

    /** The configuration of a verifier of tokens. */
    public static final class Builder {
        private final String issuer;
        private final String audience;
        private String jwksURL;
        private String tokenType = "synheart-device+jwt";
        private List<String> channels = List.of("production");
        private long leeway = 5;
        private Duration timeout = Duration.ofSeconds(2);
        private boolean insecureHTTP;
        private LongSupplier clock = () -> Instant.now().getEpochSecond();
        private LongSupplier monotonic = () -> System.nanoTime() / 1_000_000_000;

        private Builder(String issuer, String audience) {
            this.issuer = issuer;
            this.audience = audience;
        }

        /** Where the keys are; {@code <issuer>/auth/v1/.well-known/jwks.json} by default. */
        public Builder jwksURL(String url) {
            jwksURL = url;
            return this;
        }

        /** The expected {@code typ}: the app's {@code signature.token_type}. */
        public Builder tokenType(String type) {
            tokenType = type;
            return this;
        }

        /** The channels that are accepted; {@code production} alone by default. */
        public Builder channels(List<String> channels) {
            this.channels = List.copyOf(channels);
            return this;
        }

        /** How many seconds the clocks of the service and of this backend may differ: 5 by default, at most 60. */
        public Builder leeway(long seconds) {
            leeway = seconds;
            return this;
        }

        /** The time limit for reading the keys; 2 s by default. */
        public Builder timeout(Duration timeout) {
            this.timeout = timeout;
            return this;
        }

        /** Allows plain http to a service that is not on loopback. */
        public Builder insecureHTTP(boolean allowed) {
            insecureHTTP = allowed;
            return this;
        }

        /** The wall clock (Unix time) and a monotonic clock, both in seconds. For tests. */
        public Builder clocks(LongSupplier clock, LongSupplier monotonic) {
            this.clock = clock;
            this.monotonic = monotonic;
            return this;
        }

        public TokenVerifier build() {
            return new TokenVerifier(this);
        }
    }

    /** Checks the token that follows {@code Bearer} in the {@code Authorization} header. */
    public DeviceToken verify(String token) throws TokenRefused, KeysUnavailable, InterruptedException {
        if (token.length() > TOKEN_LIMIT) throw new TokenRefused("longer than 8192 characters");
        String[] parts = token.split("\\.", -1);
        if (parts.length != 3) throw new TokenRefused("not three parts");
        Map<String, Object> header = object(parts[0]);
        Map<String, Object> claims = object(parts[1]);
        byte[] signature = base64url(parts[2]);
        if (!"ES256".equals(header.get("alg")) || !options.tokenType.equals(header.get("typ")) || header.containsKey("crit")) {
            throw new TokenRefused("another alg or typ");
        }
        if (!(header.get("kid") instanceof String kid) || kid.isEmpty() || kid.length() > 128) throw new TokenRefused("no kid");
        PublicKey key = keys.key(kid);
        if (key == null) throw new TokenRefused("an unknown kid");
        if (!verifies(key, parts[0] + "." + parts[1], signature)) throw new TokenRefused("a wrong signature");
        return read(claims);
    }

    private static boolean verifies(PublicKey key, String message, byte[] signature) {
        // Some versions of Java accepted a signature of zeros (CVE-2022-21449).
        if (signature.length != 64 || !P256.isInRange(signature, 0) || !P256.isInRange(signature, 32)) return false;
        try {
            Signature verification = Signature.getInstance("SHA256withECDSAinP1363Format");
            verification.initVerify(key);
            verification.update(message.getBytes(StandardCharsets.US_ASCII));
            return verification.verify(signature);
        } catch (GeneralSecurityException error) {
            return false;
        }
    }

    private DeviceToken read(Map<String, Object> claims) throws TokenRefused {
        if (!options.issuer.equals(claims.get("iss"))) throw new TokenRefused("another issuer");
        if (!options.audience.equals(claims.get("aud"))) throw new TokenRefused("another audience");
        if (!(claims.get("iat") instanceof Long issued) || !(claims.get("exp") instanceof Long expires)
            || issued < 0 || expires < issued || expires - issued > LIFE) {
            throw new TokenRefused("no life of at most 600 seconds");
        }
        long now = options.clock.getAsLong();
        if (issued - now > options.leeway) throw new TokenRefused("not valid yet");
        if (now - expires >= options.leeway) throw new TokenRefused("expired");
        Map<String, String> texts = new HashMap<>();
        for (String name : List.of("sub", "app_id", "channel", "platform", "jti")) {
            if (!(claims.get(name) instanceof String text) || text.isEmpty()) throw new TokenRefused("a claim is missing");
            texts.put(name, text);
        }
        Assurance assurance = Assurance.of(claims);
        Map<String, Object> key;
        try {
            key = Json.asObject(Json.asObject(claims.get("cnf")).get("jwk"));
        } catch (Json.Malformed error) {
            throw new TokenRefused("a claim is missing");
        }
        if (assurance == null) throw new TokenRefused("a claim is missing");
        String channel = texts.get("channel");
        if (!options.channels.contains(channel)) throw new TokenRefused("another channel");
        if (channel.equals("production") && List.of("development", "test").contains(assurance.app())) {
            throw new TokenRefused("an assurance that production does not accept");
        }
        return new DeviceToken(
            texts.get("sub"), texts.get("app_id"), options.audience, channel, texts.get("platform"), assurance,
            Instant.ofEpochSecond(issued), Instant.ofEpochSecond(expires), texts.get("jti"), key);
    }

    private static Map<String, Object> object(String part) throws TokenRefused {
        try {
            return Json.object(base64url(part));
        } catch (Json.Malformed error) {
            throw new TokenRefused("no JSON object");
        }
    }

    /** Decodes base64url strictly: refuses padding, other characters, and text that differs from the encoder's output. */
    static byte[] base64url(String text) throws TokenRefused {
        try {
            byte[] bytes = Base64.getUrlDecoder().decode(text);
            if (Base64.getUrlEncoder().withoutPadding().encodeToString(bytes).equals(text)) return bytes;
        } catch (IllegalArgumentException error) {
            // The statement below refuses the token.
        }
        throw new TokenRefused("no base64url");
    }
}
