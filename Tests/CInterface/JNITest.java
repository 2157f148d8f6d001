import ai.synheart.auth.SynheartAuth;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.File;
import java.io.FileInputStream;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.security.KeyStore;
import java.security.MessageDigest;
import java.security.PrivateKey;
import java.security.SecureRandom;
import java.security.Signature;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The shape that Android has, on a desktop JVM: the glue in C, keys in a java.security.KeyStore, an attestation that the host
 * brings. Only the KeyStore's type and the attestation differ on a phone.
 */
public final class JNITest {
    private static final String APP = "com.example.app";
    private static final String DEVICE = "4c5b36a4-5b0e-4f6d-9d0e-6a8a5ed8e1f4";
    static final List<String> registrations = new CopyOnWriteArrayList<>();

    public static void main(String[] arguments) throws Exception {
        System.loadLibrary("synheart_auth_jni");
        File directory = new File(arguments[0]);
        HttpServer service = service();
        String url = "http://127.0.0.1:" + service.getAddress().getPort();
        try {
            wholeLife(url, directory);
            failures(url, directory);
        } finally {
            service.stop(0);
        }
        System.out.println("ok");
    }

    private static void wholeLife(String url, File directory) throws Exception {
        KeyStoreHost host = new KeyStoreHost(new File(directory, "keys.p12"));
        try (SynheartAuth auth = new SynheartAuth(url, new File(directory, "records").getPath(), host)) {
            expect(auth.isRegistered(APP).equals("{\"registered\":false}"));
            expect(auth.getDeviceId(APP).equals("{\"device_id\":null}"));
            expect(auth.registerDevice(APP).contains("\"registered\""));
            expect(auth.registerDevice(APP).contains("alreadyRegistered"));
            expect(auth.getDeviceId(APP).contains(DEVICE) && auth.getState(APP).contains("registered"));

            // The proof is for the nonce of challenge and key, and the key is the KeyStore's.
            String body = registrations.get(0);
            byte[] challenge = Base64.getDecoder().decode(member(body, "challenge"));
            String key = member(body, "public_key");
            MessageDigest digest = MessageDigest.getInstance("SHA-256");
            digest.update(challenge);
            byte[] nonce = digest.digest(key.getBytes(StandardCharsets.UTF_8));
            expect(Arrays.equals(Base64.getUrlDecoder().decode(member(body, "proof")), nonce));
            expect(Arrays.equals(host.challenge, challenge) && member(body, "platform").equals("android"));
            expect(Arrays.equals(Base64.getDecoder().decode(key), host.loadKey("synheart_auth_" + APP)));

            byte[] data = {1, 0, 2};
            String headers = auth.signRequest(APP, "POST", "/v1", data);
            Signature signature = Signature.getInstance("SHA256withECDSA");
            signature.initVerify(host.store.getCertificate("synheart_auth_" + APP));
            signature.update(("POST\n/v1\n" + member(headers, "X-Synheart-Timestamp") + "\n").getBytes(StandardCharsets.UTF_8));
            signature.update(data);
            expect(signature.verify(Base64.getDecoder().decode(member(headers, "X-Synheart-Signature"))));

            SynheartAuth.Answer answer = auth.send(APP, 1, "PUT", url + "/v1/app", "{\"X-Mine\":\"1\"}", data);
            expect(answer.json.contains("\"status\":200") && Arrays.equals(answer.body, data));
            answer = auth.send(APP, 2, "GET", url + "/v1/app?a=1", null, null);
            expect(answer.json.contains("\"status\":200") && answer.body.length == 0);
            expect(auth.sign(APP, 2, "POST", url + "/v1/app", data).contains("Signature-Input"));
            expectFailure(8, () -> auth.send(APP, 1, "GET", "https://example.com/", null, null));
            expect(auth.allowOrigin("https://example.com").equals("{}"));
            expect(auth.sign(APP, 1, "GET", "https://example.com/", null).contains("X-Synheart-Signature"));
            expectFailure(101, () -> auth.send(APP, 3, "GET", url + "/", null, null));
            expectFailure(101, () -> auth.send(APP, 1, "GET", url + "/", "[]", null));
            expectFailure(101, () -> auth.allowOrigin(null));
            expectFailure(101, () -> auth.setDeadline(-1));
            expect(auth.setDeadline(60_000).equals("{}"));

            expect(auth.rotateKey(APP, "scheduled").contains("effective_at"));
            expect(host.store.size() == 1 && host.store.containsAlias("synheart_auth_" + APP + "_next"));
            expect(auth.correctClockSkew(APP, System.currentTimeMillis() / 1000.0).equals("{}"));

            expect(auth.deviceToken(APP, null).contains("\"remaining_seconds\":"));
            expect(auth.maintain(APP).equals("{}"));

            // The device has signed under scheme 2, and signRequest cannot.
            expectFailure(8, () -> auth.signRequest(APP, "GET", "/", null));
            host.failure = SynheartAuth.HostFailure.HOST_UNAVAILABLE;
            expectFailure(6, () -> auth.sign(APP, 1, "GET", url + "/", null));
            host.failure = SynheartAuth.HostFailure.HOST_INVALIDATED;
            expectFailure(5, () -> auth.sign(APP, 1, "GET", url + "/", null));
            expect(auth.getState(APP).contains("keyInvalid"));
            host.failure = 0;
            expect(auth.resetDeviceIdentity(APP, "key_lost").equals("{}"));
            expect(host.store.size() == 0);
        }
    }

    private static void failures(String url, File directory) throws Exception {
        KeyStoreHost host = new KeyStoreHost(new File(directory, "other.p12"));
        try (SynheartAuth auth = new SynheartAuth(url, new File(directory, "other").getPath(), host)) {
            expectFailure(14, () -> auth.signRequest(APP, "POST", "/v1", new byte[0]));
            expectFailure(15, () -> auth.isRegistered("not an app id"));
            expectFailure(101, () -> auth.isRegistered(null));
            expectFailure(101, () -> auth.rotateKey(APP, "because"));
            host.failure = SynheartAuth.HostFailure.HOST_UNSUPPORTED;
            expectFailure(6, () -> auth.registerDevice(APP));
            host.failure = -1;
            expectFailure(6, () -> auth.registerDevice(APP));
            auth.close();
            expectFailure(101, () -> auth.isRegistered(APP));
        }
        expectFailure(15, () -> new SynheartAuth("http://example.com", directory.getPath(), host));
    }

    /** Keys in a PKCS #12 file, made by keytool, which puts the certificate beside them that a KeyStore wants. */
    private static final class KeyStoreHost implements SynheartAuth.Host {
        private static final char[] PASSWORD = "changeit".toCharArray();
        private final File file;
        volatile KeyStore store;
        volatile byte[] challenge;
        volatile int failure;

        KeyStoreHost(File file) throws Exception {
            this.file = file;
            Files.createDirectories(file.getParentFile().toPath());
            store = KeyStore.getInstance("PKCS12");
            store.load(null, PASSWORD);
        }

        @Override
        public byte[] createKey(String alias, byte[] challenge) throws SynheartAuth.HostFailure {
            return guarded(() -> {
                if (failure == 0 && challenge.length > 0) this.challenge = challenge;
                store.deleteEntry(alias);
                save();
                Process keytool = new ProcessBuilder(
                        System.getProperty("java.home") + "/bin/keytool", "-genkeypair", "-alias", alias, "-keyalg", "EC",
                        "-groupname", "secp256r1", "-dname", "CN=device", "-storetype", "PKCS12", "-keystore", file.getPath(),
                        "-storepass", "changeit")
                    .redirectErrorStream(true).redirectOutput(ProcessBuilder.Redirect.DISCARD).start();
                if (keytool.waitFor() != 0) throw new IOException("keytool");
                try (FileInputStream input = new FileInputStream(file)) { store.load(input, PASSWORD); }
                return loadKey(alias);
            });
        }

        @Override
        public byte[] loadKey(String alias) throws SynheartAuth.HostFailure {
            try {
                return store.containsAlias(alias) ? store.getCertificate(alias).getPublicKey().getEncoded() : null;
            } catch (Exception error) {
                throw new SynheartAuth.HostFailure(SynheartAuth.HostFailure.HOST_FAILED, error);
            }
        }

        @Override
        public byte[] sign(String alias, byte[] message) throws SynheartAuth.HostFailure {
            return guarded(() -> {
                PrivateKey key = (PrivateKey) store.getKey(alias, PASSWORD);
                if (key == null) return null;
                Signature signature = Signature.getInstance("SHA256withECDSA");
                signature.initSign(key);
                signature.update(message);
                return signature.sign();
            });
        }

        @Override
        public void deleteKey(String alias) throws SynheartAuth.HostFailure {
            try {
                store.deleteEntry(alias);
                save();
            } catch (Exception error) {
                throw new SynheartAuth.HostFailure(SynheartAuth.HostFailure.HOST_FAILED, error);
            }
        }

        @Override
        public byte[] attest(String alias, byte[] challenge, byte[] nonce) {
            String token = Base64.getUrlEncoder().withoutPadding().encodeToString(nonce);
            return ("{\"proof\":\"" + token + "\"}").getBytes(StandardCharsets.UTF_8);
        }

        private void save() throws Exception {
            try (java.io.FileOutputStream output = new java.io.FileOutputStream(file)) { store.store(output, PASSWORD); }
        }

        private interface Body { byte[] run() throws Exception; }

        private byte[] guarded(Body body) throws SynheartAuth.HostFailure {
            if (failure == -1) throw new IllegalStateException("a bug of the host");
            if (failure != 0) throw new SynheartAuth.HostFailure(failure, null);
            try {
                return body.run();
            } catch (Exception error) {
                throw new SynheartAuth.HostFailure(SynheartAuth.HostFailure.HOST_FAILED, error);
            }
        }
    }

    /** A service that says yes. */
    static HttpServer service() throws IOException {
        HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 8);
        server.createContext("/", JNITest::answer);
        server.start();
        return server;
    }

    private static void answer(HttpExchange exchange) throws IOException {
        byte[] received = exchange.getRequestBody().readAllBytes();
        String body = new String(received, StandardCharsets.UTF_8);
        String path = exchange.getRequestURI().getPath();
        if (path.equals("/v1/app")) {
            // A request of the app's: signed, and what it sent comes back.
            exchange.sendResponseHeaders(exchange.getRequestHeaders().containsKey("X-Device-ID") ? 200 : 401,
                received.length == 0 ? -1 : received.length);
            exchange.getResponseBody().write(received);
            exchange.close();
            return;
        }
        long now = System.currentTimeMillis() / 1000;
        String answer = "{\"status\":\"rotated\",\"effective_at\":" + now + "}";
        if (path.endsWith("/challenge")) {
            byte[] challenge = new byte[32];
            new SecureRandom().nextBytes(challenge);
            answer = "{\"challenge\":\"" + Base64.getEncoder().encodeToString(challenge)
                + "\",\"expires_at\":\"2030-01-01T00:00:00Z\",\"ttl_seconds\":90}";
        } else if (path.endsWith("/token")) {
            answer = "{\"token\":\"token\",\"token_type\":\"synheart-device+jwt\",\"expires_in\":600}";
        } else if (path.endsWith("/register")) {
            registrations.add(body);
            answer = "{\"device_id\":\"" + DEVICE + "\",\"status\":\"registered\"}";
        }
        exchange.getResponseHeaders().add("X-Synheart-Server-Time", String.valueOf(now));
        byte[] bytes = answer.getBytes(StandardCharsets.UTF_8);
        exchange.sendResponseHeaders(200, bytes.length);
        exchange.getResponseBody().write(bytes);
        exchange.close();
    }

    static String member(String json, String name) {
        Matcher matcher = Pattern.compile("\"" + name + "\":\"([^\"]*)\"").matcher(json);
        expect(matcher.find());
        return matcher.group(1);
    }

    interface Call { Object run() throws Exception; }

    static void expectFailure(int status, Call call) throws Exception {
        try {
            call.run();
        } catch (SynheartAuth.Failure failure) {
            if (failure.status != status) throw failure;
            return;
        }
        throw new AssertionError("did not fail with " + status);
    }

    static void expect(boolean condition) {
        if (!condition) throw new AssertionError();
    }
}
