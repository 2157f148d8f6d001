package ai.synheart.auth.backend;

import java.io.IOException;
import java.net.InetAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpHeaders;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Flow;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * Makes HTTP requests to the service. It keeps connections open, has one deadline for each exchange, limits the length of
 * answers, follows no redirects and uses no proxy.
 */
final class ServiceClient {
    /** The longest answer that is read, in bytes. The service's answers have a few hundred bytes. */
    private static final int ANSWER_LIMIT = 65_536;

    private final HttpClient http;
    private final Duration timeout;

    /** An answer. {@code body} is null if it is longer than the limit. */
    record Answer(int status, HttpHeaders headers, byte[] body) {
        String header(String name) {
            return headers.firstValue(name).orElse("");
        }

        /** The value of {@code Retry-After} in seconds, at most 300; -1 if the header is absent or not a number. */
        int retryAfter() {
            String text = header("Retry-After");
            if (!text.matches("[0-9]+")) return -1;
            return text.length() > 9 ? 300 : Math.min(Integer.parseInt(text), 300);
        }
    }

    ServiceClient(URI url, Duration timeout, boolean insecureHTTP) {
        boolean isPlain = "http".equals(url.getScheme());
        if (!(isPlain || "https".equals(url.getScheme())) || url.getHost() == null || url.getRawUserInfo() != null) {
            throw new IllegalArgumentException("expected an origin such as https://auth.example.com, found " + url);
        }
        if (isPlain && !insecureHTTP && !isLoopback(url.getHost())) {
            throw new IllegalArgumentException(url + " is plain http to another host: use https, or say insecureHTTP(true)");
        }
        if (timeout.isNegative() || timeout.isZero()) throw new IllegalArgumentException("the timeout must be above 0");
        this.timeout = timeout;
        // Uses HTTP/1.1, because the default asks for an upgrade to HTTP/2 on plain connections.
        http = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).followRedirects(HttpClient.Redirect.NEVER)
            .proxy(HttpClient.Builder.NO_PROXY).connectTimeout(timeout).build();
    }

    /** One request and its answer. Throws {@code IOException} if no whole answer came within the timeout. */
    Answer exchange(String method, URI url, Map<String, String> headers, byte[] body) throws IOException, InterruptedException {
        HttpRequest.Builder request = HttpRequest.newBuilder(url).timeout(timeout);
        headers.forEach(request::header);
        request.method(method, body == null ? HttpRequest.BodyPublishers.noBody() : HttpRequest.BodyPublishers.ofByteArray(body));
        CompletableFuture<HttpResponse<byte[]>> asked = http.sendAsync(request.build(), information -> new Bounded());
        try {
            // The request's own timeout covers only the head of the answer, not its body.
            HttpResponse<byte[]> found = asked.get(timeout.toMillis(), TimeUnit.MILLISECONDS);
            return new Answer(found.statusCode(), found.headers(), found.body());
        } catch (ExecutionException error) {
            throw new IOException(String.valueOf(error.getCause().getClass().getSimpleName()), error.getCause());
        } catch (TimeoutException error) {
            throw new IOException("timeout", error);
        } finally {
            asked.cancel(true);
        }
    }

    private static boolean isLoopback(String host) {
        if (host.equals("localhost")) return true;
        // Accept only address literals: getByName would look up a name.
        if (!host.matches("127(\\.[0-9]{1,3}){3}|\\[[0-9A-Fa-f:]+\\]")) return false;
        try {
            return InetAddress.getByName(host).isLoopbackAddress();
        } catch (IOException error) {
            return false;
        }
    }

    /** Collects a body. The result is null if the body is longer than {@code ANSWER_LIMIT}. */
    private static final class Bounded implements HttpResponse.BodySubscriber<byte[]> {
        private final CompletableFuture<byte[]> found = new CompletableFuture<>();
        private final java.io.ByteArrayOutputStream bytes = new java.io.ByteArrayOutputStream();
        private Flow.Subscription subscription;

        @Override
        public CompletionStage<byte[]> getBody() {
            return found;
        }

        @Override
        public void onSubscribe(Flow.Subscription subscription) {
            this.subscription = subscription;
            subscription.request(Long.MAX_VALUE);
        }

        @Override
        public void onNext(List<ByteBuffer> buffers) {
            for (ByteBuffer buffer : buffers) {
                byte[] part = new byte[Math.min(buffer.remaining(), ANSWER_LIMIT + 1 - bytes.size())];
                buffer.get(part);
                bytes.writeBytes(part);
                if (bytes.size() > ANSWER_LIMIT) {
                    subscription.cancel();
                    found.complete(null);
                    return;
                }
            }
        }

        @Override
        public void onError(Throwable error) {
            found.completeExceptionally(error);
        }

        @Override
        public void onComplete() {
            found.complete(bytes.toByteArray());
        }
    }
}
