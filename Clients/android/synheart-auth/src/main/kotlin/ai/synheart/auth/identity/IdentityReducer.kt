package ai.synheart.auth.identity

import ai.synheart.auth.IdentityState
import ai.synheart.auth.ResetReason
import ai.synheart.auth.RotationReason
import ai.synheart.auth.SignatureScheme
import ai.synheart.auth.invalidTransition
import ai.synheart.auth.wire.RotationDemand

/** The events of a record. */
internal sealed interface IdentityEvent {
    // Registration, in the order of its steps.
    data class ChallengeReceived(val authOrigin: String) : IdentityEvent
    data class KeyReady(val key: KeyReference, val isReused: Boolean) : IdentityEvent
    data object RegistrationSending : IdentityEvent
    data class Registered(val deviceId: String, val at: Long) : IdentityEvent
    data class Pending(val deviceId: String, val at: Long) : IdentityEvent

    /**
     * The registration failed. With [forgetsKey] the next registration makes a new key. Otherwise it uses the key of this
     * registration again, which the service may already have. [isRejected]: the service has rejected the device with this key.
     */
    data class RegistrationFailed(val forgetsKey: Boolean, val isRejected: Boolean = false) : IdentityEvent

    // Rotation.

    /** Starts a rotation. One that is already under way keeps its key, and gets the stronger of its own reason and this one. */
    data class RotationStarted(val alias: String, val reason: RotationReason) : IdentityEvent
    data class RotationSending(val thumbprint: String, val timestamp: Long) : IdentityEvent

    /**
     * The service's clock shows this time, so every copy of the rotation request was sent before it. A copy with a later
     * timestamp was dated by a device clock that was ahead.
     */
    data class RotationCopiesDated(val serverTime: Long) : IdentityEvent

    /** The service recorded every copy of the request against replay before it refused the copy, so no copy can take effect later. */
    data object RotationCopiesRefused : IdentityEvent

    /**
     * The pending key (the new key of the rotation) is lost, or its attestation cannot name a new challenge. No copy of its
     * rotation can take effect.
     */
    data object RotationKeyForgotten : IdentityEvent
    /** The rotation took effect. [keepsDemand]: the service demands that the new key is rotated too. */
    class RotationConfirmed(val at: Long, val keepsDemand: Boolean = false) : IdentityEvent

    /** The rotation did not succeed. Its new key is kept as the pending key: a copy of the request may still reach the service. */
    class RotationSuspended(val isRefused: Boolean) : IdentityEvent

    /** The service certainly does not have the pending key, the new key of the rotation. */
    data object RotationAbandoned : IdentityEvent

    /**
     * An answer demanded a rotation. Ignored unless the record still names the key that signed the request, because a
     * late answer can be about a replaced key. If the demand still applies, the service repeats it in its next answer.
     */
    class RotationDemanded(val demand: RotationDemand, val key: KeyReference) : IdentityEvent
    data object KeyDisposed : IdentityEvent

    /** The key store answered for the first time as if the key were lost. Ignored unless the record still names the key. */
    data class KeySuspected(val key: KeyReference, val suspicion: Suspicion) : IdentityEvent

    /** The key has signed. So it is not lost, and a suspicion that it is lost is removed. */
    data class KeyProved(val alias: String) : IdentityEvent

    /** Ignored unless the lost key is still the current one. */
    data class KeyLost(val key: KeyReference) : IdentityEvent
    data object Wiped : IdentityEvent

    data class ResetStarted(val reason: ResetReason) : IdentityEvent
    data class ClockLearned(val offset: ClockOffset) : IdentityEvent

    /** A request under this scheme was accepted, or the app is about to send one. */
    data class SchemeUsed(val scheme: SignatureScheme) : IdentityEvent

    /** The auth service moved to another host. */
    data class AuthOriginMoved(val origin: String) : IdentityEvent
}

/** The record after an event. Pure: the same record and event give the same result. Throws `INVALID_STATE_TRANSITION`. */
internal fun IdentityRecord.after(event: IdentityEvent): IdentityRecord = when (event) {
    is IdentityEvent.ChallengeReceived -> moved(Cause.CHALLENGE).copy(authOrigin = event.authOrigin)
    is IdentityEvent.KeyReady -> moved(Cause.KEY).run {
        if (event.isReused && journal != null) this else unsuspected(event.key.alias).copy(journal = JournalEntry.Registration(event.key, isSent = false))
    }
    IdentityEvent.RegistrationSending -> {
        val entry = journal as? JournalEntry.Registration ?: throw refusal(IdentityState.REGISTERING)
        moved(Cause.ATTEMPT).copy(journal = entry.copy(isSent = true))
    }
    is IdentityEvent.Registered -> settled(Identity.ACTIVE, event.deviceId, event.at)
    is IdentityEvent.Pending -> settled(Identity.PENDING, event.deviceId, event.at)
    is IdentityEvent.RegistrationFailed -> failed(event)

    is IdentityEvent.RotationStarted -> rotating(event)
    is IdentityEvent.RotationSending -> withRotation {
        copy(thumbprint = event.thumbprint, lastCopy = maxOf(lastCopy ?: event.timestamp, event.timestamp), isRefused = false)
    }
    is IdentityEvent.RotationCopiesDated -> {
        val rotation = journal as? JournalEntry.Rotation
        if (rotation?.lastCopy == null) this else copy(journal = rotation.copy(lastCopy = minOf(rotation.lastCopy, event.serverTime)))
    }
    IdentityEvent.RotationCopiesRefused -> withRotation { copy(lastCopy = null) }
    IdentityEvent.RotationKeyForgotten -> withRotation {
        if (lastCopy != null) throw refusal(IdentityState.REGISTERING)
        copy(thumbprint = null)
    }.unsuspected((journal as? JournalEntry.Rotation)?.alias.orEmpty())
    is IdentityEvent.RotationConfirmed -> promoted(event)
    is IdentityEvent.RotationSuspended -> withRotation { copy(isRefused = event.isRefused) }.moved(Cause.ROTATION_END)
    IdentityEvent.RotationAbandoned -> {
        val rotation = journal as? JournalEntry.Rotation ?: throw refusal(IdentityState.REGISTERED)
        unsuspected(rotation.alias).moved(Cause.ROTATION_END).copy(journal = JournalEntry.Disposal(rotation.alias))
    }
    is IdentityEvent.RotationDemanded -> if (names(event.key)) copy(rotationDemand = event.demand) else this
    IdentityEvent.KeyDisposed -> if (journal is JournalEntry.Disposal) copy(journal = null) else this

    is IdentityEvent.KeySuspected ->
        if (!names(event.key) || event.key.alias in suspicions) this else copy(suspicions = suspicions + (event.key.alias to event.suspicion))
    is IdentityEvent.KeyProved -> unsuspected(event.alias)
    is IdentityEvent.KeyLost ->
        if (identity != Identity.ACTIVE || key != event.key) {
            this
        } else {
            // If the key is lost during a rotation, the identity passes through `registered`, as the state table demands.
            val registered = if (state == IdentityState.REGISTERING) moved(Cause.ROTATION_END) else this
            registered.moved(Cause.KEY_LOSS).copy(identity = Identity.NONE, suspicions = emptyMap())
        }
    IdentityEvent.Wiped -> moved(Cause.WIPE).blank()

    is IdentityEvent.ResetStarted -> moved(Cause.RESET).copy(identity = Identity.NONE, journal = JournalEntry.Reset(event.reason))
    is IdentityEvent.ClockLearned -> copy(clockOffset = event.offset)
    is IdentityEvent.SchemeUsed ->
        if (identity == Identity.ACTIVE && event.scheme > schemeFloor) copy(schemeFloor = event.scheme) else this
    is IdentityEvent.AuthOriginMoved -> copy(authOrigin = event.origin)
}

/** Whether the record or its journal names this key. A rotation without a thumbprint was not sent yet, and names only the alias. */
internal fun IdentityRecord.names(key: KeyReference): Boolean = key == this.key || when (val entry = journal) {
    is JournalEntry.Registration -> entry.key == key
    is JournalEntry.Rotation -> entry.alias == key.alias && (entry.thumbprint ?: key.thumbprint) == key.thumbprint
    else -> false
}

/** A record without an identity. It keeps the clock offset, which belongs to the device. */
private fun IdentityRecord.blank() = IdentityRecord(appId, clockOffset = clockOffset)

private fun IdentityRecord.refusal(to: IdentityState) = invalidTransition(state, to)

private fun IdentityRecord.moved(cause: Cause) = copy(state = StateTable.next(state, cause))

private fun IdentityRecord.settled(identity: Identity, deviceId: String, at: Long): IdentityRecord {
    val target = if (identity == Identity.ACTIVE) IdentityState.REGISTERED else IdentityState.REGISTERING
    if (state != IdentityState.REGISTERING || this.identity == Identity.ACTIVE) throw refusal(target)
    val key = (journal as? JournalEntry.Registration)?.key ?: key ?: throw refusal(target)
    return (if (identity == Identity.ACTIVE) moved(Cause.SUCCESS) else this)
        .copy(identity = identity, deviceId = deviceId, key = key, registeredAt = registeredAt ?: at, journal = null)
}

private fun IdentityRecord.failed(event: IdentityEvent.RegistrationFailed): IdentityRecord {
    if (identity == Identity.ACTIVE) throw refusal(IdentityState.UNREGISTERED)
    // The service may have the key of this registration, so the next registration uses it again.
    val kept = (journal as? JournalEntry.Registration ?: key?.let { JournalEntry.Registration(it, isSent = true) })
        ?.let { it.copy(isRejected = it.isRejected || event.isRejected) }
    val failed = moved(Cause.FAILURE).blank()
    return if (event.forgetsKey) failed else failed.copy(journal = kept, suspicions = suspicions.filterKeys { it == kept?.key?.alias })
}

private fun IdentityRecord.rotating(event: IdentityEvent.RotationStarted): IdentityRecord {
    if (event.alias == key?.alias || identity != Identity.ACTIVE) throw refusal(IdentityState.REGISTERING)
    val entry = journal as? JournalEntry.Rotation ?: JournalEntry.Rotation(event.alias, event.reason)
    // The stronger reason wins, whether the app, an earlier attempt or the service names it.
    val isCompromised = RotationReason.COMPROMISE in listOf(event.reason, rotationDemand?.reason)
    return (if (state == IdentityState.REGISTERING) this else moved(Cause.ROTATION))
        .copy(journal = if (isCompromised) entry.copy(reason = RotationReason.COMPROMISE) else entry)
}

private fun IdentityRecord.withRotation(edit: JournalEntry.Rotation.() -> JournalEntry.Rotation): IdentityRecord {
    val rotation = journal as? JournalEntry.Rotation
    if (state != IdentityState.REGISTERING || identity != Identity.ACTIVE || rotation == null) throw refusal(IdentityState.REGISTERING)
    return copy(journal = rotation.edit())
}

/** The record without the suspicion that the key under this alias is lost: the key works, or a new key has its name. */
private fun IdentityRecord.unsuspected(alias: String) = if (alias in suspicions) copy(suspicions = suspicions - alias) else this

private fun IdentityRecord.promoted(event: IdentityEvent.RotationConfirmed): IdentityRecord {
    val rotation = journal as? JournalEntry.Rotation
    val thumbprint = rotation?.thumbprint
    if (identity != Identity.ACTIVE || thumbprint == null || key == null) throw refusal(IdentityState.REGISTERED)
    return moved(Cause.ROTATION_END).copy(
        suspicions = emptyMap(), key = KeyReference(rotation.alias, thumbprint), keyRotatedAt = event.at,
        rotationDemand = rotationDemand.takeIf { event.keepsDemand },
        journal = JournalEntry.Disposal(key.alias),
    )
}
