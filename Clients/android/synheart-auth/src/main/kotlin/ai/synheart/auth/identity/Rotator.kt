package ai.synheart.auth.identity

import ai.synheart.auth.AttestationEvidence
import ai.synheart.auth.AttestationSubject
import ai.synheart.auth.DeviceStatus
import ai.synheart.auth.IdentityState
import ai.synheart.auth.KeyRotation
import ai.synheart.auth.LogEntry
import ai.synheart.auth.OwnCode
import ai.synheart.auth.Remedy
import ai.synheart.auth.RotationReason
import ai.synheart.auth.Situation
import ai.synheart.auth.SynheartAuthException
import ai.synheart.auth.failure
import ai.synheart.auth.remedy
import ai.synheart.auth.wire.PublicKey
import ai.synheart.auth.wire.Route
import ai.synheart.auth.wire.base64Url
import ai.synheart.auth.wire.followsClaims
import ai.synheart.auth.wire.isInvalidSignature
import ai.synheart.auth.wire.rotateAnswer
import ai.synheart.auth.wire.rotateRequest
import ai.synheart.auth.wire.rotationNonce
import ai.synheart.auth.wire.rotationProofMessage
import ai.synheart.auth.wire.statusAnswer
import java.util.concurrent.atomic.AtomicInteger
import kotlin.time.Duration.Companion.seconds

/**
 * Replaces the key. The caller holds the operation lock. Meanwhile requests are signed with the old key.
 *
 * A copy of a rotation request may arrive late. So the pending key (the new one) stays the same while a copy may be accepted. After
 * that, the client replaces it if it is lost or must be attested for a new challenge, and deletes it if the service names another key.
 */
internal class Rotator(private val context: IdentityContext) {
    private val ledger = context.ledger

    /** The challenge for which the attestation provider could not answer. The next attempt uses it while it is valid. */
    private var waiting: UnexpiredChallenge? = null

    /** One attempt. Afterwards the identity is in `registered`, or in `keyInvalid` if the current key is lost. */
    suspend fun attempt(reason: RotationReason): KeyRotation {
        var record = prepare()
        val leftover = record.journal
        if (leftover is JournalEntry.Rotation && leftover.isRefused) {
            // Do not send a refused key again. Ask the service first which key is current.
            val rotation = settle(leftover, record)
            if (rotation != null && leftover.reason.covers(reason)) return rotation
            record = prepare()
        }
        val key = record.signingKey()
        context.log.event(LogEntry.Event.ROTATION_STARTED, deviceId = record.deviceId)
        record = ledger.apply(IdentityEvent.RotationStarted(KeyAlias.other(key.alias, context.appId), reason))
        return try {
            confirm(exchange(record))
        } catch (error: SynheartAuthException) {
            try {
                resolve(error)
            } catch (reported: SynheartAuthException) {
                context.log.event(LogEntry.Event.ROTATION_FAILED, LogEntry.Level.WARNING, record.deviceId, reported)
                throw reported
            }
        }
    }

    /** Deletes the key that a rotation replaced, or the new key of an abandoned rotation. Makes no request. */
    suspend fun disposeLeftover() {
        val entry = ledger.load().journal as? JournalEntry.Disposal ?: return
        context.deleteKey(entry.alias)
        ledger.apply(IdentityEvent.KeyDisposed)
    }

    private suspend fun prepare(): IdentityRecord {
        disposeLeftover()
        return ledger.load().also { it.signingKey() }
    }

    /** Sends the rotation, and again with evidence if the service demands evidence. Returns the time when the rotation took effect. */
    private suspend fun exchange(record: IdentityRecord): Long {
        val kept = waiting?.takeIf { context.configuration.clock.elapsedMillis < it.goodUntilMillis }
        waiting = null
        if (kept == null) {
            try {
                return send(makeKey(challenge = null, record), record, null)
            } catch (error: SynheartAuthException) {
                // Evidence in the body meets a demand for an assertion too.
                if (error.remedy != Remedy.ATTEST_ROTATION && error.remedy != Remedy.ASSERT) throw error
            }
        }
        val challenge = kept ?: context.challenge("rotate")
        val attestsKeys = context.configuration.keyStore.attestsKeys
        if (attestsKeys) forgetKey()
        val newKey = makeKey(challenge.bytes.takeIf { attestsKeys }, record)
        val evidence = try {
            attest(newKey.publicKey, challenge.bytes, record)
        } catch (error: SynheartAuthException) {
            if (error.remedy == Remedy.ASK_PROVIDER_AGAIN) waiting = challenge
            throw error
        }
        return send(newKey, record, Evidence(challenge.bytes, evidence))
    }

    private class Evidence(val challenge: ByteArray, val attestation: AttestationEvidence)

    private suspend fun attest(newKey: PublicKey, challenge: ByteArray, record: IdentityRecord): AttestationEvidence {
        val nonce = rotationNonce(challenge, record.deviceId.orEmpty(), newKey.base64)
        val subject = AttestationSubject(context.appId, pending().alias, newKey.spki, challenge, nonce.base64Url())
        return context.attest(subject)
    }

    private suspend fun pending(): JournalEntry.Rotation =
        ledger.load().journal as? JournalEntry.Rotation ?: throw failure(OwnCode.ROTATION_FAILED, "no rotation is under way")

    /**
     * Drops the pending key (the new key of the rotation), because it is lost or its hardware attestation cannot name a new
     * challenge. Throws if a copy of its rotation may still take effect.
     */
    private suspend fun forgetKey() {
        val pending = pending()
        if (pending.thumbprint == null) return
        if (pending.lastCopy != null) throw failure(OwnCode.ROTATION_FAILED, "an earlier copy of the rotation may still take effect")
        ledger.apply(IdentityEvent.RotationKeyForgotten)
    }

    /** The new key, and its signature that proves that this device has it. */
    private class NewKey(val publicKey: PublicKey, val proof: ByteArray)

    /**
     * The new key. If a copy of its rotation may have been sent before, this is the key that the journal names. Its loss is never
     * reported as `KEY_INVALIDATED`: that code is for the current key.
     */
    private suspend fun makeKey(challenge: ByteArray?, record: IdentityRecord): NewKey {
        val pending = pending()
        if (pending.thumbprint != null) {
            earlierKey(KeyReference(pending.alias, pending.thumbprint), record)?.let { return it }
            forgetKey()
        }
        val key = context.createKey(pending.alias, challenge)
        return try {
            prove(key, pending.alias, record)
        } catch (error: SynheartAuthException.KeyInvalidated) {
            throw failure(Situation.KEY_STORE_UNAVAILABLE, "the new key is lost", error)
        }
    }

    /** The pending key, the new key of the rotation that the journal names; null if it is lost. */
    private suspend fun earlierKey(reference: KeyReference, record: IdentityRecord): NewKey? {
        val key = context.publicKey(reference) ?: return null
        return try {
            prove(key, reference.alias, record)
        } catch (_: SynheartAuthException.KeyInvalidated) {
            null
        }
    }

    private suspend fun prove(key: PublicKey, alias: String, record: IdentityRecord): NewKey {
        val message = rotationProofMessage(record.device(), key.base64)
        return NewKey(key, context.sign(KeyReference(alias, key.thumbprint), message))
    }

    private suspend fun send(newKey: NewKey, record: IdentityRecord, evidence: Evidence?): Long {
        val pending = pending()
        val body = rotateRequest(
            context.appId, record.device(), newKey.publicKey.base64, pending.reason, newKey.proof, evidence?.challenge,
            evidence?.attestation?.proof, evidence?.attestation?.keyAttestation,
        )
        val copies = AtomicInteger()
        try {
            return context.signedCall(Route.ROTATE_KEY, record, record.signingKey(), body) { timestamp ->
                copies.incrementAndGet()
                ledger.apply(IdentityEvent.RotationSending(newKey.publicKey.thumbprint, timestamp))
            }.read(::rotateAnswer)
        } catch (error: SynheartAuthException) {
            if (error is SynheartAuthException.ClockSkew) error.failure.serverTime?.let { ledger.tryApply(IdentityEvent.RotationCopiesDated(it)) }
            // The service recorded the only copy against replay before it refused the copy, so the copy cannot take effect later.
            if (pending.lastCopy == null && copies.get() == 1 && error.followsClaims) ledger.apply(IdentityEvent.RotationCopiesRefused)
            throw error
        }
    }

    private suspend fun confirm(at: Long, keepsDemand: Boolean = false): KeyRotation {
        val record = ledger.apply(IdentityEvent.RotationConfirmed(at, keepsDemand))
        // The rotation has taken effect. The old key is deleted now or by the next call.
        try {
            disposeLeftover()
        } catch (_: SynheartAuthException) {
        }
        context.log.event(LogEntry.Event.ROTATION_FINISHED, deviceId = record.deviceId)
        return KeyRotation(record.deviceId.orEmpty(), at)
    }

    /**
     * Ends a failed attempt. Returns the rotation if it took effect after all. Otherwise throws, and the old key stays active unless
     * it is lost.
     */
    private suspend fun resolve(error: SynheartAuthException): KeyRotation {
        val record = ledger.load()
        val pending = record.journal as? JournalEntry.Rotation
        if (pending == null || record.identity != Identity.ACTIVE) throw error
        val isKeyGone = error is SynheartAuthException.KeyInvalidated
        if (isKeyGone || error is SynheartAuthException.RotationFailed || error.isInvalidSignature) {
            // The service may no longer accept the current key. Ask it which key is current.
            if (pending.lastCopy != null) {
                settle(pending, record)?.let { return it }
            } else if (isKeyGone && record.key != null) {
                // The new key has signed, so the lost key is the current one.
                throw losing(record.key)
            }
        }
        suspendRotation(isRefused = error is SynheartAuthException.RotationFailed)
        throw if (error.remedy == Remedy.ROTATE) {
            failure(Situation.KEY_TOO_OLD_TO_ROTATE, error.message.orEmpty(), error, serverTime = error.failure.serverTime)
        } else {
            error
        }
    }

    /** Marks the current key as lost. Returns the error to throw. */
    private suspend fun losing(key: KeyReference): SynheartAuthException {
        ledger.apply(IdentityEvent.KeyLost(key))
        return keyLost()
    }

    /**
     * Asks the service which key is current. If it is the new one, confirms the rotation. If it is the old one, throws while a copy
     * may arrive; after that it abandons the pending key and returns null. If it is neither, another party rotated: throws.
     */
    private suspend fun settle(pending: JournalEntry.Rotation, record: IdentityRecord): KeyRotation? {
        val status = try {
            statusByEitherKey(pending, record)
        } catch (error: SynheartAuthException) {
            suspendRotation(pending.isRefused)
            throw error
        }
        return when (status?.keyThumbprint) {
            null, !in setOf(pending.thumbprint, record.key?.thumbprint) -> {
                suspendRotation(isRefused = true)
                val error = failure(Situation.NO_KEY_ACCEPTED, "the service has another key than this device's")
                context.log.event(LogEntry.Event.FOREIGN_KEY, LogEntry.Level.ERROR, record.deviceId, error)
                throw error
            }
            pending.thumbprint -> {
                resume(pending)
                confirm(status.keyRotatedAt ?: status.serverTimestamp, status.mustRotate)
            }
            else -> {
                giveUpIfNoCopyCanArrive(pending, status.serverTimestamp)
                null
            }
        }
    }

    private suspend fun giveUpIfNoCopyCanArrive(pending: JournalEntry.Rotation, serverTime: Long) {
        // If no copy can arrive any more, do not wait.
        val remaining = pending.lastCopy?.let { minOf(it, serverTime) + LIFE_OF_A_COPY_SECONDS - serverTime } ?: -1
        if (remaining >= 0) {
            ledger.apply(IdentityEvent.RotationCopiesDated(serverTime))
            suspendRotation(isRefused = true)
            throw failure(OwnCode.ROTATION_FAILED, "the service kept the old key", retryAfter = minOf(remaining + 1, 3600).seconds)
        }
        resume(pending)
        ledger.apply(IdentityEvent.RotationAbandoned)
        disposeLeftover()
    }

    private suspend fun resume(pending: JournalEntry.Rotation) {
        if (ledger.load().state == IdentityState.REGISTERED) ledger.apply(IdentityEvent.RotationStarted(pending.alias, pending.reason))
    }

    /** The status, requested with the old key, or with the new one if the old one is refused or lost; null if both are refused. Throws
     * `KEY_INVALIDATED` if the old key is lost and the new one is lost or refused: the identity has no key then. Throws `ROTATION_FAILED`
     * if the old key is refused and the new one is lost: the refusal may be a mistake, so the old key stays. */
    private suspend fun statusByEitherKey(pending: JournalEntry.Rotation, record: IdentityRecord): DeviceStatus? {
        var lost: KeyReference? = null
        var isNewKeyLost = false
        for (key in listOfNotNull(record.key, pending.thumbprint?.let { KeyReference(pending.alias, it) })) {
            try {
                return context.signedCall(Route.STATUS, record, key).read(::statusAnswer)
            } catch (error: SynheartAuthException) {
                if (error is SynheartAuthException.KeyInvalidated) {
                    if (key == record.key) lost = key else isNewKeyLost = true
                } else if (!error.isInvalidSignature) {
                    throw error
                }
            }
        }
        if (lost != null) throw losing(lost)
        if (isNewKeyLost) throw failure(Situation.NO_KEY_ACCEPTED, "the service refuses the old key, and the new one is lost")
        return null
    }

    private suspend fun suspendRotation(isRefused: Boolean) {
        if (ledger.load().state == IdentityState.REGISTERING) ledger.apply(IdentityEvent.RotationSuspended(isRefused))
    }

    private companion object {
        /** How long the service may accept a copy: ten minutes after its timestamp, and five more for clock differences. */
        const val LIFE_OF_A_COPY_SECONDS = 15 * 60L
    }
}
