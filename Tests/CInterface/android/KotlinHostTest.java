import ai.synheart.auth.KeystoreHost;
import ai.synheart.auth.SynheartAuth;
import android.content.Context;
import com.google.android.play.core.integrity.IntegrityManagerFactory;
import com.google.android.play.core.integrity.model.IntegrityErrorCode;
import com.sun.net.httpserver.HttpServer;
import java.io.File;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.Security;
import java.security.Signature;
import java.util.Arrays;
import java.util.Base64;

/** The life of an Android app's identity with the example's host, on stand-ins for Android. */
public final class KotlinHostTest {
    private static final String APP = "com.example.app", KEY = "synheart_auth_" + APP;

    public static void main(String[] arguments) throws Exception {
        System.loadLibrary("synheart_auth_jni");
        File directory = new File(arguments[0]);
        directory.mkdirs();
        Security.addProvider(new AndroidKeyStore(new File(directory, "keys.p12")));
        HttpServer service = JNITest.service();
        try {
            life("http://127.0.0.1:" + service.getAddress().getPort(), directory);
        } finally {
            service.stop(0);
        }
        System.out.println("ok");
    }

    private static void life(String url, File directory) throws Exception {
        Context context = new Context() {
            @Override
            public File getNoBackupFilesDir() { return directory; }
        };
        try (SynheartAuth auth = new SynheartAuth(url, context.getNoBackupFilesDir().getPath() + "/records", new KeystoreHost(context))) {
            IntegrityManagerFactory.failure = IntegrityErrorCode.PLAY_STORE_NOT_FOUND;
            JNITest.expectFailure(3, () -> auth.registerDevice(APP));
            IntegrityManagerFactory.failure = IntegrityErrorCode.APP_UID_MISMATCH;
            JNITest.expectFailure(4, () -> auth.registerDevice(APP));
            IntegrityManagerFactory.failure = IntegrityErrorCode.NO_ERROR;
            JNITest.expect(auth.registerDevice(APP).contains("\"registered\""));

            // Play Integrity was asked for the nonce, the key for the challenge, and its certificates went along.
            String body = JNITest.registrations.get(JNITest.registrations.size() - 1);
            byte[] challenge = Base64.getDecoder().decode(JNITest.member(body, "challenge"));
            MessageDigest digest = MessageDigest.getInstance("SHA-256");
            digest.update(challenge);
            byte[] nonce = digest.digest(JNITest.member(body, "public_key").getBytes(StandardCharsets.UTF_8));
            JNITest.expect(Arrays.equals(Base64.getUrlDecoder().decode(JNITest.member(body, "proof")), nonce));
            JNITest.expect(Arrays.equals(AndroidKeyStore.challenge, challenge));
            byte[] certificate = AndroidKeyStore.keys.getCertificate(KEY).getEncoded();
            JNITest.expect(body.contains("\"key_attestation\":[\"" + Base64.getEncoder().encodeToString(certificate) + "\"]"));

            byte[] data = {1, 0, 2};
            String headers = auth.signRequest(APP, "POST", "/v1", data);
            Signature signature = Signature.getInstance("SHA256withECDSA");
            signature.initVerify(AndroidKeyStore.keys.getCertificate(KEY));
            signature.update(("POST\n/v1\n" + JNITest.member(headers, "X-Synheart-Timestamp") + "\n").getBytes(StandardCharsets.UTF_8));
            signature.update(data);
            JNITest.expect(signature.verify(Base64.getDecoder().decode(JNITest.member(headers, "X-Synheart-Signature"))));
            JNITest.expect(Arrays.equals(auth.send(APP, 2, "PUT", url + "/v1/app", null, data).body, data));

            auth.rotateKey(APP, "scheduled");
            JNITest.expect(AndroidKeyStore.keys.size() == 1 && AndroidKeyStore.keys.containsAlias(KEY + "_next"));

            AndroidKeyStore.areLost = true;
            JNITest.expectFailure(5, () -> auth.sign(APP, 1, "GET", url + "/", null));
            AndroidKeyStore.areLost = false;
            JNITest.expect(auth.registerDevice(APP).contains("\"registered\""));
            auth.resetDeviceIdentity(APP, "user_requested");
            JNITest.expect(AndroidKeyStore.keys.size() == 0);
        }
    }
}
