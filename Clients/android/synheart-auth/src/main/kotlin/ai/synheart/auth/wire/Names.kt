package ai.synheart.auth.wire

import ai.synheart.auth.RandomSource

/** The paths and methods of the service's routes that a device calls. */
internal enum class Route(val method: String, val path: String) {
    CHALLENGE("POST", "/auth/v1/device/challenge"),
    REGISTER("POST", "/auth/v1/device/register"),
    ROTATE_KEY("POST", "/auth/v1/device/rotate-key"),
    STATUS("GET", "/auth/v1/device/status"),
    DEVICE("DELETE", "/auth/v1/device"),
    TOKEN("POST", "/auth/v1/token"),
}

/** The protocol's header field names. Readers ignore case. */
internal object Header {
    const val APP_ID = "X-App-ID"
    const val DEVICE_ID = "X-Device-ID"
    const val SIGNATURE = "X-Synheart-Signature"
    const val TIMESTAMP = "X-Synheart-Timestamp"
    const val NONCE = "X-Synheart-Nonce"
    const val SIGNATURE_VERSION = "X-Synheart-Sig-Version"
    const val CONTENT_DIGEST = "Content-Digest"
    const val SIGNATURE_INPUT = "Signature-Input"
    const val MESSAGE_SIGNATURE = "Signature"
    const val ASSERTION = "X-Synheart-Assertion"
    const val SERVER_TIME = "X-Synheart-Server-Time"
    const val ROTATE = "X-Synheart-Rotate"
    const val ERROR = "X-Synheart-Error"
}

/** The `User-Agent` (RFC 9110 section 10.1.5) of the client's own requests. The app or the transport sets that of other requests. */
internal const val USER_AGENT = "synheart-auth/1.0.0 (kotlin)"

private val APP_ID = Regex("[A-Za-z0-9._-]{1,128}")
private val DEVICE_ID = Regex("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
private val UNIX_TIME = Regex("[0-9]{10}")

/** Whether a text is the id of an app. It must not end in `_next`, the suffix of the alias of an app's second key. */
internal fun isAppId(text: String): Boolean = APP_ID.matches(text) && !text.endsWith("_next")

/** Whether a text is the id of a device: a lower-case version 4 UUID. */
internal fun isDeviceId(text: String): Boolean = DEVICE_ID.matches(text)

/** Reads a time of a header: exactly ten decimal digits; null for anything else. */
internal fun unixTimeOrNull(text: String): Long? = if (UNIX_TIME.matches(text)) text.toLong() else null

/** A new version 4 UUID in lower case (RFC 9562 section 5.4). */
internal fun RandomSource.uuid(): String {
    val bytes = bytes(16)
    bytes[6] = (bytes[6].toInt() and 0x0F or 0x40).toByte()
    bytes[8] = (bytes[8].toInt() and 0x3F or 0x80).toByte()
    val hex = bytes.hex()
    return listOf(hex.substring(0, 8), hex.substring(8, 12), hex.substring(12, 16), hex.substring(16, 20), hex.substring(20))
        .joinToString("-")
}
