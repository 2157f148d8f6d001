package ai.synheart.auth.backend;

import java.io.IOException;
import java.lang.System.Logger.Level;
import java.net.InetAddress;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Asks one service about requests. Make one for each process and share it. Depends on no framework. */
public final class Verifier {
    private static final System.Logger LOG = System.getLogger("ai.synheart.auth.backend");
    private static final String CODE = "[A-Z0-9_]{1,64}";
    private static final String DEVICE = "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}";
    private static final String APP = "[A-Za-z0-9._-]{1,128}";
    private static final Pattern ORIGIN = Pattern.compile(
        "(https?)://((?:[A-Za-z0-9._~-]+|\\[[0-9A-Fa-f:.]+\\])(?::[0-9]{1,5})?)");
    /** The seconds of {@code Retry-After} if the service sends none. */
    private static final int RETRY_AFTER = 5;

    private final ServiceClient client;
    private final URI url;
    private final String credential;
    private final String scheme;
    private final String authority;
    private final List<Network> networks;
    private final int bodyLimit;
    private final int attempts;

    private Verifier(Builder builder) {
        if ((builder.origin == null) == builder.trustedProxies.isEmpty()) {
            throw new IllegalArgumentException(
                "name either origin or trustedProxies: the request itself proves neither scheme nor authority");
        }
        if (!builder.credential.matches("[\\x21-\\x7e]+")) {
            throw new IllegalArgumentException("the credential is empty, or has a character that no credential has");
        }
        if (builder.bodyLimit < 0 || builder.attempts < 1) {
            throw new IllegalArgumentException("bodyLimit must not be negative, and attempts must be at least 1");
        }
        URI service = URI.create(builder.service);
        client = new ServiceClient(service, builder.timeout, builder.insecureHTTP);
        if (!service.getRawPath().matches("/?") || service.getRawQuery() != null || service.getRawFragment() != null) {
            throw new IllegalArgumentException("expected an origin without a path, found " + service);
        }
        url = service.resolve("/auth/v1/verify");
        Matcher found = ORIGIN.matcher(builder.origin == null ? "" : builder.origin);
        if (builder.origin != null && !found.matches()) {
            throw new IllegalArgumentException("expected an origin such as https://api.example.com, found " + builder.origin);
        }
        scheme = builder.origin == null ? null : found.group(1);
        authority = builder.origin == null ? null : found.group(2);
        networks = builder.trustedProxies.stream().map(Network::of).toList();
        credential = builder.credential;
        bodyLimit = builder.bodyLimit;
        attempts = builder.attempts;
    }

    /**
     * Starts the configuration of a verifier that asks one service.
     *
     * @param service the service's origin, such as {@code https://auth.example.com}
     * @param credential the service credential of this backend. It is never logged
     */
    public static Builder asking(String service, String credential) {
        return new Builder(service, credential);
    }

    /** The configuration of a verifier. */
    public static final class Builder {
        private final String service;
        private final String credential;
        private String origin;
        private List<String> trustedProxies = List.of();
        private int bodyLimit = 1 << 20;
        private Duration timeout = Duration.ofSeconds(2);
        private int attempts = 3;
        private boolean insecureHTTP;

        private Builder(String service, String credential) {
            this.service = service;
            this.credential = credential == null ? "" : credential;
        }

        /** The scheme and authority that clients send their requests to, such as {@code https://api.example.com}. */
        public Builder origin(String origin) {
            this.origin = origin;
            return this;
        }

        /** In place of an origin: networks (CIDR) whose X-Forwarded-Proto and X-Forwarded-Host are believed. */
        public Builder trustedProxies(List<String> networks) {
            trustedProxies = List.copyOf(networks);
            return this;
        }

        /** How many bytes a body may have; 1 MiB by default. */
        public Builder bodyLimit(int bytes) {
            bodyLimit = bytes;
            return this;
        }

        /** The time limit of each attempt; 2 s by default. */
        public Builder timeout(Duration timeout) {
            this.timeout = timeout;
            return this;
        }

        /** The maximum number of attempts to ask the service about one request; 3 by default. */
        public Builder attempts(int attempts) {
            this.attempts = attempts;
            return this;
        }

        /** Allows plain http to a service that is not on loopback. */
        public Builder insecureHTTP(boolean allowed) {
            insecureHTTP = allowed;
            return this;
        }

        public Verifier build() {
            return new Verifier(this);
        }
    }

    int bodyLimit() {
        return bodyLimit;
    }

    /** Judges a request. Call it once for each request: the service refuses a second call as a replay. */
    public Outcome verify(Incoming request) throws InterruptedException {
        String name = UUID.randomUUID().toString();
        if (!isFramed(request)) return refused(400, "INVALID_REQUEST", "The body is not framed as the headers say.", name);
        if (request.body().length > bodyLimit) return tooLarge();
        String[] origin = scheme == null ? forwarded(request) : new String[] {scheme, authority};
        if (origin == null) {
            return refused(
                421, "MISDIRECTED_REQUEST", "The request did not come through a proxy that this backend trusts.", name);
        }
        byte[] question = Json.text(question(request, origin, name)).getBytes(StandardCharsets.UTF_8);
        return judge(ask(question), request, name);
    }

    /** The answer to a body beyond the limit. */
    Outcome.Refusal tooLarge() {
        return refused(413, "PAYLOAD_TOO_LARGE", "The body has more than " + bodyLimit + " bytes.", UUID.randomUUID().toString());
    }

    /** The answer to a form with more parameters than a request may have. */
    Outcome.Refusal tooManyParameters() {
        return refused(
            400, "INVALID_REQUEST", "The form has more than " + VerifiedRequest.PAIR_LIMIT + " parameters.", UUID.randomUUID().toString());
    }

    /** The answer if the request cannot be described to the service. Logs the reason, for the operator. */
    Outcome.Refusal impossible(String reason) {
        LOG.log(Level.ERROR, reason);
        return unavailable(UUID.randomUUID().toString(), -1);
    }

    /** The scheme and authority that a trusted proxy sent; null unless it sent exactly one of each. */
    private String[] forwarded(Incoming request) {
        List<String> schemes = Header.values(request.headers(), "X-Forwarded-Proto");
        List<String> authorities = Header.values(request.headers(), "X-Forwarded-Host");
        if (networks.stream().noneMatch(network -> network.contains(request.peer()))) return null;
        if (schemes.size() != 1 || authorities.size() != 1 || !schemes.get(0).matches("https?")) return null;
        if (!authorities.get(0).matches("[\\x21-\\x2b\\x2d-\\x7e]{1,300}")) return null;
        return new String[] {schemes.get(0), authorities.get(0)};
    }

    /** The service's answer, null if there was none. Retries failures, which the verification id makes safe. */
    private ServiceClient.Answer ask(byte[] question) throws InterruptedException {
        ServiceClient.Answer answer = null;
        Map<String, String> headers = Map.of("Authorization", "Bearer " + credential, "Content-Type", "application/json");
        for (int attempt = 0; attempt < attempts; attempt++) {
            if (attempt > 0) Thread.sleep(50L << attempt);
            try {
                answer = client.exchange("POST", url, headers, question);
            } catch (IOException error) {
                LOG.log(Level.WARNING, "the auth service did not answer: {0}", error.getMessage());
                continue;
            }
            // If the answer has Retry-After, do not retry: the phone would wait too long.
            if (answer.status() < 500 || answer.retryAfter() >= 0) break;
        }
        return answer;
    }

    private Outcome judge(ServiceClient.Answer answer, Incoming request, String name) {
        if (answer == null) return unavailable(name, -1);
        Map<String, Object> body;
        try {
            body = answer.body() == null ? Map.of() : Json.object(answer.body());
        } catch (Json.Malformed error) {
            body = Map.of();
        }
        String code = text(body.get("error"), CODE);
        int status = answer.status();
        if (status == 200) {
            Outcome found = passed(body, request);
            if (found != null) return found;
        } else if (status >= 400 && status < 500 && status != 429 && code != null) {
            if (code.equals("UNAUTHORIZED") || code.equals("FORBIDDEN")) {
                LOG.log(Level.ERROR, "the auth service refuses this backend''s credential ({0}): see `synheart-auth credentials list`, "
                    + "and create one of role service for the app", code);
                return unavailable(name, 30);
            }
            if (Boolean.FALSE.equals(body.get("verified"))) return relayed(answer, body, code, name);
        }
        if (status != 429 && status < 500) {
            LOG.log(Level.ERROR, "the auth service gave no verdict to a question: status {0}, code {1}, id {2}", status, code, name);
        }
        return unavailable(name, answer.retryAfter());
    }

    private static Map<String, Object> question(Incoming request, String[] origin, String name) {
        int mark = request.target().indexOf('?');
        Map<String, Object> question = new LinkedHashMap<>();
        question.put("method", request.method());
        question.put("scheme", origin[0]);
        question.put("authority", origin[1]);
        question.put("path", mark < 0 ? request.target() : request.target().substring(0, mark));
        question.put("query", mark < 0 ? null : request.target().substring(mark + 1));
        List<Object> told = new ArrayList<>();
        for (Header header : request.headers()) if (header.isAskedAbout()) told.add(List.of(header.name(), header.value()));
        question.put("headers", told);
        question.put("verification_id", name);
        // Signature scheme 2 signs the digest of the body, so the service does not need the body itself.
        boolean isTwo = !Header.values(request.headers(), "Signature-Input").isEmpty()
            && Header.values(request.headers(), "X-Synheart-Sig-Version").isEmpty();
        byte[] bytes = isTwo ? sha256(request.body()) : request.body();
        question.put(isTwo ? "body_sha256" : "body", Base64.getEncoder().encodeToString(bytes));
        return question;
    }

    /**
     * Whether the headers frame the body unambiguously. If there is a {@code Content-Length}, it must occur once, be the
     * body's length, and have no {@code Transfer-Encoding} beside it. Ambiguous framing allows request smuggling.
     */
    private static boolean isFramed(Incoming request) {
        List<String> lengths = Header.values(request.headers(), "Content-Length");
        if (lengths.isEmpty()) return true;
        if (lengths.size() > 1 || !Header.values(request.headers(), "Transfer-Encoding").isEmpty()) return false;
        return lengths.get(0).matches("[0-9]{1,15}") && Long.parseLong(lengths.get(0)) == request.body().length;
    }

    /** The verdict in an answer with status 200; null if it has none. */
    private static Outcome.Verification passed(Map<String, Object> body, Incoming request) {
        String observed = text(body.get("observed"), CODE);
        if (Boolean.FALSE.equals(body.get("verified")) && observed != null) return new Outcome.Verification(null, observed);
        if (!Boolean.TRUE.equals(body.get("verified")) || body.get("observed") != null) return null;
        String app = text(body.get("app_id"), APP);
        String device = text(body.get("device_id"), DEVICE);
        String platform = text(body.get("platform"), "ios|android");
        Assurance assurance = Assurance.of(body);
        if (app == null || device == null || platform == null || assurance == null) return null;
        // App and device must be those that the request names. Otherwise the answer is about another request.
        if (!Header.values(request.headers(), "X-App-ID").equals(List.of(app))) return null;
        if (!Header.values(request.headers(), "X-Device-ID").equals(List.of(device))) return null;
        if (!(body.get("signature_scheme") instanceof Long scheme) || scheme < 1 || scheme > 2) return null;
        if (!(body.get("key_age_seconds") instanceof Long age) || age < 0) return null;
        return new Outcome.Verification(new Identity(app, device, platform, assurance, scheme.intValue(), age), null);
    }

    private static String text(Object value, String form) {
        return value instanceof String text && text.matches(form) ? text : null;
    }

    /** Passes a verdict of the service on to the phone. Keeps only what the phone needs to recover. */
    private static Outcome.Refusal relayed(ServiceClient.Answer answer, Map<String, Object> body, String code, String name) {
        Map<String, String> headers = new LinkedHashMap<>();
        String moment = answer.header("X-Synheart-Server-Time");
        if (moment.matches("[0-9]{10}")) headers.put("X-Synheart-Server-Time", moment);
        String demand = answer.header("X-Synheart-Assertion");
        if (demand.matches("[\\x20-\\x7e]{1,1000}")) headers.put("X-Synheart-Assertion", demand);
        if (answer.retryAfter() >= 0) headers.put("Retry-After", String.valueOf(answer.retryAfter()));
        return refusal(
            answer.status(), headers, code,
            body.get("message") instanceof String message ? cut(message, 500) : "The request was refused.",
            body.get("request_id") instanceof String id ? cut(id, 128) : name,
            body.get("server_timestamp") instanceof Long time ? time : Instant.now().getEpochSecond());
    }

    private static String cut(String text, int length) {
        return text.length() > length ? text.substring(0, length) : text;
    }

    /** A refusal that this backend itself decides, in the protocol's form. */
    private static Outcome.Refusal refused(int status, String code, String message, String name) {
        return refusal(status, Map.of(), code, message, name, Instant.now().getEpochSecond());
    }

    /** The answer if the service gave no verdict: the request does not pass. */
    private static Outcome.Refusal unavailable(String name, int seconds) {
        return refusal(
            503, Map.of("Retry-After", String.valueOf(seconds < 0 ? RETRY_AFTER : seconds)), "SERVICE_UNAVAILABLE",
            "The request cannot be verified now.", name, Instant.now().getEpochSecond());
    }

    private static Outcome.Refusal refusal(
        int status, Map<String, String> more, String code, String message, String id, long time) {
        Map<String, Object> body = new LinkedHashMap<>();
        body.put("error", code);
        body.put("message", message);
        body.put("request_id", id);
        body.put("server_timestamp", time);
        Map<String, String> headers = new LinkedHashMap<>(more);
        headers.put("Content-Type", "application/json");
        headers.put("Cache-Control", "no-store");
        headers.put("X-Synheart-Error", code);
        return new Outcome.Refusal(status, headers, Json.text(body).getBytes(StandardCharsets.UTF_8));
    }

    private static byte[] sha256(byte[] bytes) {
        try {
            return MessageDigest.getInstance("SHA-256").digest(bytes);
        } catch (NoSuchAlgorithmException error) {
            throw new IllegalStateException(error);
        }
    }

    /** Addresses with a common prefix. */
    private record Network(byte[] address, int length) {
        static Network of(String text) {
            String[] parts = text.split("/", -1);
            byte[] address = parse(parts[0]);
            int bits = address == null ? 0 : address.length * 8;
            boolean hasLength = parts.length == 2 && parts[1].matches("[0-9]{1,3}") && Integer.parseInt(parts[1]) <= bits;
            if (address == null || !hasLength) throw new IllegalArgumentException("expected a network such as 10.0.0.0/8, found " + text);
            return new Network(address, Integer.parseInt(parts[1]));
        }

        boolean contains(String peer) {
            byte[] other = peer == null ? null : parse(peer.replaceFirst("%.*", ""));
            if (other == null || other.length != address.length) return false;
            for (int bit = 0; bit < length; bit++) {
                int mask = 0x80 >> bit % 8;
                if ((address[bit / 8] & mask) != (other[bit / 8] & mask)) return false;
            }
            return true;
        }

        /** Parses only address literals: {@code getByName} would look up a name. An IPv4-mapped IPv6 address becomes IPv4. */
        private static byte[] parse(String text) {
            if (!text.matches("[0-9]{1,3}(\\.[0-9]{1,3}){3}|[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*")) return null;
            try {
                return InetAddress.getByName(text).getAddress();
            } catch (IOException error) {
                return null;
            }
        }
    }
}
