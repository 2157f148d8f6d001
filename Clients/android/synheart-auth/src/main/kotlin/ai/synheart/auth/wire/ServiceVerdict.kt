package ai.synheart.auth.wire

import ai.synheart.auth.HttpResponse
import ai.synheart.auth.OwnCode
import ai.synheart.auth.Remedy
import ai.synheart.auth.RetryPolicy
import ai.synheart.auth.RotationReason
import ai.synheart.auth.ServiceCode
import ai.synheart.auth.SynheartAuthException
import ai.synheart.auth.failure
import ai.synheart.auth.remedy
import kotlin.time.Duration
import kotlin.time.Duration.Companion.seconds

/** A refusal in the protocol's form: in the body, or in headers where a gateway replaced the body. */
internal class Refusal(val code: String, val message: String, val serverTime: Long?)

/** The demand in `X-Synheart-Rotate`. */
internal data class RotationDemand(
    /** The deadline: unix seconds. */
    val by: Long,
    val reason: RotationReason,
) {
    companion object {
        /** Reads the value of the header field; null if the value demands no rotation. Ignores unknown parameters. */
        fun parse(text: String): RotationDemand? {
            val parts = text.split(';').map { it.trimStart(' ') }
            fun value(name: String) = parts.find { it.startsWith("$name=") }?.substring(name.length + 1)
            val by = value("by")?.let(::unixTimeOrNull)
            if (parts[0] != "required" || by == null) return null
            return RotationDemand(by, RotationReason.entries.find { it.wire == value("reason") } ?: RotationReason.SCHEDULED)
        }
    }
}

/** The demand to rotate in an answer of the auth service. */
internal val HttpResponse.rotationDemand: RotationDemand? get() = header(Header.ROTATE)?.let(RotationDemand::parse)

/** The refusal in a 4xx or 5xx; null if the answer is not in the protocol's form. */
internal val HttpResponse.refusal: Refusal?
    get() {
        if (status !in 400..599) return null
        errorBody()?.let { return it }
        val code = header(Header.ERROR)?.takeIf { it.isNotEmpty() } ?: return null
        return Refusal(code, "The service refused.", serverTime)
    }

/** The service's clock in unix seconds: `X-Synheart-Server-Time`; without it the `server_timestamp` of a refusal. */
internal val HttpResponse.serverTime: Long?
    get() {
        if (headers.any { it.first.equals(Header.SERVER_TIME, ignoreCase = true) }) {
            return header(Header.SERVER_TIME)?.let(::unixTimeOrNull)
        }
        return if (status >= 400) errorBody()?.serverTime else null
    }

/** `Retry-After` in whole seconds, limited to [RetryPolicy.LONGEST_RETRY_AFTER]. A date is ignored. */
internal val HttpResponse.retryAfter: Duration?
    get() {
        val text = header("Retry-After") ?: return null
        if (text.isEmpty() || !text.all(Char::isAsciiDigit)) return null
        // A number that is too large to read is a long time.
        return text.toLongOrNull()?.seconds?.coerceAtMost(RetryPolicy.LONGEST_RETRY_AFTER) ?: RetryPolicy.LONGEST_RETRY_AFTER
    }

/** The error of an answer that is not 2xx. Only a 4xx in the protocol's form is a verdict. Anything else is a network error. */
internal fun HttpResponse.error(): SynheartAuthException {
    val refusal = refusal
        ?: return failure(OwnCode.NETWORK_ERROR, "the answer is not the service's (HTTP $status)", retryAfter = retryAfter)
    if (status >= 500) {
        val code = ServiceCode.of(refusal.code).text
        return failure(
            OwnCode.NETWORK_ERROR, "the service answered $code", retryAfter = retryAfter, serverTime = refusal.serverTime,
        )
    }
    return failure(
        ServiceCode.reported(refusal.code), refusal.message.take(500), retryAfter = retryAfter, serverTime = refusal.serverTime,
    )
}

/** A `MISDIRECTED_REQUEST` error with the request's origin in its message. Other errors are returned unchanged. */
internal fun SynheartAuthException.naming(origin: RequestOrigin): SynheartAuthException =
    if (remedy != Remedy.REPORT) this else failure(failure.code, "the service at ${origin.text} is not configured for this origin: $message", this)

internal val SynheartAuthException.isInvalidSignature: Boolean get() = failure.code == ServiceCode.INVALID_SIGNATURE

/**
 * Whether the service makes this refusal only after it has recorded the request against replay. If the same copy
 * arrives again, the service then refuses it as a replay.
 */
internal val SynheartAuthException.followsClaims: Boolean
    get() = this is SynheartAuthException.AttestationFailed || failure.code == ServiceCode.ATTESTATION_REQUIRED ||
        failure.code == ServiceCode.ASSERTION_REQUIRED

private fun HttpResponse.errorBody(): Refusal? = try {
    val json = JsonObject.parse(body)
    Refusal(json.string("error"), json.optionalString("message").orEmpty(), json.long("server_timestamp"))
} catch (_: FormException) {
    null
}
