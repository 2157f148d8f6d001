package ai.synheart.auth.backend;

import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.apache.catalina.startup.Tomcat;

/** The server that {@code testing/drive.py} drives, on Tomcat. */
public final class Subject extends HttpServlet {
    private static final long serialVersionUID = 1;
    private static long now;
    private static long monotonic;

    private Subject() {
    }

    @Override
    protected void service(HttpServletRequest request, HttpServletResponse response) throws IOException {
        Outcome.Verification found = SynheartFilter.verificationOf(request);
        Map<String, Object> answer = new LinkedHashMap<>();
        Identity identity = found.identity();
        answer.put("identity", identity == null ? null : Map.of(
            "app_id", identity.appID(), "device_id", identity.deviceID(), "platform", identity.platform(),
            "assurance", json(identity.assurance()), "signature_scheme", (long) identity.signatureScheme(),
            "key_age_seconds", identity.keyAgeSeconds()));
        answer.put("observed", found.observed());
        answer.put("body", Base64.getEncoder().encodeToString(request.getInputStream().readAllBytes()));
        List<Object> reserved = new ArrayList<>();
        for (String name : Collections.list(request.getHeaderNames())) {
            if (name.toLowerCase(Locale.ROOT).matches(".*(verified|identity).*")) reserved.add(name);
        }
        answer.put("reserved", reserved);
        response.getOutputStream().write(Json.text(answer).getBytes(StandardCharsets.UTF_8));
    }

    private static Map<String, Object> json(Assurance assurance) {
        return Map.of("app", assurance.app(), "key", assurance.key(), "labels", assurance.labels());
    }

    private static Verifier verifier(Map<String, Object> start, String name) throws Json.Malformed {
        Map<String, Object> options = Json.asObject(Json.asObject(start.get("instances")).get(name));
        Verifier.Builder builder = Verifier.asking((String) start.get("service"), (String) start.get("credential"));
        long quick = Math.round(((Number) start.get("quick_timeout")).doubleValue() * 1000);
        builder.timeout(name.equals("quick") ? Duration.ofMillis(quick) : Duration.ofSeconds(20));
        if (options.get("origin") instanceof String origin) builder.origin(origin);
        if (options.get("trusted_proxies") instanceof List<?> proxies) {
            builder.trustedProxies(proxies.stream().map(String.class::cast).toList());
        }
        if (options.get("body_limit") instanceof Long limit) builder.bodyLimit(limit.intValue());
        if (options.get("attempts") instanceof Long attempts) builder.attempts(attempts.intValue());
        return builder.build();
    }

    private static Map<String, Object> tokens(TokenVerifier verifier, String token) throws InterruptedException {
        try {
            DeviceToken found = verifier.verify(token);
            return Map.of(
                "outcome", "valid", "device_id", found.deviceID(), "app_id", found.appID(), "channel", found.channel(),
                "platform", found.platform(), "assurance", json(found.assurance()), "expires_at", found.expiresAt().getEpochSecond());
        } catch (TokenRefused error) {
            return Map.of("outcome", "refused");
        } catch (KeysUnavailable error) {
            return Map.of("outcome", "unavailable");
        }
    }

    private static TokenVerifier tokenVerifier(Map<String, Object> question) {
        List<?> channels = (List<?>) question.get("channels");
        return TokenVerifier.of((String) question.get("issuer"), (String) question.get("audience"))
            .jwksURL((String) question.get("jwks_url")).tokenType((String) question.get("token_type"))
            .channels(channels.stream().map(String.class::cast).toList()).leeway((Long) question.get("leeway"))
            .timeout(Duration.ofSeconds(20)).clocks(() -> now, () -> monotonic).build();
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        Map<String, Object> start = Json.object(input.readLine().getBytes(StandardCharsets.UTF_8));
        Map<String, SynheartFilter> filters = new HashMap<>();
        for (String name : Json.asObject(start.get("instances")).keySet()) filters.put(name, new SynheartFilter(verifier(start, name)));
        Filter chosen = (request, response, chain) -> {
            String name = ((HttpServletRequest) request).getServerName().split("\\.")[0];
            SynheartFilter filter = filters.getOrDefault(name, filters.get("origin"));
            FilterChain twice = (verified, answer) -> filter.doFilter(verified, answer, chain);
            filter.doFilter(request, response, name.equals("twice") ? twice : chain);
        };
        Tomcat tomcat = new Tomcat();
        tomcat.setBaseDir(System.getProperty("java.io.tmpdir"));
        tomcat.setPort(0);
        tomcat.getConnector().setProperty("address", "127.0.0.1");
        // Tomcat refuses %2F otherwise.
        tomcat.getConnector().setEncodedSolidusHandling("passthrough");
        tomcat.addContext("", null).addServletContainerInitializer((classes, servlets) -> {
            servlets.addFilter("chosen", chosen).addMappingForUrlPatterns(null, false, "/*");
            servlets.addServlet("app", new Subject()).addMapping("/");
        }, null);
        tomcat.start();
        System.out.println(Json.text(Map.of("port", (long) tomcat.getConnector().getLocalPort())));
        TokenVerifier verifier = null;
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            Map<String, Object> question = Json.object(line.getBytes(StandardCharsets.UTF_8));
            if ("verifier".equals(question.get("do"))) {
                verifier = tokenVerifier(question);
                System.out.println("{}");
                continue;
            }
            now = (Long) question.get("now");
            monotonic = (Long) question.get("monotonic");
            System.out.println(Json.text(tokens(verifier, (String) question.get("token"))));
        }
        System.exit(0);
    }
}
