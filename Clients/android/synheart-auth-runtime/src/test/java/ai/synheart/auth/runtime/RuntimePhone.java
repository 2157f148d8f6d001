package ai.synheart.auth.runtime;

import ai.synheart.standins.KeystoreDaemon;
import ai.synheart.standins.StandInDevice;
import android.util.Log;
import java.math.BigInteger;
import java.nio.file.Path;
import java.security.AlgorithmParameters;
import java.security.KeyFactory;
import java.security.PublicKey;
import java.security.Signature;
import java.security.spec.ECGenParameterSpec;
import java.security.spec.ECParameterSpec;
import java.security.spec.ECPoint;
import java.security.spec.ECPublicKeySpec;
import java.util.Base64;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The phone and the system around life.c, which calls these functions. */
public final class RuntimePhone {
    private RuntimePhone() {}

    /** Starts the app: the system makes its provider, which loads the library. */
    public static boolean start(String folder) {
        StandInDevice.start(Path.of(folder));
        RuntimeProvider provider = new RuntimeProvider();
        provider.attach(StandInDevice.current().context());
        return SynheartNative.load(provider.getContext());
    }

    /** Simulates an event on the phone. */
    public static void happens(String what, String alias) {
        StandInDevice phone = StandInDevice.current();
        switch (what) {
            case "keystore fails": phone.keystore.failEverything(KeystoreDaemon.SYSTEM_ERROR); break;
            case "keystore works": phone.keystore.works(); break;
            case "key lost": phone.keystore.lose(alias); break;
            case "key corrupted": phone.keystore.corrupt(alias); break;
            case "key invalidated": phone.keystore.invalidate(alias); break;
            case "reboot": phone.reboot(); break;
            case "unlock": phone.unlock(); break;
            case "no Google": phone.play.failAlways(-2); break;
            case "Google": phone.play.failAlways(0); break;
            default: throw new IllegalArgumentException(what);
        }
    }

    /** The names of all keys, in a line. */
    public static String aliases() { return String.join(" ", StandInDevice.current().keystore.aliases()); }

    /** Whether the log has this text. */
    public static boolean hasLogged(String text) { return Log.lines.stream().anyMatch(line -> line.contains(text)); }

    /** The number of threads of Core that are still attached to the JVM. */
    public static int attachedThreads() {
        return (int) Thread.getAllStackTraces().keySet().stream().filter(thread -> thread.getName().startsWith("synheart-core")).count();
    }

    /** Whether the text is base64url(r || s) of a signature over the message by the key that generate_key returned. */
    public static boolean verifies(String key, byte[] message, String signature) throws Exception {
        byte[] raw = Base64.getUrlDecoder().decode(signature);
        if (raw.length != 64 || signature.length() != 86) return false;
        Signature verifier = Signature.getInstance("SHA256withECDSAinP1363Format");
        verifier.initVerify(publicKey(key));
        verifier.update(message);
        return verifier.verify(raw);
    }

    private static PublicKey publicKey(String json) throws Exception {
        Matcher matcher = Pattern.compile("\\{\"x\":\"([\\w-]{43})\",\"y\":\"([\\w-]{43})\"\\}").matcher(json);
        if (!matcher.matches()) throw new IllegalArgumentException(json);
        AlgorithmParameters parameters = AlgorithmParameters.getInstance("EC");
        parameters.init(new ECGenParameterSpec("secp256r1"));
        ECPoint point = new ECPoint(coordinate(matcher.group(1)), coordinate(matcher.group(2)));
        return KeyFactory.getInstance("EC").generatePublic(new ECPublicKeySpec(point, parameters.getParameterSpec(ECParameterSpec.class)));
    }

    private static BigInteger coordinate(String text) { return new BigInteger(1, Base64.getUrlDecoder().decode(text)); }

    /** Whether the text is an attestation by Play Integrity, with a token. */
    public static boolean isToken(String json) {
        return Pattern.matches("\\{\"format\":\"play-integrity\",\"blob\":\"[\\w.-]{100,}\"\\}", json);
    }

}
