package ai.synheart.auth.identity

import ai.synheart.auth.Configuration
import ai.synheart.auth.DeviceStatus
import ai.synheart.auth.HttpResponse
import ai.synheart.auth.HttpRequest
import ai.synheart.auth.HttpTransport
import ai.synheart.auth.MeasuredBody
import ai.synheart.auth.OwnCode
import ai.synheart.auth.Remedy
import ai.synheart.auth.SignatureScheme
import ai.synheart.auth.Situation
import ai.synheart.auth.SynheartAuthException
import ai.synheart.auth.TransportException
import ai.synheart.auth.afterRequest
import ai.synheart.auth.concurrency.CallLife
import ai.synheart.auth.concurrency.deadlinePassed
import ai.synheart.auth.concurrency.withDeadline
import ai.synheart.auth.failure
import ai.synheart.auth.remedy
import ai.synheart.auth.wire.RequestOrigin
import ai.synheart.auth.wire.RequestUrl
import ai.synheart.auth.wire.error
import ai.synheart.auth.wire.naming
import ai.synheart.auth.wire.problemOfHostHeaders
import ai.synheart.auth.wire.refusal
import ai.synheart.auth.wire.rotationDemand
import ai.synheart.auth.wire.upperAscii

/**
 * Signs a request, sends it, and recovers once from each refusal, as [Remedy] says.
 *
 * The client believes a verdict of the auth service. It confirms a verdict of another origin by a status request: a compromised
 * backend must not make a device give up its identity.
 */
internal class AuthenticatedSend(
    private val identity: DeviceIdentity,
    private val request: HttpRequest,
    /** The scheme that the caller asked for; null: the scheme that the device signs with. */
    private val scheme: SignatureScheme?,
    /** The transport of the request. The client's own calls use the configuration's transport. */
    private val transport: HttpTransport,
) {
    private val context = identity.context
    private val url = signing { RequestUrl.parse(request.url) }
    private val isAuthOrigin = context.configuration.isAuthOrigin(url.origin)
    private val life = CallLife(request.deadline, context.configuration.clock)
    private val signer = RequestSigner(context)

    /** Whether a copy of the request may have been accepted. */
    @Volatile
    private var mayHaveHappened = false

    /** The size and digest of a streamed body, after its first reading: each copy must be the same. */
    private var measured: MeasuredBody? = null

    // Guarded by this object's monitor.
    private var latest: HttpResponse? = null
    private var hasEnded = false

    /**
     * Returns the answer, or throws at the request's deadline. A rotation or registration that the call began continues, but the
     * request is not sent any more.
     */
    suspend fun run(): HttpResponse {
        var isReceived = false
        try {
            val answer = withDeadline(request.deadline, context.configuration.sleeper) { attempts() } ?: throw deadlinePassed()
            isReceived = true
            return answer
        } catch (error: SynheartAuthException) {
            throw error.afterRequest(synchronized(this) { hasEnded = true; mayHaveHappened })
        } finally {
            life.finish()
            end(isReceived)
        }
    }

    /** Keeps an answer, so that its stream is closed if no caller receives it. */
    private fun keep(answer: HttpResponse) = synchronized(this) {
        latest = answer
        if (hasEnded) answer.abandon()
    }

    private fun end(isReceived: Boolean) = synchronized(this) {
        hasEnded = true
        if (!isReceived) latest?.abandon()
    }

    private suspend fun attempts(): HttpResponse {
        val recovered = HashSet<String>()
        while (true) {
            life.remaining()
            val used = context.scheme(scheme, context.ledger.load())
            val signedAt = context.configuration.clock.elapsedMillis
            val (answer, signed) = try {
                signAndSend(used)
            } catch (error: SynheartAuthException) {
                if (error.remedy != Remedy.REGISTER || !recovered.add(error.code)) throw error
                identity.register(joins = true)
                continue
            }
            // Only the auth service can demand that the key which signed is replaced.
            if (isAuthOrigin) answer.rotationDemand?.let { context.note(it, signed.key) }
            val verdict = verdict(answer)
            if (verdict == null) {
                if (answer.isOfVerifiedRequest) context.noteScheme(used, signed.record)
                return answer
            }
            val isRepeated = !recovered.add(verdict.code)
            if (isRepeated && !verdict.endsIdentity) throw verdict
            when (verdict.remedy) {
                Remedy.LEARN_CLOCK -> if (!learnClock(verdict, signed.record.clockOffset, signedAt)) return answer
                Remedy.REPORT -> throw verdict.naming(url.origin)
                // A copy was accepted. Sign again only if another copy has no second effect.
                Remedy.SIGN_AGAIN -> if (!isRepeatable) {
                    throw failure(Situation.WRITE_REPLAYED, "a copy of this request was accepted; it is not sent again", verdict)
                }
                // If the key was rotated meanwhile, a refusal of the old key demands no second rotation.
                Remedy.ROTATE -> if (context.ledger.load().key == signed.key) identity.rotateAsDemanded()
                Remedy.ASSERT ->
                    throw failure(OwnCode.ATTESTATION_UNAVAILABLE, "this device has no App Attest key to assert with", verdict)
                Remedy.FINISH_ROTATION, Remedy.CONFIRM -> {
                    // During a rotation, and after a rotation whose answer was lost, the service may accept only the new key.
                    if (!isRepeated && verdict.remedy == Remedy.FINISH_ROTATION && identity.hasReplaced(signed.key)) continue
                    confirmed(verdict, signed.record)?.let { throw it }
                    return answer
                }
                else -> return answer
            }
        }
    }

    /** Signs and sends one copy. Returns the answer, and the copy. */
    private suspend fun signAndSend(scheme: SignatureScheme): Pair<HttpResponse, SignedMessage> {
        problemOfHostHeaders(request.headers, scheme)?.let { throw failure(OwnCode.SIGNING_FAILED, "the request's headers: $it") }
        val signed = sign(scheme)
        val method = if (scheme == SignatureScheme.ONE) request.method.upperAscii() else request.method
        val copy = request.signed(method, request.headers + signed.headers, measured, life.remaining())
        val before = leave()
        val answer = try {
            context.configuration.exchange(copy, transport)
        } catch (error: SynheartAuthException) {
            if (!error.mayHaveArrived) mayHaveHappened = before
            measured?.failure?.let { throw failure(OwnCode.SIGNING_FAILED, it.message.orEmpty(), it) }
            throw error
        }
        keep(answer)
        if (answer.isRefusedUnseen) mayHaveHappened = before
        return answer to signed
    }

    /** Notes that a copy is being sent. Returns [mayHaveHappened] as it was. Throws if the call has ended. */
    private fun leave(): Boolean = synchronized(this) {
        if (hasEnded) throw deadlinePassed()
        mayHaveHappened.also { mayHaveHappened = true }
    }

    private suspend fun sign(scheme: SignatureScheme): SignedMessage {
        val body = request.streamedBody ?: return signer.sign(scheme, request.method, url, request.body)
        return signer.sign(scheme, request.method, url) { measured ?: MeasuredBody.of(body).also { measured = it } }
    }

    /** Whether a second copy has no second effect. */
    private val isRepeatable: Boolean
        get() = request.method.upperAscii() in IDEMPOTENT || request.headers.any { it.first.equals("Idempotency-Key", ignoreCase = true) }

    /**
     * Learns the clock after the service refused a copy that was signed with the offset [used] when the monotonic clock
     * showed [signedAt].
     *
     * @return whether to sign again; false if another origin refused the copy although the auth service accepts the
     *   client's clock
     */
    private suspend fun learnClock(verdict: SynheartAuthException, used: ClockOffset, signedAt: Long): Boolean {
        // Another call has learned the clock since the copy was signed.
        if (context.ledger.load().clockOffset != used) return true
        // The service refuses a request that was delayed on its way, although the client's clock is right. The answer may have been
        // delayed too, and its time is out of date then. So learn the clock from a new request.
        val isLate = context.configuration.clock.elapsedMillis - signedAt > LONGEST_ROUND_TRIP_MILLIS
        val time = verdict.failure.serverTime
        if (isAuthOrigin && time != null && !isLate) {
            val offset = ClockOffset.of(time, context.configuration.clock.wallMillis, 0) ?: throw unlearnableClock(verdict)
            context.ledger.apply(IdentityEvent.ClockLearned(offset))
        } else {
            identity.status()
        }
        if (context.ledger.load().clockOffset != used || isLate) return true
        if (isAuthOrigin) throw unlearnableClock(verdict)
        return false
    }

    /**
     * The verdict if the auth service confirms it, or the error of the status request; else null. If a reset has ended the identity
     * that signed, the status of the present one decides.
     */
    private suspend fun confirmed(verdict: SynheartAuthException, record: IdentityRecord): SynheartAuthException? {
        if (isAuthOrigin && context.ledger.load().deviceId == record.deviceId) return verdict
        return try {
            val status = identity.status().status
            verdict.takeIf { status == DeviceStatus.Status.REVOKED || status == DeviceStatus.Status.REJECTED }
        } catch (error: SynheartAuthException) {
            error
        }
    }

    private companion object {
        /** The safe or idempotent methods (RFC 9110 section 9.2), except TRACE. */
        val IDEMPOTENT = setOf("GET", "HEAD", "OPTIONS", "PUT", "DELETE")

        /** Whether something of the request may have been sent. */
        val SynheartAuthException.mayHaveArrived: Boolean get() = (cause as? TransportException)?.mayHaveArrived ?: true

        /** Whether the answer shows that this copy was not accepted. NONCE_REPLAY does not: the same copy may have arrived twice. */
        val HttpResponse.isRefusedUnseen: Boolean
            get() = status in 400..499 && status != 429 && refusal.let { it != null && it.code != OwnCode.NONCE_REPLAY.text }

        /**
         * Whether the service verified the request and raised the device's scheme floor, the lowest scheme that it still accepts
         * from this device. A refusal or a 5xx does not show that.
         */
        val HttpResponse.isOfVerifiedRequest: Boolean get() = status < 500 && refusal == null

        /** Whether the verdict would end the identity, so that the auth service must confirm it. */
        val SynheartAuthException.endsIdentity: Boolean get() = remedy == Remedy.FINISH_ROTATION || remedy == Remedy.CONFIRM

        /** The refusal in a 401, 403 or 409, or a 421 with `MISDIRECTED_REQUEST`; null for any other answer, such as an app's own 4xx. */
        fun verdict(answer: HttpResponse): SynheartAuthException? {
            if (answer.status !in setOf(401, 403, 409, 421) || answer.refusal == null) return null
            return answer.error().takeIf { answer.status != 421 || it.remedy == Remedy.REPORT }
        }
    }
}

/** Whether the origin is the auth service's. Throws if it is another one that `Configuration.origins` does not list. */
internal fun Configuration.isAuthOrigin(origin: RequestOrigin): Boolean {
    if (origin == this.origin) return true
    if (origin in origins) return false
    throw failure(OwnCode.SIGNING_FAILED, "the request's origin is not one of Configuration.origins")
}
