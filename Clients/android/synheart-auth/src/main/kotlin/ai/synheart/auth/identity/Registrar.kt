package ai.synheart.auth.identity

import ai.synheart.auth.DeviceStatus
import ai.synheart.auth.IdentityState
import ai.synheart.auth.LogEntry
import ai.synheart.auth.OwnCode
import ai.synheart.auth.Registration
import ai.synheart.auth.Remedy
import ai.synheart.auth.RetryPolicy
import ai.synheart.auth.SynheartAuthException
import ai.synheart.auth.concurrency.BackOff
import ai.synheart.auth.concurrency.resetMeanwhile
import ai.synheart.auth.failure
import ai.synheart.auth.fraction
import ai.synheart.auth.remedy
import ai.synheart.auth.wire.Route
import ai.synheart.auth.wire.statusAnswer
import kotlin.time.Duration

/** Runs the attempts at a registration. Holds no lock between them, so that another process or a reset can run. */
internal class RegistrationCycle(private val context: IdentityContext, private val backOff: BackOff) {
    private var start: Long? = null

    /** Registers from any state. Returns the existing registration if another process was faster. */
    suspend fun run(): Registration {
        try {
            val registration = attempts()
            start?.let { context.log.event(LogEntry.Event.REGISTRATION_FINISHED, durationMillis = now() - it) }
            return registration
        } catch (error: SynheartAuthException) {
            start?.let {
                context.log.event(
                    LogEntry.Event.REGISTRATION_FAILED, LogEntry.Level.WARNING, error = error, durationMillis = now() - it,
                )
            }
            throw error
        }
    }

    private fun now() = context.configuration.clock.elapsedMillis

    private suspend fun attempts(): Registration {
        var refusals = 0
        var attempt = 0
        var waiting: RegistrationAttempt.Candidate? = null
        while (true) {
            val failure = try {
                return context.exclusively { registerOnce(waiting) }
            } catch (failure: RegistrationFailure) {
                failure
            }
            waiting = failure.pause?.next
            val pause = failure.pause
            if (pause != null) {
                backOff.pause(pause.delay, ::resetMeanwhile)
                continue
            }
            if (failure.remedy == Remedy.ATTEST_AGAIN) refusals++
            val delay = RetryPolicy.REGISTRATION.delay(attempt, context.configuration.random.fraction(), failure.error.retryAfter)
            if (!failure.isRetried || refusals > 1 || delay == null) throw failure.error
            backOff.pause(delay, ::resetMeanwhile)
            attempt++
        }
    }

    private suspend fun registerOnce(waiting: RegistrationAttempt.Candidate?): Registration {
        if (backOff.isEnded) throw resetMeanwhile()
        val registrar = Registrar(context)
        if (waiting != null && registrar.canGoOn(waiting)) return registrar.attempt(waiting)
        registrar.settleLeftovers()?.let { return it }
        if (start == null) {
            start = now()
            context.log.event(LogEntry.Event.REGISTRATION_STARTED)
        }
        return registrar.attempt(null)
    }
}

/** The failure of an attempt, and whether another attempt follows. */
internal class RegistrationFailure(
    val error: SynheartAuthException,
    /** The remedy: the error's own, unless the attempt has a better one. */
    val remedy: Remedy = error.remedy,
    val forgetsKey: Boolean = false,
    /** The pause after which the attempt can continue; null unless the attestation provider is unavailable. */
    val pause: Pause? = null,
    /** Whether the service has rejected the device. */
    val isRejected: Boolean = false,
) : Exception(error) {
    class Pause(val delay: Duration, val next: RegistrationAttempt.Candidate)

    /** Whether another attempt follows, with a new challenge. */
    val isRetried: Boolean get() = remedy == Remedy.BACK_OFF || remedy == Remedy.NEW_CHALLENGE || remedy == Remedy.ATTEST_AGAIN
}

/** Registers a device. The caller holds the operation lock. */
internal class Registrar(private val context: IdentityContext) {
    private val ledger = context.ledger

    /** One attempt, with its own challenge, or the rest of one that waited for the attestation provider. Throws [RegistrationFailure]. */
    suspend fun attempt(waiting: RegistrationAttempt.Candidate?): Registration {
        val failure = try {
            val attempt = RegistrationAttempt(context)
            return if (waiting != null) attempt.run(waiting) else attempt.run()
        } catch (failure: RegistrationFailure) {
            failure
        } catch (error: SynheartAuthException) {
            RegistrationFailure(error)
        }
        context.log.event(LogEntry.Event.ATTEMPT_FAILED, LogEntry.Level.WARNING, error = failure.error)
        if (failure.pause == null) giveUpAttempt(failure)
        throw failure
    }

    /** Whether an attempt that waited can continue: the record is as the attempt left it, and the challenge is still valid. */
    suspend fun canGoOn(waiting: RegistrationAttempt.Candidate): Boolean {
        val record = ledger.load()
        val entry = record.journal as? JournalEntry.Registration
        return record.state == IdentityState.KEY_READY && entry?.key == waiting.key.reference &&
            context.configuration.clock.elapsedMillis < waiting.challenge.goodUntilMillis
    }

    /** Clears what an interrupted operation left. Returns the existing registration; null if the device must register. */
    suspend fun settleLeftovers(): Registration? {
        var record = ledger.load()
        if (record.journal is JournalEntry.Reset) {
            Resetter(context).finish(record)
            record = ledger.load()
        }
        when (record.state) {
            IdentityState.UNREGISTERED -> {}
            IdentityState.KEY_INVALID -> wipe()
            IdentityState.CHALLENGE_RECEIVED, IdentityState.KEY_READY -> ledger.apply(IdentityEvent.RegistrationFailed(forgetsKey = false))
            IdentityState.REGISTERED, IdentityState.REGISTERING -> when (record.identity) {
                Identity.ACTIVE -> {
                    context.existingRegistration(record)?.let { return it }
                    record.key?.let { ledger.apply(IdentityEvent.KeyLost(it)) }
                    wipe()
                }
                Identity.PENDING -> return settlePending(record)
                Identity.NONE -> ledger.apply(IdentityEvent.RegistrationFailed(forgetsKey = false))
            }
        }
        return null
    }

    private suspend fun wipe() {
        for (alias in KeyAlias.both(context.appId)) context.deleteKey(alias)
        ledger.apply(IdentityEvent.Wiped)
    }

    /** Asks for the decision on a pending registration. Returns null if its key is lost. */
    private suspend fun settlePending(record: IdentityRecord): Registration? {
        val key = record.key
        val deviceId = record.deviceId
        if (key == null || deviceId == null || context.publicKey(key) == null) {
            ledger.apply(IdentityEvent.RegistrationFailed(forgetsKey = true))
            return null
        }
        val status = try {
            context.signedCall(Route.STATUS, record, key).read(::statusAnswer)
        } catch (_: SynheartAuthException.KeyInvalidated) {
            // The key is found but cannot sign. No request can be signed with it any more.
            ledger.apply(IdentityEvent.RegistrationFailed(forgetsKey = true))
            return null
        }
        return when (status.status) {
            DeviceStatus.Status.REGISTERED -> {
                ledger.apply(IdentityEvent.Registered(deviceId, status.registeredAt))
                Registration(Registration.Status.REGISTERED, deviceId)
            }
            DeviceStatus.Status.PENDING -> Registration(Registration.Status.PENDING, deviceId)
            DeviceStatus.Status.REJECTED -> {
                ledger.apply(IdentityEvent.RegistrationFailed(forgetsKey = false, isRejected = true))
                throw failure(OwnCode.ATTESTATION_FAILED, "the service rejected this device")
            }
            DeviceStatus.Status.REVOKED, DeviceStatus.Status.DEREGISTERED ->
                throw failure(OwnCode.DEVICE_REVOKED, "the service has revoked this device")
        }
    }

    private suspend fun giveUpAttempt(failure: RegistrationFailure) {
        try {
            // Before the first transition there is nothing to undo.
            if (ledger.load().state == IdentityState.UNREGISTERED) return
            ledger.apply(IdentityEvent.RegistrationFailed(failure.forgetsKey, failure.isRejected))
        } catch (_: SynheartAuthException) {
            // Report the first failure. The next call settles the record.
            throw failure.error
        }
    }
}

/** The registration in the record, if its key exists. Makes no request. */
internal suspend fun IdentityContext.existingRegistration(record: IdentityRecord): Registration? {
    if (record.identity != Identity.ACTIVE || record.deviceId == null || record.key == null) return null
    if (publicKey(record.key) != null) return Registration(Registration.Status.ALREADY_REGISTERED, record.deviceId)
    // A rotation may have replaced the key after the record was read.
    val now = ledger.load()
    return if (now.key == record.key) null else existingRegistration(now)
}
