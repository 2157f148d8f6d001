package ai.synheart.standins;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.SecureRandom;
import java.security.Signature;
import java.security.spec.ECGenParameterSpec;
import java.util.Base64;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.crypto.Cipher;
import javax.crypto.spec.GCMParameterSpec;
import javax.crypto.spec.SecretKeySpec;

/** Google's Play Integrity server. It makes classic tokens, which an app's keys decrypt, and standard tokens, which only it can decode. */
public final class GoogleStandIn implements AutoCloseable {
    private static final Base64.Encoder BASE64 = Base64.getEncoder(), URL = Base64.getUrlEncoder().withoutPadding();

    private final SecureRandom random = new SecureRandom();
    private final byte[] decryptionKey = bytes(32);
    private final KeyPair verification;
    private final Map<String, String> standardTokens = new ConcurrentHashMap<>();
    private HttpServer server;
    /** The labels in Google's verdict about the device, separated by commas. */
    public volatile String deviceLabels = "MEETS_DEVICE_INTEGRITY";

    public GoogleStandIn() {
        try {
            KeyPairGenerator generator = KeyPairGenerator.getInstance("EC", "SunEC");
            generator.initialize(new ECGenParameterSpec("secp256r1"));
            verification = generator.generateKeyPair();
        } catch (GeneralSecurityException error) {
            throw new IllegalStateException(error);
        }
    }

    /** The {@code DECRYPTION_KEY} in the form that Play Console shows. */
    public String decryptionKey() { return BASE64.encodeToString(decryptionKey); }

    /** The {@code VERIFICATION_KEY} in the form that Play Console shows. */
    public String verificationKey() { return BASE64.encodeToString(verification.getPublic().getEncoded()); }

    String classicToken(String packageName, String nonce) {
        try {
            String signed = URL.encodeToString("{\"alg\":\"ES256\"}".getBytes(StandardCharsets.UTF_8)) + "."
                + URL.encodeToString(verdict(packageName, "nonce", nonce).getBytes(StandardCharsets.UTF_8));
            Signature signature = Signature.getInstance("SHA256withECDSAinP1363Format", "SunEC");
            signature.initSign(verification.getPrivate());
            signature.update(signed.getBytes(StandardCharsets.US_ASCII));
            byte[] plain = (signed + "." + URL.encodeToString(signature.sign())).getBytes(StandardCharsets.US_ASCII);

            byte[] contentKey = bytes(32), iv = bytes(12);
            Cipher wrap = Cipher.getInstance("AESWrap");
            wrap.init(Cipher.WRAP_MODE, new SecretKeySpec(decryptionKey, "AES"));
            byte[] wrapped = wrap.wrap(new SecretKeySpec(contentKey, "AES"));
            String header = URL.encodeToString("{\"alg\":\"A256KW\",\"enc\":\"A256GCM\"}".getBytes(StandardCharsets.UTF_8));
            Cipher gcm = Cipher.getInstance("AES/GCM/NoPadding", "SunJCE");
            gcm.init(Cipher.ENCRYPT_MODE, new SecretKeySpec(contentKey, "AES"), new GCMParameterSpec(128, iv));
            gcm.updateAAD(header.getBytes(StandardCharsets.US_ASCII));
            byte[] sealed = gcm.doFinal(plain);
            byte[] content = java.util.Arrays.copyOf(sealed, sealed.length - 16);
            byte[] tag = java.util.Arrays.copyOfRange(sealed, sealed.length - 16, sealed.length);
            return String.join(".", header, URL.encodeToString(wrapped), URL.encodeToString(iv), URL.encodeToString(content), URL.encodeToString(tag));
        } catch (GeneralSecurityException error) {
            throw new IllegalStateException(error);
        }
    }

    String standardToken(String packageName, String requestHash) {
        String token = URL.encodeToString(bytes(120));
        standardTokens.put(token, verdict(packageName, "requestHash", requestHash));
        return token;
    }

    private String verdict(String packageName, String binding, String value) {
        String labels = deviceLabels.isEmpty() ? "" : "\"" + deviceLabels.replace(",", "\",\"") + "\"";
        return "{\"requestDetails\":{\"requestPackageName\":\"" + packageName + "\",\"" + binding + "\":\"" + value + "\",\"timestampMillis\":\""
            + StandInClock.millis() + "\"},\"appIntegrity\":{\"appRecognitionVerdict\":\"PLAY_RECOGNIZED\",\"packageName\":\"" + packageName
            + "\",\"certificateSha256Digest\":[\"" + URL.encodeToString(KeyAttestor.APP_DIGEST) + "\"],\"versionCode\":\"1\"},"
            + "\"deviceIntegrity\":{\"deviceRecognitionVerdict\":[" + labels + "]},\"accountDetails\":{\"appLicensingVerdict\":\"LICENSED\"}}";
    }

    /** Serves Google's token and decode calls on a port of the loopback, and returns its URL. */
    public synchronized String serve() throws IOException {
        if (server == null) {
            server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
            server.createContext("/", this::answer);
            server.start();
        }
        return "http://127.0.0.1:" + server.getAddress().getPort();
    }

    /** The JSON file of a service account, whose token URL is that of this stand-in. */
    public String serviceAccount() throws IOException, GeneralSecurityException {
        KeyPairGenerator generator = KeyPairGenerator.getInstance("RSA");
        generator.initialize(2048);
        String key = Base64.getMimeEncoder(64, new byte[] {'\n'}).encodeToString(generator.generateKeyPair().getPrivate().getEncoded()).replace("\n", "\\n");
        return "{\"type\":\"service_account\",\"client_email\":\"auth@example.iam.gserviceaccount.com\",\"private_key_id\":\"1\",\"private_key\":"
            + "\"-----BEGIN PRIVATE KEY-----\\n" + key + "\\n-----END PRIVATE KEY-----\\n\",\"token_uri\":\"" + serve() + "/token\"}";
    }

    private void answer(HttpExchange exchange) throws IOException {
        String body = new String(exchange.getRequestBody().readAllBytes(), StandardCharsets.UTF_8);
        String path = exchange.getRequestURI().getPath();
        int status = 404;
        String answer = "{\"error\":{\"code\":404,\"message\":\"not found\",\"status\":\"NOT_FOUND\"}}";
        if (path.endsWith("/token")) {
            status = 200;
            answer = "{\"access_token\":\"stand-in\",\"expires_in\":3599,\"token_type\":\"Bearer\"}";
        } else if (path.endsWith(":decodeIntegrityToken")) {
            Matcher token = Pattern.compile("\"integrity_?[tT]oken\"\\s*:\\s*\"([^\"]*)\"").matcher(body);
            String verdict = token.find() ? standardTokens.get(token.group(1)) : null;
            status = verdict == null ? 400 : 200;
            answer = verdict == null ? "{\"error\":{\"code\":400,\"message\":\"bad token\",\"status\":\"INVALID_ARGUMENT\"}}"
                : "{\"tokenPayloadExternal\":" + verdict + "}";
        }
        byte[] bytes = answer.getBytes(StandardCharsets.UTF_8);
        exchange.getResponseHeaders().set("Content-Type", "application/json");
        exchange.sendResponseHeaders(status, bytes.length);
        exchange.getResponseBody().write(bytes);
        exchange.close();
    }

    @Override
    public synchronized void close() {
        if (server != null) server.stop(0);
        server = null;
    }

    private byte[] bytes(int count) {
        byte[] bytes = new byte[count];
        random.nextBytes(bytes);
        return bytes;
    }
}
