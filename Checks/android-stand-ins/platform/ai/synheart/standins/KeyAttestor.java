package ai.synheart.standins;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.PrivateKey;
import java.security.PublicKey;
import java.security.Signature;
import java.security.spec.ECGenParameterSpec;
import java.security.spec.PKCS8EncodedKeySpec;
import java.security.spec.X509EncodedKeySpec;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.time.temporal.ChronoUnit;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;

/** Attests keys as a factory-provisioned device does, under its own root. The {@code trust_anchors} of a test app have this root. */
public final class KeyAttestor {
    /** SHA-256 of the certificate that signed the app. */
    public static final byte[] APP_DIGEST = filled(32, 0x11);

    private static final byte[] ECDSA_SHA256 = Der.sequence(Der.oid(1, 2, 840, 10045, 4, 3, 2));
    private static final byte[] ROOT = name(Der.oid(2, 5, 4, 5), Der.printable("0123456789abcdef"));
    private static final byte[] LEAF = name(Der.oid(2, 5, 4, 3), Der.utf8("Android Keystore Key"));

    private final KeyPair root;
    private final KeyPair intermediate = newKey();
    private final KeyPair attestation = newKey();

    /** Reads the root's key from this file. If the file does not exist, creates it with a new key. */
    KeyAttestor(Path file) {
        try {
            if (!Files.exists(file)) {
                KeyPair made = newKey();
                Path temporary = Files.createTempFile(file.getParent(), "root", null);
                Files.write(temporary, List.of(base64(made.getPrivate().getEncoded()), base64(made.getPublic().getEncoded())));
                try { Files.createLink(file, temporary); } catch (java.nio.file.FileAlreadyExistsException error) { /* another process was first */ }
                Files.delete(temporary);
            }
            List<String> lines = Files.readAllLines(file);
            KeyFactory factory = KeyFactory.getInstance("EC");
            root = new KeyPair(
                factory.generatePublic(new X509EncodedKeySpec(Base64.getDecoder().decode(lines.get(1)))),
                factory.generatePrivate(new PKCS8EncodedKeySpec(Base64.getDecoder().decode(lines.get(0)))));
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        } catch (GeneralSecurityException error) {
            throw new IllegalStateException(error);
        }
    }

    /** The root's certificate, for policies that trust this device. */
    public String rootPEM() {
        String body = Base64.getMimeEncoder(64, new byte[] {'\n'}).encodeToString(rootCertificate());
        return "-----BEGIN CERTIFICATE-----\n" + body + "\n-----END CERTIFICATE-----\n";
    }

    /**
     * The chain for a key, leaf first.
     *
     * @param level 0 software, 1 TEE, 2 StrongBox
     */
    List<byte[]> attest(PublicKey key, byte[] challenge, String packageName, int level, int[] purposes) {
        String home = level == 2 ? "StrongBox" : "TEE";
        byte[] issuer = name(Der.oid(2, 5, 4, 5), Der.printable("90e8da3cadfc7820"), Der.oid(2, 5, 4, 12), Der.utf8(home));
        byte[] middle = name(Der.oid(2, 5, 4, 5), Der.printable("ccd18b9b608d658e"), Der.oid(2, 5, 4, 12), Der.utf8(home));
        byte[] description = Der.sequence(
            Der.oid(1, 3, 6, 1, 4, 1, 11129, 2, 1, 17), Der.octets(description(challenge, packageName, level, purposes)));
        return List.of(
            certificate(LEAF, issuer, key, attestation.getPrivate(), description),
            certificate(issuer, middle, attestation.getPublic(), intermediate.getPrivate()),
            certificate(middle, ROOT, intermediate.getPublic(), root.getPrivate()),
            rootCertificate());
    }

    /** The only certificate of a key without attestation. */
    byte[] selfSigned(KeyPair key) { return certificate(LEAF, LEAF, key.getPublic(), key.getPrivate()); }

    private byte[] rootCertificate() { return certificate(ROOT, ROOT, root.getPublic(), root.getPrivate()); }

    /** KeyDescription, version 300. */
    private static byte[] description(byte[] challenge, String packageName, int level, int[] purposes) {
        byte[][] purposeSet = Arrays.stream(purposes).mapToObj(Der::integer).toArray(byte[][]::new);
        byte[] application = Der.sequence(
            Der.set(Der.sequence(Der.octets(packageName.getBytes(StandardCharsets.UTF_8)), Der.integer(1))),
            Der.set(Der.octets(APP_DIGEST)));
        byte[] rootOfTrust = Der.sequence(
            Der.octets(filled(32, 0xAB)), Der.bool(level > 0), Der.enumerated(level > 0 ? 0 : 2), Der.octets(filled(32, 0xCD)));
        Instant now = StandInClock.now();
        byte[] software = Der.join(
            Der.explicit(701, Der.integer(now.toEpochMilli())), Der.explicit(709, Der.octets(application)));
        byte[] hardware = Der.join(
            Der.explicit(1, Der.set(purposeSet)), Der.explicit(2, Der.integer(3)), Der.explicit(3, Der.integer(256)),
            Der.explicit(5, Der.set(Der.integer(4))), Der.explicit(10, Der.integer(1)), Der.explicit(503, Der.tagged(0x05)),
            Der.explicit(702, Der.integer(0)), Der.explicit(704, rootOfTrust), Der.explicit(705, Der.integer(160_000)),
            Der.explicit(706, Der.integer(Long.parseLong(DateTimeFormatter.ofPattern("yyyyMM").withZone(ZoneOffset.UTC).format(now)))));
        return Der.sequence(
            Der.integer(300), Der.enumerated(level), Der.integer(300), Der.enumerated(level), Der.octets(challenge), Der.octets(new byte[0]),
            level == 0 ? Der.sequence(software, hardware) : Der.sequence(software), level == 0 ? Der.sequence() : Der.sequence(hardware));
    }

    private static byte[] certificate(byte[] subject, byte[] issuer, PublicKey key, PrivateKey signer, byte[]... extensions) {
        DateTimeFormatter format = DateTimeFormatter.ofPattern("yyMMddHHmmss'Z'").withZone(ZoneOffset.UTC);
        Instant now = StandInClock.now();
        byte[] validity = Der.sequence(
            Der.utcTime(format.format(now.minus(1, ChronoUnit.DAYS))), Der.utcTime(format.format(now.plus(30, ChronoUnit.DAYS))));
        byte[] body = Der.join(
            Der.explicit(0, Der.integer(2)), Der.integer(1), ECDSA_SHA256, issuer, validity, subject, key.getEncoded());
        if (extensions.length > 0) body = Der.join(body, Der.explicit(3, Der.sequence(extensions)));
        byte[] signed = Der.sequence(body);
        try {
            Signature signature = Signature.getInstance("SHA256withECDSA", "SunEC");
            signature.initSign(signer);
            signature.update(signed);
            return Der.sequence(signed, ECDSA_SHA256, Der.bits(signature.sign(), 0));
        } catch (GeneralSecurityException error) {
            throw new IllegalStateException(error);
        }
    }

    /** An X.501 name. The arguments alternate between type and value. */
    private static byte[] name(byte[]... pairs) {
        byte[][] attributes = new byte[pairs.length / 2][];
        for (int i = 0; i < attributes.length; i++) attributes[i] = Der.set(Der.sequence(pairs[2 * i], pairs[2 * i + 1]));
        return Der.sequence(attributes);
    }

    private static KeyPair newKey() {
        try {
            KeyPairGenerator generator = KeyPairGenerator.getInstance("EC", "SunEC");
            generator.initialize(new ECGenParameterSpec("secp256r1"));
            return generator.generateKeyPair();
        } catch (GeneralSecurityException error) {
            throw new IllegalStateException(error);
        }
    }

    private static String base64(byte[] bytes) { return Base64.getEncoder().encodeToString(bytes); }

    private static byte[] filled(int count, int value) {
        byte[] bytes = new byte[count];
        Arrays.fill(bytes, (byte) value);
        return bytes;
    }
}
