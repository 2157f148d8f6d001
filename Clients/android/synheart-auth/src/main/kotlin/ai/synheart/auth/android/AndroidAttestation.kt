package ai.synheart.auth.android

import ai.synheart.auth.AttestationEvidence
import ai.synheart.auth.AttestationException
import ai.synheart.auth.AttestationException.Code
import ai.synheart.auth.AttestationProvider
import ai.synheart.auth.AttestationSubject
import ai.synheart.auth.DeviceKeyStoreException
import ai.synheart.auth.Situation
import ai.synheart.auth.Sleeper
import ai.synheart.auth.concurrency.withDeadline
import ai.synheart.auth.failure
import java.security.MessageDigest
import java.security.cert.X509Certificate
import kotlin.coroutines.EmptyCoroutineContext
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.withContext

/** The provider of Google's two proofs: a Play Integrity token, and the key's own attestation. */
internal class AndroidAttestation(
    private val proof: AndroidProof, private val tokens: () -> IntegrityTokens?, private val keystore: Keystore,
    private val sleeper: Sleeper, private val keys: AndroidKeyStore,
) : AttestationProvider {
    // Made on first use: the classes of Play Integrity may be missing from the app.
    private val integrity: IntegrityTokens? by lazy { if (proof.usesPlayIntegrity) tokens() else null }

    /** For each key's name: the challenge for which Play Integrity was last unavailable, and the number of its failures for it. */
    private val waiting = HashMap<String, Pair<ByteArray, Int>>()

    /** Prepares a token provider on another thread, so that the first registration does not wait for it. */
    fun warmUp() = threads.dispatch(EmptyCoroutineContext) {
        try {
            integrity?.warmUp()
        } catch (_: Exception) {
            // Ignored: the registration meets the same failure and reports it.
        } catch (_: LinkageError) {
        }
    }

    override suspend fun attest(subject: AttestationSubject): AttestationEvidence {
        val chain = if (proof.usesKeyAttestation) chain(subject) else null
        if (proof.needsKeyAttestation && chain == null) {
            throw AttestationException(Code.UNSUPPORTED, "the hardware of this device does not attest its keys")
        }
        val refusal = try {
            val token = if (proof.usesPlayIntegrity) token(subject, canDoWithout = chain != null && !proof.needsPlayIntegrity) else null
            if (token != null || chain != null) return AttestationEvidence(token, chain)
            AttestationException(Code.UNSUPPORTED, "this device has neither proof")
        } catch (error: AttestationException) {
            error
        }
        if (chain != null || refusal.code != Code.UNSUPPORTED || !keys.mayAttestLater(subject.alias)) throw refusal
        throw failure(Situation.KEY_UNATTESTED, "the hardware was too busy to attest the key", refusal)
    }

    private suspend fun token(subject: AttestationSubject, canDoWithout: Boolean): String? {
        val failure = try {
            val integrity = integrity ?: return null
            if (!canDoWithout) return integrity.token(subject.nonce)
            // The client fails the operation if `attest` takes 30 s. TOKEN_TIMEOUT is shorter, so that time remains to try again or
            // to send the key attestation without a token.
            return withDeadline(TOKEN_TIMEOUT, sleeper) { integrity.token(subject.nonce) }
                ?: throw AttestationException(Code.UNAVAILABLE, "Google does not answer")
        } catch (error: AttestationException) {
            error
        } catch (error: LinkageError) {
            missing(error)
        }
        return when {
            !canDoWithout -> throw failure
            failure.code == Code.UNSUPPORTED -> null
            failure.code == Code.UNAVAILABLE && isUnavailableTooOften(subject) -> null
            else -> throw failure
        }
    }

    /**
     * Counts a failure of Play Integrity for this challenge. Returns whether it has failed often enough to send the key
     * attestation without a token. A retry alone would not help where Google is blocked.
     */
    @Synchronized
    private fun isUnavailableTooOften(subject: AttestationSubject): Boolean {
        val earlier = waiting[subject.alias]?.takeIf { MessageDigest.isEqual(it.first, subject.challenge) }?.second ?: 0
        waiting[subject.alias] = subject.challenge.copyOf() to earlier + 1
        return earlier + 1 >= MAXIMUM_FAILURES
    }

    /** The key's attestation chain; null unless hardware made it for this challenge. The service accepts no other chain. */
    private suspend fun chain(subject: AttestationSubject): List<ByteArray>? {
        val chain: List<X509Certificate> = try {
            withContext(threads) { keystore.chain(subject.alias) }
        } catch (error: DeviceKeyStoreException) {
            throw AttestationException(Code.UNAVAILABLE, "the Keystore does not give the key's certificates", error)
        }
        if (chain.isEmpty()) throw AttestationException(Code.UNAVAILABLE, "the Keystore does not give the key's certificates")
        val description = KeyDescription.of(chain.first()) ?: return null
        if (description.securityLevel == SOFTWARE || !MessageDigest.isEqual(description.challenge, subject.challenge)) return null
        return chain.map { it.encoded }
    }

    private fun missing(error: LinkageError) =
        AttestationException(Code.UNSUPPORTED, "the app lacks com.google.android.play:integrity", error)

    private companion object {
        const val SOFTWARE = 0

        // Threads in addition to those of Dispatchers.IO, which the app's own code may use up.
        val threads = Dispatchers.IO.limitedParallelism(4)
        const val MAXIMUM_FAILURES = 2
        val TOKEN_TIMEOUT = 10.seconds
    }
}
