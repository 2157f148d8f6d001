package ai.synheart.auth.identity

import ai.synheart.auth.AttestationEvidence
import ai.synheart.auth.AttestationSubject
import ai.synheart.auth.OwnCode
import ai.synheart.auth.Registration
import ai.synheart.auth.Remedy
import ai.synheart.auth.RetryPolicy
import ai.synheart.auth.Situation
import ai.synheart.auth.SynheartAuthException
import ai.synheart.auth.failure
import ai.synheart.auth.remedy
import ai.synheart.auth.wire.PublicKey
import ai.synheart.auth.wire.RegisterAnswer
import ai.synheart.auth.wire.Route
import ai.synheart.auth.wire.base64Url
import ai.synheart.auth.wire.bindingNonce
import ai.synheart.auth.wire.registerRequest
import ai.synheart.auth.wire.registrationProofMessage

/**
 * One pass through the eight steps of a registration (RFC-AUTH-MOBILE-0001 section 7), with its own challenge. Throws
 * [RegistrationFailure] if a remedy other than the error's own is better, or if it is certain that the key must be forgotten.
 */
internal class RegistrationAttempt(private val context: IdentityContext) {
    private val configuration = context.configuration

    class SigningKey(
        val reference: KeyReference,
        val publicKey: PublicKey,
        /** Whether the service may have registered the key by a request whose answer was lost. */
        val mayBeKnown: Boolean,
        /**
         * Whether the key's hardware attestation names the challenge of an earlier attempt. The service accepts a challenge
         * only once, so this attestation is no evidence for a new challenge.
         */
        val isAttestationSpent: Boolean,
        /** Whether the service has rejected the device with this key. */
        val isRejected: Boolean = false,
    )

    /** A key, the challenge that it is attested for, and how often the attestation provider was unavailable for them. */
    class Candidate(val challenge: UnexpiredChallenge, val key: SigningKey, val refusals: Int = 0)

    suspend fun run(): Registration {
        val challenge = context.challenge("register") // Steps 1 and 2.
        context.ledger.apply(IdentityEvent.ChallengeReceived(configuration.baseUrl))
        return run(Candidate(challenge, makeKey(challenge))) // Step 3.
    }

    /** Runs an attempt from step 4 on. */
    suspend fun run(candidate: Candidate): Registration {
        val nonce = bindingNonce(candidate.challenge.bytes, candidate.key.publicKey.base64) // Step 4.
        val evidence = attest(candidate, nonce) // Step 5.
        return persist(send(evidence, candidate.key, candidate.challenge, nonce)) // Steps 6 to 8.
    }

    private suspend fun makeKey(challenge: UnexpiredChallenge): SigningKey {
        keyOfEarlierAttempt()?.let {
            context.ledger.apply(IdentityEvent.KeyReady(it.reference, isReused = true))
            return it
        }
        val alias = KeyAlias.primary(context.appId)
        val publicKey = context.createKey(alias, challenge.bytes)
        val reference = KeyReference(alias, publicKey.thumbprint)
        context.ledger.apply(IdentityEvent.KeyReady(reference, isReused = false))
        return SigningKey(reference, publicKey, mayBeKnown = false, isAttestationSpent = false)
    }

    /** The key of an earlier attempt, if it can be used again; else null. A service that knows the key returns the same device id. */
    private suspend fun keyOfEarlierAttempt(): SigningKey? {
        val entry = context.ledger.load().journal as? JournalEntry.Registration ?: return null
        if (!entry.isSent && configuration.keyStore.attestsKeys) return null
        val publicKey = context.publicKey(entry.key) ?: return null
        val isSpent = configuration.keyStore.attestsKeys
        return SigningKey(entry.key, publicKey, mayBeKnown = entry.isSent, isAttestationSpent = isSpent, entry.isRejected)
    }

    private suspend fun attest(candidate: Candidate, nonce: ByteArray): AttestationEvidence {
        val key = candidate.key
        val subject = AttestationSubject(
            context.appId, key.reference.alias, key.publicKey.spki, candidate.challenge.bytes, nonce.base64Url(),
        )
        try {
            return context.attest(subject)
        } catch (error: SynheartAuthException) {
            throw when {
                error.remedy == Remedy.ASK_PROVIDER_AGAIN -> pause(candidate, error)
                // The provider needs the key's own attestation, but the key has none for this challenge.
                key.isAttestationSpent && error.callsForAttestedKey -> spent(error, key)
                else -> error
            }
        }
    }

    private val SynheartAuthException.callsForAttestedKey: Boolean
        get() = this is SynheartAuthException.AttestationUnavailable ||
            failure.situation == Situation.KEY_UNATTESTED || failure.situation == Situation.PROVIDER_SILENT

    /**
     * The failure of an unavailable provider. It asks for a pause, after which the same nonce may be tried again. If the challenge
     * would not outlive the pause, the next attempt has a new challenge. After the last pause the failure is final.
     */
    private fun pause(candidate: Candidate, error: SynheartAuthException): RegistrationFailure {
        val delay = RetryPolicy.PROVIDER.delay(candidate.refusals, 0.0)
            // The provider remains unavailable. If the key's attestation is spent, because it names a used challenge, only a new key
            // can have an attestation for a new challenge.
            ?: return if (candidate.key.isAttestationSpent) spent(error, candidate.key) else RegistrationFailure(error)
        if (configuration.clock.elapsedMillis + delay.inWholeMilliseconds >= candidate.challenge.goodUntilMillis) {
            return RegistrationFailure(error, Remedy.NEW_CHALLENGE)
        }
        val next = Candidate(candidate.challenge, candidate.key, candidate.refusals + 1)
        return RegistrationFailure(error, pause = RegistrationFailure.Pause(delay, next))
    }

    private suspend fun send(
        evidence: AttestationEvidence, key: SigningKey, challenge: UnexpiredChallenge, nonce: ByteArray,
    ): ServiceClient.Answer {
        // The service refuses a chain that names another challenge. The rest of the evidence may be enough.
        val chain = evidence.keyAttestation.takeUnless { key.isAttestationSpent }
        if (evidence.proof == null && chain == null) {
            throw refusal(failure(OwnCode.ATTESTATION_FAILED, "there is no evidence for this challenge"), key)
        }
        val keyProof = try {
            context.sign(key.reference, registrationProofMessage(nonce))
        } catch (error: SynheartAuthException.KeyInvalidated) {
            // The next attempt makes another key.
            val lost = failure(Situation.KEY_STORE_UNAVAILABLE, "the new key is lost", error)
            throw RegistrationFailure(lost, Remedy.NEW_CHALLENGE, forgetsKey = true)
        }
        if (configuration.clock.elapsedMillis >= challenge.goodUntilMillis) {
            throw failure(OwnCode.CHALLENGE_EXPIRED, "the challenge expired on the way")
        }
        val request = registerRequest(
            context.appId, key.publicKey.base64, challenge.bytes, evidence.proof, keyProof, chain, configuration.deviceLocalId,
        )
        context.ledger.apply(IdentityEvent.RegistrationSending)
        try {
            return context.call(Route.REGISTER, body = request)
        } catch (error: SynheartAuthException) {
            throw refusal(error, key)
        }
    }

    private fun refusal(error: SynheartAuthException, key: SigningKey): RegistrationFailure = when {
        error !is SynheartAuthException.AttestationFailed -> RegistrationFailure(error)
        key.isAttestationSpent -> spent(error, key)
        key.mayBeKnown -> knownKeyRefused(error)
        else -> RegistrationFailure(error, forgetsKey = true)
    }

    /** An earlier request may have registered the key. Only the app may abandon it, by a reset. */
    private fun knownKeyRefused(error: SynheartAuthException) = RegistrationFailure(
        failure(Situation.KNOWN_KEY_REFUSED, error.message.orEmpty(), error, serverTime = error.failure.serverTime),
    )

    /**
     * The failure if the service needs the key's own attestation, but that attestation names a used challenge. The next
     * attempt makes a new key, because only a new key's attestation can name a new challenge. A rejected device keeps its key.
     */
    private fun spent(error: SynheartAuthException, key: SigningKey) =
        if (key.isRejected) knownKeyRefused(error) else RegistrationFailure(error, Situation.KEY_ATTESTATION_SPENT.remedy, forgetsKey = true)

    private suspend fun persist(received: ServiceClient.Answer): Registration {
        val answer = received.read(RegisterAnswer::parse)
        // Prefer the service's time: the device's clock may be off by more than the client may correct.
        val now = received.serverTime ?: context.serverTime(context.ledger.load())
        return when (answer.status) {
            RegisterAnswer.Status.REGISTERED -> {
                context.ledger.apply(IdentityEvent.Registered(answer.deviceId, now))
                Registration(Registration.Status.REGISTERED, answer.deviceId)
            }
            RegisterAnswer.Status.PENDING -> {
                context.ledger.apply(IdentityEvent.Pending(answer.deviceId, now))
                Registration(Registration.Status.PENDING, answer.deviceId)
            }
            RegisterAnswer.Status.REJECTED -> throw RegistrationFailure(
                failure(OwnCode.ATTESTATION_FAILED, "the service rejected this device"), isRejected = true,
            )
        }
    }
}
