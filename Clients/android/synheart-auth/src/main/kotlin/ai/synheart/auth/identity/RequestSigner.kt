package ai.synheart.auth.identity

import ai.synheart.auth.IdentityState
import ai.synheart.auth.MeasuredBody
import ai.synheart.auth.OwnCode
import ai.synheart.auth.SignatureScheme
import ai.synheart.auth.Situation
import ai.synheart.auth.SynheartAuthException
import ai.synheart.auth.failure
import ai.synheart.auth.wire.FormException
import ai.synheart.auth.wire.Header
import ai.synheart.auth.wire.RequestUrl
import ai.synheart.auth.wire.Route
import ai.synheart.auth.wire.SchemeTwo
import ai.synheart.auth.wire.base64
import ai.synheart.auth.wire.checkPath
import ai.synheart.auth.wire.contentDigest
import ai.synheart.auth.wire.contentDigestOf
import ai.synheart.auth.wire.isMethod
import ai.synheart.auth.wire.lowerAscii
import ai.synheart.auth.wire.rawSignature
import ai.synheart.auth.wire.schemeOneMessage
import ai.synheart.auth.wire.upperAscii
import ai.synheart.auth.wire.uuid

/** A signed request: its headers, the time that the signature covers, and the record and the key that signed. */
internal class SignedMessage(
    val headers: List<Pair<String, String>>, val timestamp: Long, val record: IdentityRecord, val key: KeyReference,
)

/** Runs [body], and turns a malformed part of a request into `SIGNING_FAILED`. */
internal inline fun <Value> signing(body: () -> Value): Value = try {
    body()
} catch (error: FormException) {
    throw failure(OwnCode.SIGNING_FAILED, error.message.orEmpty(), error)
}

/** Signs requests under both schemes. */
internal class RequestSigner(private val context: IdentityContext) {
    /** Signs an app's request under scheme 1 with the current key. */
    suspend fun sign(method: String, path: String, body: ByteArray): SignedMessage {
        checkMethod(method)
        signing { checkPath(path) }
        refuseReserved(method, path)
        return signAsCurrent { record, key -> signSchemeOne(method, path, body, record, key) }
    }

    /** Signs an app's request under the given scheme with the current key. */
    suspend fun sign(scheme: SignatureScheme, method: String, url: RequestUrl, body: ByteArray): SignedMessage {
        if (scheme == SignatureScheme.ONE) return sign(method, url.target.path, body)
        return signSchemeTwo(method, url) { contentDigest(body) }
    }

    /**
     * Signs an app's request with a streamed body. Only scheme 2 supports this: under scheme 1 the key store hashes the message,
     * and needs all of it.
     *
     * @param body measures the body. It is called after the rest of the request was checked
     */
    suspend fun sign(scheme: SignatureScheme, method: String, url: RequestUrl, body: suspend () -> MeasuredBody): SignedMessage {
        if (scheme == SignatureScheme.ONE) {
            throw failure(OwnCode.SIGNING_FAILED, "scheme 1 signs the body itself; a streamed body needs Configuration.scheme = SignatureScheme.TWO")
        }
        return signSchemeTwo(method, url) { contentDigestOf(body().digest) }
    }

    private suspend fun signSchemeTwo(method: String, url: RequestUrl, digest: suspend () -> String): SignedMessage {
        checkMethod(method)
        refuseReserved(method, url.target.path)
        val value = digest()
        return signAsCurrent { record, key -> signSchemeTwo(method, url, value, record, key) }
    }

    /** Signs one of the client's own requests with this key. */
    suspend fun sign(scheme: SignatureScheme, route: Route, body: ByteArray, record: IdentityRecord, key: KeyReference): SignedMessage =
        if (scheme == SignatureScheme.ONE) {
            signSchemeOne(route.method, route.path, body, record, key)
        } else {
            val url = signing { RequestUrl.parse(context.configuration.baseUrl + route.path) }
            signSchemeTwo(route.method, url, contentDigest(body), record, key)
        }

    private suspend fun signSchemeOne(
        method: String, path: String, body: ByteArray, record: IdentityRecord, key: KeyReference,
    ): SignedMessage {
        val timestamp = timestamp(record)
        val signature = context.sign(key, schemeOneMessage(method, path, timestamp, body))
        val headers = listOf(
            Header.APP_ID to context.appId, Header.DEVICE_ID to record.device(), Header.SIGNATURE to signature.base64(),
            Header.TIMESTAMP to timestamp.toString(), Header.NONCE to context.configuration.random.uuid(), Header.SIGNATURE_VERSION to "1",
        )
        return SignedMessage(headers, timestamp, record, key)
    }

    private suspend fun signSchemeTwo(
        method: String, url: RequestUrl, digest: String, record: IdentityRecord, key: KeyReference,
    ): SignedMessage {
        val timestamp = timestamp(record)
        val parameters = SchemeTwo.parameters(timestamp, context.configuration.random.uuid(), key.thumbprint)
        val base = SchemeTwo.base(method, url.origin, url.target, digest, context.appId, record.device(), parameters)
        val signature = context.sign(key, base)
        val headers = listOf(
            Header.APP_ID to context.appId, Header.DEVICE_ID to record.device(), Header.CONTENT_DIGEST to digest,
            Header.SIGNATURE_INPUT to "${SchemeTwo.LABEL}=$parameters",
            Header.MESSAGE_SIGNATURE to "${SchemeTwo.LABEL}=:${rawSignature(signature).base64()}:",
        )
        return SignedMessage(headers, timestamp, record, key)
    }

    /**
     * Runs [body] with the current key. If the key is lost, checks whether another process has just replaced it. If not,
     * marks the key as lost.
     */
    suspend fun <Value> signAsCurrent(
        keyOf: (IdentityRecord) -> KeyReference = IdentityRecord::signingKey, body: suspend (IdentityRecord, KeyReference) -> Value,
    ): Value {
        var tried: KeyReference? = null
        while (true) {
            val record = context.ledger.load()
            val key = keyOf(record)
            if (tried == key) {
                context.ledger.apply(IdentityEvent.KeyLost(key))
                throw keyLost()
            }
            try {
                return body(record, key)
            } catch (error: SynheartAuthException.KeyInvalidated) {
                tried = key
            }
        }
    }

    private fun timestamp(record: IdentityRecord): Long {
        val timestamp = context.serverTime(record)
        // A timestamp has ten digits.
        if (timestamp !in 1_000_000_000..9_999_999_999) {
            throw failure(Situation.CLOCK_TOO_FAR_OFF, "the device's clock shows no possible time")
        }
        return timestamp
    }

    private fun checkMethod(method: String) {
        if (!isMethod(method)) throw failure(OwnCode.SIGNING_FAILED, "not an HTTP method")
    }

    private companion object {
        private val reserved = listOf(Route.ROTATE_KEY, Route.DEVICE)
        private val slashes = Regex("/+")
        private val escape = Regex("%([0-9a-fA-F]{2})")

        /**
         * Refuses to sign the requests that change the identity, because the holder of such a signature could take over the
         * identity. Compares the path as a lenient server reads it.
         */
        fun refuseReserved(method: String, path: String) {
            if (reserved.none { it.method == method.upperAscii() }) return
            val decoded = escape.replace(path) { it.groupValues[1].toInt(16).toChar().toString() }
            val plain = slashes.replace(decoded, "/").removeSuffix("/").lowerAscii()
            if (reserved.any { it.method == method.upperAscii() && it.path == plain }) {
                throw failure(OwnCode.SIGNING_FAILED, "only rotateKey and resetDeviceIdentity sign this request")
            }
        }
    }
}

internal fun IdentityRecord.device(): String = deviceId ?: throw failure(OwnCode.NOT_REGISTERED, "no device id")

/** The error if the current key is gone, or is found and can no longer sign. */
internal fun keyLost(): SynheartAuthException = failure(OwnCode.KEY_INVALIDATED, "the key is gone; registerDevice makes a new one")

/** The key that signs. Throws if the identity may not sign. */
internal fun IdentityRecord.signingKey(): KeyReference {
    if (state == IdentityState.KEY_INVALID) throw keyLost()
    if (identity == Identity.ACTIVE && key != null) return key
    throw failure(
        OwnCode.NOT_REGISTERED, if (identity == Identity.PENDING) "the service has not approved this device yet" else "call registerDevice first",
    )
}
