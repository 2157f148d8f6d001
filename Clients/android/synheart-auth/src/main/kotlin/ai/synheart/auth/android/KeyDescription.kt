package ai.synheart.auth.android

import java.security.cert.X509Certificate

/**
 * The fields of a key attestation that decide whether the client sends it. The service refuses a chain that hardware
 * did not make, even if the service requires no key attestation.
 *
 * @property securityLevel 0 software, 1 trusted execution environment, 2 StrongBox
 * @see <a href="https://source.android.com/docs/security/features/keystore/attestation">Key and ID attestation</a>
 */
internal class KeyDescription(val securityLevel: Int, val challenge: ByteArray) {
    companion object {
        private const val EXTENSION = "1.3.6.1.4.1.11129.2.1.17"
        private const val INTEGER = 0x02
        private const val OCTET_STRING = 0x04
        private const val ENUMERATED = 0x0A
        private const val SEQUENCE = 0x30

        /** The key description of a leaf; null if it has none that can be read. */
        fun of(leaf: X509Certificate): KeyDescription? {
            val extension = leaf.getExtensionValue(EXTENSION) ?: return null
            val description = Reader(Reader(extension).next(OCTET_STRING) ?: return null).next(SEQUENCE) ?: return null
            return Reader(description).run {
                next(INTEGER) ?: return null
                val level = next(ENUMERATED) ?: return null
                next(INTEGER) ?: return null
                next(ENUMERATED) ?: return null
                val challenge = next(OCTET_STRING) ?: return null
                KeyDescription(level.singleOrNull()?.toInt() ?: return null, challenge)
            }
        }
    }

    /** Reads DER elements one after another. */
    private class Reader(private val bytes: ByteArray) {
        private var position = 0

        /** The content of the next element; null if the element has another tag, or is longer than the rest of the bytes. */
        fun next(tag: Int): ByteArray? {
            if (byte() != tag) return null
            var length = byte() ?: return null
            if (length >= LONG_FORM) {
                val count = length - LONG_FORM
                if (count !in 1..MAXIMUM_LENGTH_BYTES) return null
                length = 0
                repeat(count) { length = (length shl Byte.SIZE_BITS) or (byte() ?: return null) }
            }
            if (length > bytes.size - position) return null
            position += length
            return bytes.copyOfRange(position - length, position)
        }

        private fun byte(): Int? = bytes.getOrNull(position)?.let { (it.toInt() and 0xFF).also { position++ } }

        private companion object {
            const val LONG_FORM = 0x80
            const val MAXIMUM_LENGTH_BYTES = 3
        }
    }
}
