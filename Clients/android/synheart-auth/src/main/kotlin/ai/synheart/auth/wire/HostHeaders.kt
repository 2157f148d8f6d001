package ai.synheart.auth.wire

import ai.synheart.auth.SignatureScheme

/** Fields of the transport (RFC 9110 sections 7.6.1 and 8.6, RFC 9112 section 6.1). */
private val FRAMING = setOf(
    "host", "content-length", "transfer-encoding", "connection", "keep-alive", "proxy-connection", "te", "trailer", "upgrade",
)

/** Fields of the signature, of either scheme. */
private val SIGNATURE = setOf(
    Header.APP_ID, Header.DEVICE_ID, Header.SIGNATURE, Header.TIMESTAMP, Header.NONCE, Header.SIGNATURE_VERSION,
    Header.SIGNATURE_INPUT, Header.MESSAGE_SIGNATURE, Header.ASSERTION,
).mapTo(HashSet()) { it.lowerAscii() }

/**
 * The fault of the header lines that an app adds to its request; null if there is none. Faults are malformed lines, fields that
 * the transport writes, and fields that belong to the signature. The client drops nothing silently.
 */
internal fun problemOfHostHeaders(headers: List<Pair<String, String>>, scheme: SignatureScheme): String? {
    for ((field, value) in headers) {
        if (!isToken(field)) return "a header's name is not a token"
        if (!value.all { it == '\t' || it in ' '..'~' }) return "the value of $field has a character that is not printable ASCII"
        val name = field.lowerAscii()
        if (name in FRAMING) return "$name is for the transport to write"
        // The scheme 1 signature does not cover the digest, so the app may send one.
        val isDigest = scheme == SignatureScheme.TWO && name == Header.CONTENT_DIGEST.lowerAscii()
        if (isDigest || name in SIGNATURE) return "$name is part of the signature"
    }
    return null
}
