package ai.synheart.auth.wire

// The bytes that keys sign, and the nonces in attestations.

/** The nonce that binds an attestation to one challenge and one key: SHA-256 of the decoded challenge and of the key's base64 text. */
internal fun bindingNonce(challenge: ByteArray, publicKeyText: String): ByteArray = sha256(challenge, publicKeyText.toByteArray())

/** The nonce of a rotation that attests again. It covers the device id too. */
internal fun rotationNonce(challenge: ByteArray, deviceId: String, newPublicKeyText: String): ByteArray =
    sha256("synheart-auth/rotate/v1\n".toByteArray(), challenge, "$deviceId\n$newPublicKeyText".toByteArray())

/** The message of `key_proof` in a registration. */
internal fun registrationProofMessage(bindingNonce: ByteArray): ByteArray = "synheart-auth/register/v1\n".toByteArray() + bindingNonce

/** The message of `new_key_proof` in a rotation. */
internal fun rotationProofMessage(deviceId: String, newPublicKeyText: String): ByteArray =
    "synheart-auth/rotate/v1\n$deviceId\n$newPublicKeyText".toByteArray()

/** The message of a scheme 1 signature. The method is converted to upper case; the body is as sent. */
internal fun schemeOneMessage(method: String, path: String, timestamp: Long, body: ByteArray): ByteArray =
    "${method.upperAscii()}\n$path\n$timestamp\n".toByteArray() + body

/** The value of `Content-Digest` (RFC 9530). An empty body has one too. */
internal fun contentDigest(body: ByteArray): String = contentDigestOf(sha256(body))

/** The value of `Content-Digest` of a body with this SHA-256. */
internal fun contentDigestOf(digest: ByteArray): String = "sha-256=:${digest.base64()}:"

/** Scheme 2: a fixed profile of HTTP Message Signatures (RFC 9421). Nothing in it is negotiable. */
internal object SchemeTwo {
    const val LABEL = "synheart"

    /** The covered components: all of these, in this order. */
    private val components =
        listOf("@method", "@scheme", "@authority", "@path", "@query", "content-digest", "x-app-id", "x-device-id")

    /** The signature's member of `Signature-Input`, as sent and signed. */
    fun parameters(created: Long, nonce: String, keyThumbprint: String): String =
        components.joinToString(" ", "(", ")") { "\"$it\"" } +
            ";created=$created;nonce=\"$nonce\";keyid=\"$keyThumbprint\";tag=\"synheart-auth-v2\";alg=\"ecdsa-p256-sha256\""

    /** The signature base (RFC 9421 section 2.5). The callers have checked that every value is ASCII without line breaks. */
    fun base(
        method: String, origin: RequestOrigin, target: RequestTarget, contentDigest: String, appId: String, deviceId: String,
        parameters: String,
    ): ByteArray {
        val values = listOf(
            method, origin.scheme, origin.authority, target.path, "?${target.query.orEmpty()}", contentDigest, appId, deviceId,
        )
        return buildString {
            components.zip(values) { component, value -> append('"').append(component).append("\": ").append(value).append('\n') }
            append("\"@signature-params\": ").append(parameters)
        }.toByteArray()
    }
}
