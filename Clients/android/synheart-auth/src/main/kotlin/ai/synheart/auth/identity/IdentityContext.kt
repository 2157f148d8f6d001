package ai.synheart.auth.identity

import ai.synheart.auth.AttestationEvidence
import ai.synheart.auth.AttestationException
import ai.synheart.auth.AttestationSubject
import ai.synheart.auth.Configuration
import ai.synheart.auth.DeviceKeyStore
import ai.synheart.auth.DeviceKeyStoreException
import ai.synheart.auth.IdentityLog
import ai.synheart.auth.OwnCode
import ai.synheart.auth.Remedy
import ai.synheart.auth.Situation
import ai.synheart.auth.SignatureScheme
import ai.synheart.auth.SynheartAuthException
import ai.synheart.auth.concurrency.CallKind
import ai.synheart.auth.concurrency.NoAnswerException
import ai.synheart.auth.concurrency.withDeadline
import ai.synheart.auth.failure
import ai.synheart.auth.remedy
import ai.synheart.auth.wire.ChallengeAnswer
import ai.synheart.auth.wire.FormException
import ai.synheart.auth.wire.PublicKey
import ai.synheart.auth.wire.RotationDemand
import ai.synheart.auth.wire.Route
import ai.synheart.auth.wire.challengeRequest
import ai.synheart.auth.wire.followsClaims
import ai.synheart.auth.wire.rawSignature
import java.io.Closeable
import java.util.concurrent.ConcurrentHashMap
import kotlin.time.Duration
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.CancellationException

/** A challenge and the time at which it expires, on the monotonic clock. */
internal class UnexpiredChallenge(val bytes: ByteArray, val goodUntilMillis: Long)

/** The dependencies of every operation on one identity. */
internal class IdentityContext(val appId: String, val configuration: Configuration, changes: StateChanges) {
    val log = IdentityLog(appId, configuration.logger)
    val ledger = IdentityLedger(appId, configuration, log, changes)
    private val service = ServiceClient(configuration)
    private val signer = RequestSigner(this)
    private val judge = KeyJudge(configuration, ledger) { kind, body -> keys(kind, body) }

    /** By origin: the scheme that the service accepted after it had refused the other one. */
    val schemes = ConcurrentHashMap<String, SignatureScheme>()

    val maintenance = MaintenanceTurn(configuration.clock)

    /** Runs [body] while no other process and no other coroutine operates on this identity. */
    suspend fun <Value> exclusively(body: suspend () -> Value): Value {
        checkKeyStore()
        val lock = ledger.lock(IdentityLedger.Scope.OPERATION)
        try {
            return body()
        } finally {
            // Calls that still change keys or records end before another process gets the lock.
            configuration.keyCalls.afterChanges { configuration.storageCalls.afterChanges(lock::release) }
        }
    }

    // Keys.

    /** Makes one call of the key store on a background thread. Throws only [DeviceKeyStoreException]. */
    suspend fun <Value> keys(kind: CallKind, body: (DeviceKeyStore) -> Value): Value = try {
        configuration.keyCalls.run(kind) { body(configuration.keyStore) }
    } catch (error: CancellationException) {
        throw error
    } catch (error: DeviceKeyStoreException) {
        throw error
    } catch (error: NoAnswerException) {
        throw silent(error)
    } catch (error: Exception) {
        throw DeviceKeyStoreException(DeviceKeyStoreException.Code.FAILED, "the key store failed", error)
    }

    private fun silent(error: NoAnswerException?) =
        DeviceKeyStoreException(DeviceKeyStoreException.Code.UNAVAILABLE, "the key store does not answer", error)

    /** Throws while an abandoned change of the key store is still running: until it ends, the resulting key is unknown. */
    private fun checkKeyStore() {
        if (configuration.keyCalls.hasChangeLeftBehind) throw error(silent(null))
    }

    /** The client's error for a failure of the key store that does not tell whether an existing key is lost. */
    private fun error(error: DeviceKeyStoreException): SynheartAuthException = when (error.code) {
        DeviceKeyStoreException.Code.MISCONFIGURED -> failure(OwnCode.NOT_CONFIGURED, error.message.orEmpty(), error)
        DeviceKeyStoreException.Code.UNAVAILABLE -> failure(Situation.KEY_STORE_UNAVAILABLE, error.message.orEmpty(), error)
        else -> failure(OwnCode.KEYSTORE_ERROR, error.message.orEmpty(), error)
    }

    /** Makes a key. A failure does not mark any key as lost. */
    suspend fun createKey(alias: String, challenge: ByteArray?): PublicKey = try {
        keys(CallKind.CREATE_KEY) { parsed(it.create(alias, challenge)) }
    } catch (error: DeviceKeyStoreException) {
        throw error(error)
    }

    /** The referenced key; null if it is lost. Throws if it is uncertain whether the key is lost. */
    suspend fun publicKey(reference: KeyReference): PublicKey? = try {
        judge.ask(reference, CallKind.LOAD_KEY) { store ->
            store.load(reference.alias)?.let(::parsed)?.takeIf { it.thumbprint == reference.thumbprint }
        }
    } catch (_: SynheartAuthException.KeyInvalidated) {
        null
    }

    /** The key under this alias, whether or not the record names it; null if there is none, or the key store does not give it. */
    suspend fun keyUnder(alias: String): KeyReference? = try {
        keys(CallKind.LOAD_KEY) { store -> store.load(alias)?.let(::parsed) }?.let { KeyReference(alias, it.thumbprint) }
    } catch (_: DeviceKeyStoreException) {
        null
    }

    /** Signs with a key. Throws `KEY_INVALIDATED` only if it is lost. */
    suspend fun sign(key: KeyReference, message: ByteArray): ByteArray {
        val signature = judge.ask(key, CallKind.SIGN) { it.sign(key.alias, message) }
        signing { rawSignature(signature) }
        ledger.noteProof(key.alias)
        return signature
    }

    /** Deletes a key, best effort. If the hardware refuses, the alias is abandoned. Throws if the key store does not answer: a late
     * deletion must not hit a new key of the same name. */
    suspend fun deleteKey(alias: String) {
        try {
            keys(CallKind.DELETE_KEY) { it.delete(alias) }
        } catch (_: DeviceKeyStoreException) {
        }
        checkKeyStore()
    }

    private fun parsed(bytes: ByteArray): PublicKey = try {
        PublicKey.of(bytes)
    } catch (error: FormException) {
        throw DeviceKeyStoreException(DeviceKeyStoreException.Code.FAILED, "the key store's public key: ${error.message}", error)
    }

    // Attestation.

    /** Has the attestation provider attest a key. */
    suspend fun attest(subject: AttestationSubject): AttestationEvidence = try {
        withDeadline(PROVIDER_LIMIT, configuration.sleeper) { configuration.attestation.attest(subject) }
            ?: throw failure(Situation.PROVIDER_SILENT, "the attestation provider did not answer in time")
    } catch (error: CancellationException) {
        throw error
    } catch (error: SynheartAuthException) {
        throw error
    } catch (error: AttestationException) {
        throw when (error.code) {
            AttestationException.Code.UNSUPPORTED -> failure(Situation.ATTESTATION_UNSUPPORTED, error.message.orEmpty(), error)
            AttestationException.Code.REFUSED -> failure(Situation.ATTESTATION_REFUSED, "the attestation provider refused", error)
            AttestationException.Code.UNAVAILABLE ->
                failure(Situation.PROVIDER_UNAVAILABLE, "the attestation provider cannot be asked now", error)
            AttestationException.Code.MISCONFIGURED -> failure(OwnCode.NOT_CONFIGURED, error.message.orEmpty(), error)
        }
    } catch (error: Exception) {
        throw failure(Situation.ATTESTATION_REFUSED, "the attestation provider failed", error)
    }

    /** Fetches a challenge. Its life is counted from before the request was sent, so it expires here no later than on the service. */
    suspend fun challenge(purpose: String): UnexpiredChallenge {
        val answer = call(Route.CHALLENGE, body = challengeRequest(appId, purpose))
        val challenge = answer.read(ChallengeAnswer::parse)
        return UnexpiredChallenge(challenge.challenge, answer.sentAtMillis + minOf(challenge.lifeSeconds, 600) * 1000)
    }

    // The service.

    /** The service's time in unix seconds, as far as this device knows. */
    fun serverTime(record: IdentityRecord): Long = record.clockOffset.serverTime(configuration.clock.wallMillis)

    /** Calls the service. Learns from the answer, best effort, the service's clock and its demand to rotate the key that signed. */
    suspend fun call(
        route: Route, headers: List<Pair<String, String>> = emptyList(), body: ByteArray = ByteArray(0), deadline: Duration = CALL_LIMIT,
        signer: KeyReference? = null,
    ): ServiceClient.Answer {
        val outcome = service.exchange(route, headers, body, deadline)
        outcome.offset?.let { learn(it) }
        if (signer != null) outcome.rotationDemand?.let { note(it, signer) }
        return outcome.result.getOrThrow()
    }

    /** Notes a demand to rotate this key, best effort. A new demand lets automatic maintenance run again at once, even after a failure. */
    suspend fun note(demand: RotationDemand, key: KeyReference) {
        try {
            if (ledger.load().rotationDemand == demand) return
            if (ledger.apply(IdentityEvent.RotationDemanded(demand, key)).rotationDemand == demand) maintenance.allow()
        } catch (_: SynheartAuthException) {
        }
    }

    private suspend fun learn(offset: ClockOffset) {
        try {
            if (offset.isNews(ledger.load().clockOffset)) ledger.apply(IdentityEvent.ClockLearned(offset))
        } catch (_: SynheartAuthException) {
        }
    }

    /**
     * Signs and sends one of the client's own requests. Signs again once for each refusal that a new signature can resolve.
     *
     * @param beforeSending runs before each copy leaves, with its timestamp
     */
    suspend fun signedCall(
        route: Route, record: IdentityRecord, key: KeyReference, body: ByteArray = ByteArray(0), deadline: Duration = CALL_LIMIT,
        beforeSending: suspend (timestamp: Long) -> Unit = {},
    ): ServiceClient.Answer {
        var current = record
        val seen = HashSet<String>()
        var scheme = schemes[configuration.baseUrl] ?: scheme(null, record)
        while (true) {
            val signedAt = configuration.clock.elapsedMillis
            val signed = signer.sign(scheme, route, body, current, key)
            try {
                beforeSending(signed.timestamp)
                val answer = call(route, signed.headers, body, deadline, key)
                if (SIG_VERSION in seen) schemes[configuration.baseUrl] = scheme
                noteScheme(scheme, current)
                return answer
            } catch (error: SynheartAuthException) {
                if (SIG_VERSION in seen && error.followsClaims) schemes[configuration.baseUrl] = scheme // It accepted the signature.
                if (!seen.add(error.code)) throw error
                when (error.remedy) {
                    Remedy.LEARN_CLOCK, Remedy.SIGN_AGAIN -> {}
                    Remedy.SIGN_OTHER_SCHEME -> scheme = scheme.other
                    else -> throw error
                }
                val before = current.clockOffset
                current = ledger.loadOfAnyOrigin()
                // The service refuses a copy that was delayed on its way, although the clock is right. So the client learns no offset
                // from a late refusal.
                val isLate = configuration.clock.elapsedMillis - signedAt > LONGEST_ROUND_TRIP_MILLIS
                if (error.remedy == Remedy.LEARN_CLOCK && current.clockOffset == before && !isLate) {
                    current = ledger.apply(IdentityEvent.ClockLearned(offset(error)?.takeIf { it.isNews(before) } ?: throw unlearnableClock(error)))
                }
            }
        }
    }

    /** The offset that follows from a refusal's server time; null if it has none, or if the offset is too large. */
    private fun offset(refusal: SynheartAuthException): ClockOffset? =
        refusal.failure.serverTime?.let { ClockOffset.of(it, configuration.clock.wallMillis, 0) }

    /** Runs [body] with the key of the record. A key that cannot sign any more is marked as lost. */
    suspend fun <Value> signAsCurrent(
        keyOf: (IdentityRecord) -> KeyReference = IdentityRecord::signingKey, body: suspend (IdentityRecord, KeyReference) -> Value,
    ): Value = signer.signAsCurrent(keyOf, body)

    /**
     * The scheme of the app's requests: the configuration's scheme, or the device's floor if that is higher. The floor is
     * the lowest scheme that the service still accepts from this device.
     *
     * @throws SynheartAuthException `SIGNING_FAILED` if the caller asks for another scheme. A request under a higher
     *   scheme would raise the floor for other callers. The service refuses a request under a scheme below the floor.
     */
    fun scheme(asked: SignatureScheme?, record: IdentityRecord): SignatureScheme {
        val used = maxOf(configuration.scheme, record.schemeFloor)
        if (asked == null || asked == used) return used
        throw failure(
            OwnCode.SIGNING_FAILED,
            if (configuration.scheme == used) "Configuration.scheme is $used, and this call asks for $asked"
            else "this device signs under scheme 2 since a request under it was accepted, and this call asks for $asked",
        )
    }

    /**
     * Raises the recorded scheme floor (the lowest scheme to sign under) after a request under this scheme, because the
     * service raises its floor for the device too.
     */
    suspend fun noteScheme(scheme: SignatureScheme, record: IdentityRecord) {
        if (scheme <= record.schemeFloor) return
        // The answer may be to a request of an identity that was reset meanwhile.
        val now = try { ledger.load() } catch (_: SynheartAuthException) { return }
        if (now.deviceId == record.deviceId) ledger.tryApply(IdentityEvent.SchemeUsed(scheme))
    }

    companion object {
        val CALL_LIMIT = 30.seconds
        private val PROVIDER_LIMIT = 30.seconds
        private const val SIG_VERSION = "UNSUPPORTED_SIG_VERSION"
    }
}

internal val SignatureScheme.other: SignatureScheme
    get() = if (this == SignatureScheme.ONE) SignatureScheme.TWO else SignatureScheme.ONE

/** Releases a lock, and ignores a failure. The system ends the lock with the process, so a failed release must not fail an operation. */
internal fun Closeable.release() {
    try {
        close()
    } catch (_: Exception) {
    }
}

/** The error that the client throws instead of [error] if the clock is off by more than the client may correct. */
internal fun unlearnableClock(error: SynheartAuthException): SynheartAuthException = failure(
    Situation.CLOCK_TOO_FAR_OFF, "the device's clock is off, and by more than can be corrected", error,
    serverTime = error.failure.serverTime,
)
