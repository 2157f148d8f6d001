package ai.synheart.auth.wire

import java.math.BigInteger

/** A P-256 public key: a point on the curve. */
internal class PublicKey private constructor(private val point: ByteArray) {
    /** The X.509 SubjectPublicKeyInfo, DER, 91 bytes (RFC 5480). */
    val spki: ByteArray get() = SPKI_PREFIX + point

    /** The base64 text for a body. */
    val base64: String get() = spki.base64()

    /** The JSON Web Key thumbprint (RFC 7638): base64url of SHA-256, 43 characters. */
    val thumbprint: String by lazy(LazyThreadSafetyMode.PUBLICATION) {
        val x = point.copyOfRange(1, 33).base64Url()
        val y = point.copyOfRange(33, 65).base64Url()
        sha256("""{"crv":"P-256","kty":"EC","x":"$x","y":"$y"}""".toByteArray()).base64Url()
    }

    companion object {
        /** SEQUENCE { SEQUENCE { id-ecPublicKey, prime256v1 }, BIT STRING (66 bytes) } up to the point. */
        private val SPKI_PREFIX = byteArrayOf(
            0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2A, 0x86.toByte(), 0x48, 0xCE.toByte(), 0x3D, 0x02, 0x01,
            0x06, 0x08, 0x2A, 0x86.toByte(), 0x48, 0xCE.toByte(), 0x3D, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
        )
        private val P = BigInteger("ffffffff00000001000000000000000000000000ffffffffffffffffffffffff", 16)
        private val B = BigInteger("5ac635d8aa3a93e7b3ebbd55769886bc651d06b0cc53b0f63bce3c3e27d2604b", 16)

        /** Reads 91 bytes of SPKI DER or a 65-byte uncompressed point (X9.63). Refuses everything else, compressed points included. */
        fun of(bytes: ByteArray): PublicKey {
            val isSpki = bytes.size == 91 && bytes.copyOf(SPKI_PREFIX.size).contentEquals(SPKI_PREFIX)
            val point = if (isSpki) bytes.copyOfRange(SPKI_PREFIX.size, bytes.size) else bytes.copyOf()
            if (point.size != 65 || point[0] != 4.toByte() || !isOnCurve(point)) {
                throw FormException("the public key must be an uncompressed P-256 key as X.509 SPKI DER")
            }
            return PublicKey(point)
        }

        /** y² = x³ - 3x + b, with x and y below p. */
        private fun isOnCurve(point: ByteArray): Boolean {
            val x = BigInteger(1, point.copyOfRange(1, 33))
            val y = BigInteger(1, point.copyOfRange(33, 65))
            val right = x.pow(3) - x * BigInteger.valueOf(3) + B
            return x < P && y < P && (y * y - right).mod(P).signum() == 0
        }
    }
}
