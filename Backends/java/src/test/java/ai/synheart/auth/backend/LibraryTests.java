package ai.synheart.auth.backend;

import com.sun.net.httpserver.HttpHandler;
import com.sun.net.httpserver.HttpServer;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.Filter;
import jakarta.servlet.FilterRegistration;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRegistration;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletRequestWrapper;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.security.PublicKey;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.catalina.Context;
import org.apache.catalina.startup.Tomcat;
import org.apache.tomcat.util.descriptor.web.ErrorPage;

/** Tests beyond the vectors: configuration, threads, form parameters. A plain program: it needs no framework. */
public final class LibraryTests {
    private static final String SECRET = "a-secret-of-this-test";
    private static final String SERVICE = "https://auth.example.com";
    private static final String ORIGIN = "https://api.example.com";
    private static int count;

    private LibraryTests() {
    }

    private interface Body {
        void run() throws Exception;
    }

    private static void test(String name, Body body) throws Exception {
        count++;
        try {
            body.run();
        } catch (Exception | AssertionError error) {
            System.err.println("failed: " + name);
            error.printStackTrace();
            // Otherwise the servers' threads would keep the program running.
            System.exit(1);
        }
    }

    private static void equal(Object found, Object expected) {
        if (!expected.equals(found)) throw new AssertionError(found + " instead of " + expected);
    }

    private static void refuses(Callable<?> body) throws Exception {
        try {
            body.call();
        } catch (IllegalArgumentException error) {
            equal(error.getMessage().contains(SECRET), false);
            return;
        }
        throw new AssertionError("not refused");
    }

    /** Imitates the auth service. Accepts every request, as the device that the request names. */
    private static String service() throws IOException {
        return listening(exchange -> {
            String device = "";
            try {
                for (Object line : (List<?>) Json.object(exchange.getRequestBody().readAllBytes()).get("headers")) {
                    List<?> pair = (List<?>) line;
                    if ("x-device-id".equalsIgnoreCase((String) pair.get(0))) device = (String) pair.get(1);
                }
            } catch (Json.Malformed error) {
                throw new IOException(error);
            }
            byte[] body = Json.text(Map.of(
                "verified", true, "app_id", "com.example.app", "device_id", device, "platform", "ios", "signature_scheme", 1L,
                "key_age_seconds", 1L, "assurance", Map.of("app", "app-attest", "key", "app-vouched", "labels", List.of())))
                .getBytes(StandardCharsets.UTF_8);
            exchange.sendResponseHeaders(200, body.length);
            exchange.getResponseBody().write(body);
            exchange.close();
        });
    }

    private static String listening(HttpHandler handler) throws IOException {
        HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 100);
        server.setExecutor(Executors.newCachedThreadPool(task -> {
            Thread thread = new Thread(task);
            thread.setDaemon(true);
            return thread;
        }));
        server.createContext("/", handler);
        server.start();
        return "http://127.0.0.1:" + server.getAddress().getPort();
    }

    private static Incoming request(String device, String peer) {
        return new Incoming("GET", "/", List.of(
            new Header("X-App-ID", "com.example.app"), new Header("X-Device-ID", device), new Header("X-Forwarded-Proto", "https"),
            new Header("X-Forwarded-Host", "api.example.com")), new byte[0], peer);
    }

    private static void configuration() throws Exception {
        for (String wrong : List.of("auth.example.com", "ftp://a", "https:///", SERVICE + "/auth", SERVICE + "?x", "https://a@b",
            "http://auth:8080", "http://localhost.evil.example")) {
            refuses(() -> Verifier.asking(wrong, SECRET).origin(ORIGIN).build());
        }
        for (String wrong : List.of("", SECRET + "\n", SECRET + " x", "\u00e9")) {
            refuses(() -> Verifier.asking(SERVICE, wrong).origin(ORIGIN).build());
        }
        for (String wrong : List.of("api.example.com", ORIGIN + "/", "https://a@b", "wss://a", ORIGIN + "\n")) {
            refuses(() -> Verifier.asking(SERVICE, SECRET).origin(wrong).build());
        }
        for (String wrong : List.of("*", "10.0.0.0/33", "10.0.0.0", "localhost/8", "10.0.0.0/8/8", "10.0.0.256/8")) {
            refuses(() -> Verifier.asking(SERVICE, SECRET).trustedProxies(List.of(wrong)).build());
        }
        refuses(() -> Verifier.asking(SERVICE, SECRET).build());
        refuses(() -> Verifier.asking(SERVICE, SECRET).origin(ORIGIN).trustedProxies(List.of("10.0.0.0/8")).build());
        refuses(() -> Verifier.asking(SERVICE, SECRET).origin(ORIGIN).attempts(0).build());
        refuses(() -> Verifier.asking(SERVICE, SECRET).origin(ORIGIN).bodyLimit(-1).build());
        refuses(() -> Verifier.asking(SERVICE, SECRET).origin(ORIGIN).timeout(Duration.ZERO).build());
        refuses(() -> TokenVerifier.of("https://a", "").build());
        refuses(() -> TokenVerifier.of("synheart-auth", "a").build());
        refuses(() -> TokenVerifier.of("https://a", "a").leeway(61).build());
        for (String local : List.of("http://127.0.0.1:8080", "http://[::1]:8080", "http://localhost")) {
            Verifier.asking(local, SECRET).origin(ORIGIN).build();
        }
        Verifier.asking("http://auth:8080", SECRET).origin(ORIGIN).insecureHTTP(true).build();
    }

    private static void threads(Verifier verifier) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(32);
        List<String> devices = new ArrayList<>();
        List<Future<Outcome>> found = new ArrayList<>();
        for (int index = 0; index < 200; index++) {
            String device = UUID.randomUUID().toString();
            devices.add(device);
            found.add(pool.submit(() -> verifier.verify(request(device, "127.0.0.1"))));
        }
        for (int index = 0; index < 200; index++) {
            equal(((Outcome.Verification) found.get(index).get()).identity().deviceID(), devices.get(index));
        }
        pool.shutdown();
    }

    private static void freshKey() throws Exception {
        // Any point of the curve is a valid public key. This is the curve's generator.
        byte[] keySet = ("{\"keys\": [{\"kty\": \"EC\", \"crv\": \"P-256\", \"kid\": \"known\", "
            + "\"x\": \"axfR8uEsQkf4vOblY6RA8ncDfYEt6zOg9KE5RdiYwpY\", \"y\": \"T-NC4v4af5uO5-tKfA-eFivOM1drMV7Oy7ZAaDe_UfU\"}]}")
            .getBytes(StandardCharsets.UTF_8);
        AtomicLong clock = new AtomicLong();
        CountDownLatch hangs = new CountDownLatch(1);
        CountDownLatch released = new CountDownLatch(1);
        URI url = URI.create(listening(exchange -> {
            if (clock.get() > 0) {
                hangs.countDown();
                try {
                    released.await();
                } catch (InterruptedException error) {
                    throw new IOException(error);
                }
            }
            exchange.sendResponseHeaders(200, keySet.length);
            exchange.getResponseBody().write(keySet);
            exchange.close();
        }));
        KeySet keys = new KeySet(url, Duration.ofSeconds(60), false, clock::get);
        equal(keys.key("known") != null, true);
        clock.set(100);
        ExecutorService pool = Executors.newCachedThreadPool();
        Future<PublicKey> unknown = pool.submit(() -> keys.key("unknown"));
        equal(hangs.await(20, TimeUnit.SECONDS), true);
        equal(pool.submit(() -> keys.key("known")).get(10, TimeUnit.SECONDS) != null, true);
        released.countDown();
        equal(unknown.get(20, TimeUnit.SECONDS) == null, true);
        pool.shutdown();
    }

    private static void json() throws Exception {
        equal(Json.text(Json.object(" {\"a\": [1, -2.5, \"\\u00e9\\n\", null, true], \"b\": {}} ".getBytes(StandardCharsets.UTF_8))),
            "{\"a\":[1,-2.5,\"\\u00e9\\u000a\",null,true],\"b\":{}}");
        for (String wrong : List.of("", "[]", "{", "{\"a\"}", "{\"a\":1,}", "{\"a\":1,\"a\":1}", "{\"a\":01}", "{\"a\":1}x", "{'a':1}",
            "{\"a\":\"\t\"}", "{\"a\":NaN}", "{\"a\":tru}", "{\"a\":\"\\u12\"}", "{\"a\":" + "[".repeat(17) + "]".repeat(17) + "}")) {
            try {
                Json.object(wrong.getBytes(StandardCharsets.UTF_8));
                throw new AssertionError("accepted " + wrong);
            } catch (Json.Malformed expected) {
                // The text was refused, as expected.
            }
        }
    }

    /** Answers with the form parameters that the servlet sees. */
    private static final class Form extends HttpServlet {
        private static final long serialVersionUID = 1;

        @Override
        protected void service(HttpServletRequest request, HttpServletResponse response) throws IOException {
            String multipart;
            try {
                multipart = "parts " + request.getParts();
            } catch (Exception error) {
                multipart = error.getClass().getSimpleName();
            }
            response.setContentType("text/plain; charset=utf-8");
            response.getWriter().print(String.join(",", request.getParameterValues("a")) + " " + request.getParameter("b") + " "
                + SynheartFilter.identityOf(request).deviceID() + " " + multipart);
        }
    }

    private static Tomcat tomcat(Verifier verifier, Filter first, HttpServlet servlet) throws Exception {
        Tomcat tomcat = new Tomcat();
        tomcat.setBaseDir(System.getProperty("java.io.tmpdir"));
        tomcat.setPort(0);
        Context context = tomcat.addContext("", null);
        context.addServletContainerInitializer((classes, servlets) -> {
            FilterRegistration.Dynamic before = servlets.addFilter("first", first);
            before.addMappingForUrlPatterns(null, false, "/*");
            before.setAsyncSupported(true);
            FilterRegistration.Dynamic synheart = servlets.addFilter("synheart", new SynheartFilter(verifier));
            synheart.addMappingForUrlPatterns(EnumSet.allOf(DispatcherType.class), false, "/*");
            synheart.setAsyncSupported(true);
            ServletRegistration.Dynamic last = servlets.addServlet("servlet", servlet);
            last.addMapping("/");
            last.setAsyncSupported(true);
        }, null);
        ErrorPage page = new ErrorPage();
        page.setErrorCode(404);
        page.setLocation("/page");
        context.addErrorPage(page);
        tomcat.start();
        return tomcat;
    }

    /** Answers with the values of a parameter. {@code /forwarded} forwards the request to this servlet, with one more value. */
    private static final class Values extends HttpServlet {
        private static final long serialVersionUID = 1;

        @Override
        protected void service(HttpServletRequest request, HttpServletResponse response) throws IOException, ServletException {
            String[] values = request.getParameterValues("a");
            if (request.getRequestURI().equals("/forwarded")) {
                request.getRequestDispatcher("/?a=0").forward(request, response);
            } else {
                response.getWriter().print(values == null ? "none" : String.join(",", values));
            }
        }
    }

    private static void readBefore(Verifier verifier) throws Exception {
        Filter reader = (request, response, chain) -> {
            String query = ((HttpServletRequest) request).getQueryString();
            if ("stream".equals(query)) request.getInputStream().readAllBytes();
            if ("parameters".equals(query)) request.getParameterMap();
            // Simulates a server that made parameters from a body, and does not report that body.
            boolean isHidden = "hidden".equals(query);
            chain.doFilter(!isHidden ? request : new HttpServletRequestWrapper((HttpServletRequest) request) {
                @Override
                public long getContentLengthLong() {
                    return -1;
                }

                @Override
                public Map<String, String[]> getParameterMap() {
                    return Map.of("a", new String[] {"of another body"});
                }
            }, response);
        };
        Tomcat tomcat = tomcat(verifier, reader, new Values());
        String device = UUID.randomUUID().toString();
        List<Object> statuses = new ArrayList<>();
        for (String query : List.of("", "?stream", "?parameters")) {
            HttpRequest.BodyPublisher body = HttpRequest.BodyPublishers.ofString("a=1");
            statuses.add(post(tomcat, "/" + query, device, body).statusCode());
            // The body has no length, so it is sent in chunks.
            statuses.add(post(tomcat, "/" + query, device, HttpRequest.BodyPublishers.fromPublisher(body)).statusCode());
        }
        String empty = post(tomcat, "/?parameters", device, "").body();
        String hidden = post(tomcat, "/?hidden", device, "a=1").body();
        String forwarded = post(tomcat, "/forwarded?a=1", device, "a=2").body();
        tomcat.stop();
        equal(statuses, List.of(200, 200, 503, 503, 503, 503));
        equal(empty, "none");
        equal(hidden, "1");
        equal(forwarded, "0,1,2");
    }

    /** Answers with the headers that claim an identity, from an error page or from an asynchronous dispatch. */
    private static final class Dispatched extends HttpServlet {
        private static final long serialVersionUID = 1;

        @Override
        protected void service(HttpServletRequest request, HttpServletResponse response) throws IOException {
            if (request.getDispatcherType() == DispatcherType.REQUEST) {
                if (request.getRequestURI().equals("/async")) request.startAsync().dispatch();
                else response.sendError(404);
                return;
            }
            String claimed = request.getHeader("X-Synheart-Verified-Device");
            boolean isListed = Collections.list(request.getHeaderNames()).stream().anyMatch(Header::isReserved);
            response.getWriter().print(request.getDispatcherType() + " " + claimed + " " + isListed + " "
                + SynheartFilter.identityOf(request).deviceID() + " " + new String(request.getInputStream().readAllBytes()));
        }
    }

    private static void dispatched(Verifier verifier) throws Exception {
        Tomcat tomcat = tomcat(verifier, (request, response, chain) -> chain.doFilter(request, response), new Dispatched());
        String device = UUID.randomUUID().toString();
        String second = post(tomcat, "/async", device, "a=1").body();
        String page = post(tomcat, "/", device, "a=1").body();
        tomcat.stop();
        equal(second, "ASYNC null false " + device + " a=1");
        equal(page, "ERROR null false " + device + " ");
    }

    private static HttpResponse<String> post(Tomcat tomcat, String target, String device, String form) throws Exception {
        return post(tomcat, target, device, HttpRequest.BodyPublishers.ofString(form));
    }

    private static HttpResponse<String> post(Tomcat tomcat, String target, String device, HttpRequest.BodyPublisher form) throws Exception {
        HttpRequest request = HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + tomcat.getConnector().getLocalPort() + target))
            .header("Content-Type", "application/x-www-form-urlencoded; charset=utf-8").header("X-App-ID", "com.example.app")
            .header("X-Device-ID", device).header("X-Synheart-Verified-Device", "claimed").POST(form).build();
        return HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString());
    }

    private static void form(Verifier verifier) throws Exception {
        Tomcat tomcat = tomcat(verifier, (request, response, chain) -> chain.doFilter(request, response), new Form());
        String device = UUID.randomUUID().toString();
        HttpResponse<String> response = post(tomcat, "/?a=1", device, "a=2&b=%C3%A9+%26&c=%zz&d");
        String most = "b=0&" + "a=1&".repeat(9_998) + "a=2";
        HttpResponse<String> many = post(tomcat, "/", device, most);
        HttpResponse<String> tooMany = post(tomcat, "/", device, most + "&a=3");
        tomcat.stop();
        equal(response.body(), "1,2 \u00e9 & " + device + " ServletException");
        equal(many.body(), "1,".repeat(9_998) + "2 0 " + device + " ServletException");
        equal(tooMany.statusCode(), 400);
        equal(tooMany.headers().firstValue("X-Synheart-Error").orElse(""), "INVALID_REQUEST");
    }

    public static void main(String[] arguments) throws Exception {
        String service = service();
        Verifier verifier = Verifier.asking(service, SECRET).origin(ORIGIN).timeout(Duration.ofSeconds(20)).build();
        test("a wrong option is refused, and the error does not show the credential", LibraryTests::configuration);
        test("the credential is not shown", () -> equal(verifier.toString().contains(SECRET), false));
        test("peers of trusted proxies", () -> {
            Verifier trusting = Verifier.asking(service, SECRET).trustedProxies(List.of("10.0.0.0/8", "fd00::/8")).build();
            String device = UUID.randomUUID().toString();
            for (String peer : List.of("10.1.2.3", "::ffff:10.1.2.3", "fd00::1", "fd00::1%0")) {
                equal(trusting.verify(request(device, peer)) instanceof Outcome.Verification, true);
            }
            for (String peer : List.of("11.1.2.3", "::1", "10.1.2.3, 1.2.3.4", "localhost", "")) {
                equal(((Outcome.Refusal) trusting.verify(request(device, peer))).status(), 421);
            }
        });
        test("each concurrent request gets its own answer", () -> threads(verifier));
        test("a fresh key does not wait for a reader", LibraryTests::freshKey);
        test("JSON is read strictly", LibraryTests::json);
        test("parameters of a form come from the verified body", () -> form(verifier));
        test("error pages and asynchronous requests do not see what a client claims", () -> dispatched(verifier));
        test("a body that another filter read first is refused", () -> readBefore(verifier));
        System.out.println("java: " + count + " tests of the library");
        System.exit(0);
    }
}
