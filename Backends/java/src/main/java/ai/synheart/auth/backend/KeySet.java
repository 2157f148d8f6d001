package ai.synheart.auth.backend;

import java.io.IOException;
import java.lang.System.Logger.Level;
import java.net.URI;
import java.security.PublicKey;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.LongSupplier;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The published keys: kept for their max-age, read again for an unknown kid at most once a minute. */
final class KeySet {
    private static final System.Logger LOG = System.getLogger("ai.synheart.auth.backend");
    // Seconds for which a key set is fresh: its max-age, limited to these bounds, or USUAL if it has none.
    private static final long SHORTEST = 60;
    private static final long USUAL = 300;
    private static final long LONGEST = 3600;
    /** Seconds for which an old key set stays valid while the service cannot be reached. */
    private static final long STALE = 3600;
    // Seconds between two attempts to read the keys: for an unknown kid, and after a failure.
    private static final long UNKNOWN_PAUSE = 60;
    private static final long FAILURE_PAUSE = 5;
    private static final Pattern MAX_AGE = Pattern.compile("(?:^|[\\s,])max-age=([0-9]{1,9})(?:$|[\\s,])");

    private final URI url;
    private final ServiceClient client;
    private final LongSupplier monotonic;
    private volatile Published published;
    private Long askedAt;
    private boolean failed;

    /** A key set, when it was read, and the seconds for which it is fresh. */
    private record Published(Map<String, PublicKey> keys, long readAt, long life) {
        boolean isOld(long now) {
            return now - readAt >= life;
        }
    }

    KeySet(URI url, Duration timeout, boolean insecureHTTP, LongSupplier monotonic) {
        this.url = url;
        this.monotonic = monotonic;
        client = new ServiceClient(url, timeout, insecureHTTP);
    }

    /** The key; null if it is not published. A caller that needs a known, fresh key does not wait for a running read. */
    PublicKey key(String kid) throws KeysUnavailable, InterruptedException {
        Published found = published;
        if (found == null || found.isOld(monotonic.getAsLong()) || !found.keys().containsKey(kid)) found = readIfDue(kid);
        if (found == null || monotonic.getAsLong() - found.readAt() >= found.life() + STALE) throw new KeysUnavailable();
        return found.keys().get(kid);
    }

    /** Reads the keys again if that is due. One read at a time, because concurrent reads would fetch the same key set. */
    private synchronized Published readIfDue(String kid) throws InterruptedException {
        long now = monotonic.getAsLong();
        boolean isOld = published == null || published.isOld(now);
        if (isOld || !published.keys().containsKey(kid)) {
            long pause = failed ? FAILURE_PAUSE : isOld ? 0 : UNKNOWN_PAUSE;
            if (askedAt == null || now - askedAt >= pause) read(now);
        }
        return published;
    }

    private void read(long now) throws InterruptedException {
        askedAt = now;
        failed = true;
        ServiceClient.Answer answer;
        try {
            answer = client.exchange("GET", url, Map.of("Accept", "application/json"), null);
        } catch (IOException error) {
            LOG.log(Level.WARNING, "the auth service''s keys could not be read: {0}", error.getMessage());
            return;
        }
        Map<String, PublicKey> found = answer.status() == 200 && answer.body() != null ? keys(answer.body()) : null;
        if (found == null) {
            LOG.log(Level.WARNING, "the auth service''s keys could not be read: status {0}", answer.status());
            return;
        }
        Matcher age = MAX_AGE.matcher(answer.header("Cache-Control"));
        long life = age.find() ? Math.min(Math.max(Long.parseLong(age.group(1)), SHORTEST), LONGEST) : USUAL;
        published = new Published(found, now, life);
        failed = false;
    }

    /** The public keys that verify tokens, by kid; null if the body is no valid key set. Skips keys of other types. */
    private static Map<String, PublicKey> keys(byte[] body) {
        try {
            if (!(Json.object(body).get("keys") instanceof List<?> listed)) return null;
            Map<String, PublicKey> keys = new HashMap<>();
            for (Object element : listed) {
                Map<String, Object> jwk = Json.asObject(element);
                if (!"EC".equals(jwk.get("kty")) || !"P-256".equals(jwk.get("crv")) || !"sig".equals(jwk.getOrDefault("use", "sig"))
                    || !"ES256".equals(jwk.getOrDefault("alg", "ES256"))) {
                    continue;
                }
                if (!(jwk.get("kid") instanceof String kid) || !(jwk.get("x") instanceof String x) || !(jwk.get("y") instanceof String y)) {
                    return null;
                }
                PublicKey key = P256.key(TokenVerifier.base64url(x), TokenVerifier.base64url(y));
                if (key == null) return null;
                keys.put(kid, key);
            }
            return keys;
        } catch (Json.Malformed | TokenRefused error) {
            return null;
        }
    }
}
