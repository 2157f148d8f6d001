package ai.synheart.auth.wire

import java.security.MessageDigest
import java.util.Base64

/** A text or bytes that do not have the form that the protocol demands. The message holds nothing of the input. */
internal class FormException(message: String) : Exception(message)

internal fun sha256(vararg parts: ByteArray): ByteArray =
    MessageDigest.getInstance("SHA-256").run {
        for (part in parts) update(part)
        digest()
    }

private const val HEX = "0123456789abcdef"

internal fun ByteArray.hex(): String = buildString(2 * size) {
    for (byte in this@hex) append(HEX[byte.toInt() shr 4 and 15]).append(HEX[byte.toInt() and 15])
}

/** Base64, standard alphabet, padded. */
internal fun ByteArray.base64(): String = Base64.getEncoder().encodeToString(this)

/** Base64url without padding. */
internal fun ByteArray.base64Url(): String = Base64.getUrlEncoder().withoutPadding().encodeToString(this)

/** Reads strict base64: canonical, padded, without white space; null for anything else. */
internal fun decodeBase64(text: String): ByteArray? = decode(text, Base64.getDecoder()) { it.base64() }

/** Reads strict base64url without padding; null for anything else. */
internal fun decodeBase64Url(text: String): ByteArray? = decode(text, Base64.getUrlDecoder()) { it.base64Url() }

/** Java's decoders accept several texts for the same bytes. Only the canonical one is valid. */
private fun decode(text: String, decoder: Base64.Decoder, encode: (ByteArray) -> String): ByteArray? {
    val bytes = try {
        decoder.decode(text)
    } catch (_: IllegalArgumentException) {
        return null
    }
    return bytes.takeIf { encode(it) == text }
}

internal fun Char.isAsciiDigit(): Boolean = this in '0'..'9'

internal fun Char.isAsciiLetter(): Boolean = this in 'a'..'z' || this in 'A'..'Z'

/** Converts only ASCII letters to lower case, because some other letters have a lower case in a-z too. */
internal fun String.lowerAscii(): String = buildString(length) {
    for (c in this@lowerAscii) append(if (c in 'A'..'Z') c + 32 else c)
}

internal fun String.upperAscii(): String = buildString(length) {
    for (c in this@upperAscii) append(if (c in 'a'..'z') c - 32 else c)
}
