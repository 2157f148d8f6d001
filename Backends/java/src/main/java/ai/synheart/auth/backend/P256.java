package ai.synheart.auth.backend;

import java.math.BigInteger;
import java.security.AlgorithmParameters;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.PublicKey;
import java.security.spec.ECFieldFp;
import java.security.spec.ECGenParameterSpec;
import java.security.spec.ECParameterSpec;
import java.security.spec.ECPoint;
import java.security.spec.ECPublicKeySpec;
import java.util.Arrays;

/** Checks of the curve P-256 that Java does not make. */
final class P256 {
    private static final ECParameterSpec CURVE = curve();

    private P256() {
    }

    /** The public key of these coordinates; null if the point is not on the curve. */
    static PublicKey key(byte[] xBytes, byte[] yBytes) {
        BigInteger x = new BigInteger(1, xBytes);
        BigInteger y = new BigInteger(1, yBytes);
        BigInteger p = ((ECFieldFp) CURVE.getCurve().getField()).getP();
        BigInteger right = x.pow(3).add(CURVE.getCurve().getA().multiply(x)).add(CURVE.getCurve().getB()).mod(p);
        if (xBytes.length != 32 || yBytes.length != 32 || x.compareTo(p) >= 0 || y.compareTo(p) >= 0 || !y.pow(2).mod(p).equals(right)) {
            return null;
        }
        try {
            return KeyFactory.getInstance("EC").generatePublic(new ECPublicKeySpec(new ECPoint(x, y), CURVE));
        } catch (GeneralSecurityException error) {
            return null;
        }
    }

    /** Whether 32 bytes of a signature are a number from 1 to the order of the curve's group minus 1. */
    static boolean isInRange(byte[] signature, int offset) {
        BigInteger number = new BigInteger(1, Arrays.copyOfRange(signature, offset, offset + 32));
        return number.signum() > 0 && number.compareTo(CURVE.getOrder()) < 0;
    }

    private static ECParameterSpec curve() {
        try {
            AlgorithmParameters parameters = AlgorithmParameters.getInstance("EC");
            parameters.init(new ECGenParameterSpec("secp256r1"));
            return parameters.getParameterSpec(ECParameterSpec.class);
        } catch (GeneralSecurityException error) {
            throw new IllegalStateException(error);
        }
    }
}
