package ai.synheart.auth.identity

import ai.synheart.auth.Configuration
import ai.synheart.auth.IdentityLog
import ai.synheart.auth.IdentityState
import ai.synheart.auth.LogEntry
import ai.synheart.auth.OwnCode
import ai.synheart.auth.RecordVersion
import ai.synheart.auth.RetryPolicy
import ai.synheart.auth.Situation
import ai.synheart.auth.SleepPurpose
import ai.synheart.auth.StorageException
import ai.synheart.auth.SynheartAuthException
import ai.synheart.auth.concurrency.CallKind
import ai.synheart.auth.concurrency.NoAnswerException
import ai.synheart.auth.failure
import ai.synheart.auth.wire.FormException
import ai.synheart.auth.wire.JsonObject
import ai.synheart.auth.wire.hex
import ai.synheart.auth.wire.sha256
import ai.synheart.auth.wire.writeJson
import java.io.Closeable
import kotlin.time.Duration.Companion.milliseconds
import kotlinx.coroutines.CancellationException

/** Reads and changes the record of one identity. It is the only code that can persist a change, by applying an event. */
internal class IdentityLedger(
    private val appId: String,
    private val configuration: Configuration,
    private val log: IdentityLog,
    private val changes: StateChanges,
) {
    private val name = sha256(appId.toByteArray()).hex()

    /** The name of the note about a damaged record. No app id has a NUL, so no record has this name. */
    private val nameOfDamage = sha256("$appId\u0000damaged".toByteArray()).hex()
    private val storage = configuration.storage
    private val calls = configuration.storageCalls
    val seenSuspicions = SeenSuspicions(configuration.launch)

    private class Known(val version: RecordVersion, val record: IdentityRecord)

    @Volatile
    private var known: Known? = null

    /** Whether the record, as last read or written here, has suspicions that a key is lost. */
    @Volatile
    private var hasSuspicions = false

    /** Whether this process found the record damaged. */
    @Volatile
    private var hasDamage = false

    /** Reads the record; a blank one if there is none. Throws for the record of another auth service. */
    suspend fun load(): IdentityRecord {
        val record = loadOfAnyOrigin()
        if (record.authOrigin == null || record.authOrigin == configuration.baseUrl) return record
        checkOrigin(record)
        val move = IdentityEvent.AuthOriginMoved(configuration.baseUrl)
        return try {
            // The new origin is written at once: a later version of the app may no longer list the old origin in `aliases`.
            apply(move)
        } catch (error: SynheartAuthException) {
            if (error.failure.situation != Situation.RECORD_NOT_WRITTEN) throw error
            // A full disk must not stop signing. The next reading tries again.
            record.after(move)
        }
    }

    /** Whether the record belongs to the auth service, under its present name or an earlier one. */
    fun isOurs(record: IdentityRecord): Boolean =
        record.authOrigin.let { it == null || it == configuration.baseUrl || it in configuration.aliases }

    private fun checkOrigin(record: IdentityRecord) {
        if (isOurs(record)) return
        throw failure(
            Situation.RECORD_OF_ANOTHER_SERVICE,
            "the identity belongs to ${record.authOrigin}, not to ${configuration.baseUrl}: reset it, or if the service has moved, " +
                "name its earlier origin in Configuration.aliases",
        )
    }

    /** The result of reading the record: null bytes if there is none. */
    private class Reading(val version: RecordVersion?, val bytes: ByteArray?)

    /** Reads the record, even one of another auth service, so that it can be reset. */
    suspend fun loadOfAnyOrigin(): IdentityRecord {
        var attempt = 0
        while (true) {
            try {
                val before = known
                val reading = call(CallKind.READ_RECORD) {
                    // Read the version before the record, so that a change in between invalidates the cached record.
                    val version = version()
                    if (before != null && version == before.version) null else Reading(version, storage.read(name))
                } ?: return before!!.record.also { if (known === before) changes.noteState(appId, it.state) }
                val record = reading.bytes?.let { decode(it) } ?: IdentityRecord(appId)
                known = reading.version?.let { Known(it, record) }
                hasSuspicions = record.suspicions.isNotEmpty()
                seenSuspicions.note(record.suspicions.values)
                changes.noteState(appId, record.state)
                return record
            } catch (error: StorageException) {
                when (error.code) {
                    StorageException.Code.DAMAGED -> return damaged(null, error)
                    StorageException.Code.MISCONFIGURED -> throw failure(OwnCode.NOT_CONFIGURED, error.message.orEmpty(), error)
                    StorageException.Code.UNAVAILABLE -> {
                        val delay = RetryPolicy.STORAGE.delay(attempt, 0.0)
                        if (error.cause is NoAnswerException || delay == null) {
                            throw failure(Situation.RECORD_UNAVAILABLE, "the record cannot be read now: ${error.message}", error)
                        }
                        configuration.sleeper.sleep(delay, SleepPurpose.RETRY)
                        attempt++
                    }
                }
            }
        }
    }

    private fun version(): RecordVersion? = try {
        storage.version(name)
    } catch (_: Exception) {
        null
    }

    /** Clears the suspicion that this key is lost, because the key has just signed. Does no I/O if the record has no suspicions. */
    suspend fun noteProof(alias: String) {
        if (hasSuspicions) tryApply(IdentityEvent.KeyProved(alias))
    }

    /** Proves that the storage works. Throws [StorageException]. */
    suspend fun checkStorage() = call(CallKind.CHECK_STORAGE) { storage.check() }

    /** Applies an event to the current record and persists the result. */
    suspend fun apply(event: IdentityEvent): IdentityRecord = withLock(Scope.RECORD) {
        val before = loadOfAnyOrigin()
        if (event !is IdentityEvent.ResetStarted) checkOrigin(before)
        val after = try {
            before.after(event)
        } catch (error: SynheartAuthException) {
            log.event(LogEntry.Event.OPERATION_FAILED, LogEntry.Level.ERROR, error = error)
            throw error
        }
        if (after != before) {
            known = null
            try {
                known = call(CallKind.WRITE_RECORD) {
                    storage.write(name, after.toBytes())
                    // No other process writes before the lock is released.
                    version()
                }?.let { Known(it, after) }
            } catch (error: StorageException) {
                throw storageError("the record was not written", error)
            }
            hasSuspicions = after.suspicions.isNotEmpty()
            forgetDamage()
            announce(before, after)
        }
        after
    }

    private fun announce(before: IdentityRecord, after: IdentityRecord) {
        if (after.state == before.state) return
        log.transition(before.state, after.state, after.deviceId)
        changes.send(appId, before.state, after.state)
    }

    /** Applies an event, best effort. */
    suspend fun tryApply(event: IdentityEvent) {
        try {
            apply(event)
        } catch (_: SynheartAuthException) {
        }
    }

    /**
     * Removes the record. This is a reset's last step, or its first if no journal can be written. The copy of a damaged record stays.
     *
     * @param unannounced the record before the reset, if the listeners have not been told of the change to `unregistered`; else null
     */
    suspend fun clear(unannounced: IdentityRecord? = null): Unit = withLock(Scope.RECORD) {
        known = null
        try {
            call(CallKind.REMOVE_RECORD) {
                storage.remove(name)
                storage.remove(nameOfDamage)
            }
        } catch (error: StorageException) {
            throw storageError("the record was not removed", error)
        }
        if (unannounced == null) changes.noteState(appId, IdentityState.UNREGISTERED) else announce(unannounced, IdentityRecord(appId))
    }

    /** A lock's scope: [OPERATION] while an operation runs, [RECORD] while a change is made. */
    enum class Scope(val wire: String) { OPERATION("operation"), RECORD("record") }

    private suspend fun <Value> withLock(scope: Scope, body: suspend () -> Value): Value {
        val lock = lock(scope)
        try {
            return body()
        } finally {
            calls.afterChanges(lock::release)
        }
    }

    /** Waits for the lock, at most two minutes. */
    suspend fun lock(scope: Scope): Closeable {
        repeat(LOCK_ATTEMPTS) {
            try {
                // An abandoned change keeps the lock until it ends.
                if (calls.hasChangeLeftBehind) throw noAnswer(NoAnswerException())
                call(CallKind.LOCK_RECORD, unclaimed = { it?.release() }) { storage.tryLock(name, scope.wire) }?.let { return it }
            } catch (error: StorageException) {
                throw failure(Situation.RECORD_LOCKED, "the record cannot be locked: ${error.message}", error)
            }
            configuration.sleeper.sleep(LOCK_PAUSE, SleepPurpose.TURN)
        }
        throw failure(Situation.RECORD_LOCKED, "another process holds the record")
    }

    /** Calls the storage once, on a background thread. Each failure is thrown as a [StorageException], and a cancellation as it is. */
    private suspend fun <Value> call(kind: CallKind, unclaimed: (Value) -> Unit = {}, body: () -> Value): Value = try {
        calls.run(kind, unclaimed, body)
    } catch (error: Exception) {
        throw when (error) {
            is CancellationException, is StorageException -> error
            is NoAnswerException -> noAnswer(error)
            else -> StorageException(StorageException.Code.UNAVAILABLE, "the storage failed", error)
        }
    }

    private fun noAnswer(error: NoAnswerException) =
        StorageException(StorageException.Code.UNAVAILABLE, "the storage does not answer", error)

    private suspend fun decode(bytes: ByteArray): IdentityRecord = try {
        IdentityRecord.parse(bytes, appId)
    } catch (error: FormException) {
        damaged(bytes, error)
    } catch (error: NewerVersionException) {
        throw failure(Situation.RECORD_OF_NEWER_VERSION, "the record is of a newer version of the SDK: update the app", error)
    }

    /**
     * Judges a damaged record. The first reading sets a copy aside, and throws an error with recovery `RETRY`. A reading at least
     * 2 s later returns a record in `keyInvalid`, which the next registration replaces.
     *
     * @param bytes the record; null if the storage cannot open it
     */
    private suspend fun damaged(bytes: ByteArray?, cause: Exception): IdentityRecord {
        hasDamage = true
        val subject = bytes?.let { sha256(it).hex() } ?: "unreadable"
        val remaining = damage(subject)?.let(seenSuspicions::remainingMillis)
        val verdict = VerdictTable.verdict(PlatformAnswer.SUSPICIOUS, remaining, Canaries.WORK)
        if (verdict !is Verdict.Suspected) {
            return IdentityRecord(appId, state = IdentityState.KEY_INVALID).also { changes.noteState(appId, it.state) }
        }
        val error = failure(
            Situation.RECORD_DAMAGED, "the record cannot be decoded", cause, retryAfter = verdict.retryAfterMillis.milliseconds,
        )
        log.event(LogEntry.Event.OPERATION_FAILED, LogEntry.Level.ERROR, error = error)
        if (verdict.isFirst) {
            try {
                if (bytes != null) call(CallKind.SET_RECORD_ASIDE) { storage.setAside(name, bytes) }
                val note = writeJson(subject to configuration.launch.suspicion(subject).toJson())
                call(CallKind.WRITE_RECORD) { storage.write(nameOfDamage, note) }
            } catch (_: StorageException) {
                // Without the note about the damage, the next reading is treated as the first one.
            }
        }
        throw error
    }

    /** The recorded suspicion that the record is damaged; null if there is none. A damaged record cannot hold it. */
    private suspend fun damage(subject: String): Suspicion? = try {
        val note = call(CallKind.READ_RECORD) { storage.read(nameOfDamage) }
        note?.let { JsonObject.parse(it).optionalObject(subject) }?.let { suspicion(subject, it) }?.also { seenSuspicions.note(listOf(it)) }
    } catch (_: StorageException) {
        null
    } catch (_: FormException) {
        null
    }

    private suspend fun forgetDamage() {
        if (!hasDamage) return
        try {
            call(CallKind.REMOVE_RECORD) { storage.remove(nameOfDamage) }
            hasDamage = false
        } catch (_: StorageException) {
        }
    }

    private fun storageError(what: String, error: StorageException) =
        if (error.code == StorageException.Code.MISCONFIGURED) failure(OwnCode.NOT_CONFIGURED, error.message.orEmpty(), error)
        else failure(Situation.RECORD_NOT_WRITTEN, "$what: ${error.message}", error)

    private companion object {
        val LOCK_PAUSE = 20.milliseconds
        const val LOCK_ATTEMPTS = 6_000
    }
}
