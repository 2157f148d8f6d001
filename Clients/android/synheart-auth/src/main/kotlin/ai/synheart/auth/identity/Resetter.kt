package ai.synheart.auth.identity

import ai.synheart.auth.LogEntry
import ai.synheart.auth.ResetReason
import ai.synheart.auth.Situation
import ai.synheart.auth.SynheartAuthException
import ai.synheart.auth.concurrency.withDeadline
import ai.synheart.auth.wire.Route
import ai.synheart.auth.wire.isInvalidSignature
import kotlin.time.Duration.Companion.seconds

/** Gives an identity up: tells the service if it can, deletes the keys, removes the record. The caller holds the operation lock. */
internal class Resetter(private val context: IdentityContext) {
    private val ledger = context.ledger

    suspend fun reset(reason: ResetReason) {
        val record = try {
            ledger.loadOfAnyOrigin()
        } catch (error: SynheartAuthException) {
            // A record that cannot be decoded names no device, so everything is deleted. A record that cannot be read at the
            // moment may name a device.
            if (error.failure.situation !in UNDECODABLE) throw error
            return deleteEverything()
        }
        if (record == IdentityRecord(context.appId)) return
        val started = try {
            ledger.apply(IdentityEvent.ResetStarted(reason))
        } catch (error: SynheartAuthException) {
            if (error.failure.situation != Situation.RECORD_NOT_WRITTEN) throw error
            null
        }
        if (started != null) finish(started) else resetWithoutJournal(record)
        context.log.event(LogEntry.Event.IDENTITY_RESET, deviceId = record.deviceId)
    }

    /**
     * On a full disk no journal can be written, but everything can be removed. The record is removed first: a kill after that leaves
     * an unregistered device.
     */
    private suspend fun resetWithoutJournal(record: IdentityRecord) {
        ledger.clear(record)
        tellService(record)
        deleteKeys()
    }

    /** Runs a reset, or the rest of an interrupted one. */
    suspend fun finish(record: IdentityRecord) {
        tellService(record)
        deleteEverything()
    }

    private suspend fun deleteEverything() {
        deleteKeys()
        ledger.clear()
    }

    private suspend fun deleteKeys() {
        for (alias in KeyAlias.both(context.appId)) context.deleteKey(alias)
    }

    /**
     * Tells the service, best effort. 204, `NOT_REGISTERED` and `DEVICE_REVOKED` mean done. If the device is offline, its
     * row on the service stays active until an operator revokes it or its key becomes too old.
     */
    private suspend fun tellService(record: IdentityRecord) {
        val key = record.key
        if (record.deviceId == null || key == null || !ledger.isOurs(record)) return
        withDeadline(LIMIT, context.configuration.sleeper) {
            // After an unanswered rotation the service may accept only the new key, which has the other alias.
            if (!deregister(record, key)) context.keyUnder(KeyAlias.other(key.alias, context.appId))?.let { deregister(record, it) }
        }
    }

    /** Deregisters the device with this key, best effort. Returns false if the service may accept another key instead. */
    private suspend fun deregister(record: IdentityRecord, key: KeyReference): Boolean = try {
        context.signedCall(Route.DEVICE, record, key, deadline = LIMIT)
        true
    } catch (error: SynheartAuthException) {
        error !is SynheartAuthException.KeyInvalidated && !error.isSuspicion && !error.isInvalidSignature
    }

    private companion object {
        /** The longest wait for the service. */
        val LIMIT = 3.seconds
        val UNDECODABLE = setOf(Situation.RECORD_DAMAGED, Situation.RECORD_OF_NEWER_VERSION)
    }
}
