package ai.synheart.auth.identity

import ai.synheart.auth.DeviceStatus
import ai.synheart.auth.DeviceToken
import ai.synheart.auth.KeyRotation
import ai.synheart.auth.OwnCode
import ai.synheart.auth.Recovery
import ai.synheart.auth.Registration
import ai.synheart.auth.Remedy
import ai.synheart.auth.ResetReason
import ai.synheart.auth.RotationReason
import ai.synheart.auth.SynheartAuthException
import ai.synheart.auth.concurrency.BackOff
import ai.synheart.auth.concurrency.closed
import ai.synheart.auth.concurrency.resetMeanwhile
import ai.synheart.auth.failure
import ai.synheart.auth.remedy
import ai.synheart.auth.wire.Route
import ai.synheart.auth.wire.TokenAnswer
import ai.synheart.auth.wire.isInvalidSignature
import ai.synheart.auth.wire.statusAnswer
import ai.synheart.auth.wire.tokenRequest
import kotlin.time.Duration
import kotlin.time.Duration.Companion.milliseconds
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Deferred
import kotlinx.coroutines.async
import kotlinx.coroutines.currentCoroutineContext
import kotlinx.coroutines.ensureActive
import kotlinx.coroutines.launch

/**
 * The identity of one app on this device. It runs one operation at a time; a second caller of the same operation joins it.
 * An operation runs in the client's scope, so that it survives the cancellation of the caller that began it.
 */
internal class DeviceIdentity(val context: IdentityContext, private val scope: CoroutineScope) {
    private class Running<Value>(val outcome: Deferred<Result<Value>>, val backOff: BackOff)

    /** A running request for a token, and the thumbprint of the key that signs it. */
    private class Fetch(val thumbprint: String, val outcome: Deferred<Result<DeviceToken>>)

    // Guarded by this object's monitor.
    private var registration: Running<Registration>? = null
    private var rotation: Running<KeyRotation>? = null
    private var rotationReason = RotationReason.SCHEDULED
    /** The latest reset. It ends after all earlier ones. */
    private var resetting: Deferred<Result<Unit>>? = null
    private val fetches = HashMap<String, Fetch>()
    private val tokens = TokenCache()

    /** Starts an operation that its callers' cancellation does not end. */
    private fun <Value> start(body: suspend () -> Value): Deferred<Result<Value>> = scope.async {
        try {
            Result.success(body())
        } catch (error: CancellationException) {
            throw error
        } catch (error: SynheartAuthException) {
            Result.failure(error)
        } catch (error: RegistrationFailure) {
            Result.failure(error.error)
        }
    }

    /** The result of an operation. Cancelling the caller ends its wait; the operation continues. */
    private suspend fun <Value> Deferred<Result<Value>>.outcome(): Value {
        val result = try {
            await()
        } catch (_: CancellationException) {
            // Either the caller was cancelled, and `ensureActive` throws, or the client's scope has ended.
            currentCoroutineContext().ensureActive()
            throw closed()
        }
        return result.getOrThrow()
    }

    suspend fun register(joins: Boolean): Registration {
        // A reset continues after its caller is cancelled. Wait, so that this call returns no identity that the reset will delete.
        synchronized(this) { resetting?.takeIf { it.isActive } }?.join()
        val running = synchronized(this) {
            registration?.takeIf { it.outcome.isActive }?.let {
                if (!joins) throw failure(OwnCode.REGISTRATION_IN_PROGRESS, "a registration of this app is in progress")
                return@synchronized it
            }
            val backOff = BackOff(context.configuration.sleeper)
            val outcome = start {
                context.existingRegistration(context.ledger.load()) ?: RegistrationCycle(context, backOff).run()
            }
            Running(outcome, backOff).also { registration = it }
        }
        val result = running.outcome.outcome()
        if (result.status == Registration.Status.ALREADY_REGISTERED) maintainInBackground()
        return result
    }

    /** Rotates, or joins a rotation whose reason covers [reason]. A weaker one ends at its next pause, and its callers join the new one. */
    suspend fun rotate(reason: RotationReason): KeyRotation {
        var running = synchronized(this) {
            val current = rotation?.takeIf { it.outcome.isActive }
            if (current != null && rotationReason.covers(reason)) return@synchronized current
            current?.backOff?.end(isSuperseded = true)
            val backOff = BackOff(context.configuration.sleeper)
            val outcome = start {
                current?.outcome?.join()
                RotationCycle(context, reason, backOff).run()
            }
            rotationReason = reason
            Running(outcome, backOff).also { rotation = it }
        }
        while (true) {
            try {
                return running.outcome.outcome()
            } catch (error: SynheartAuthException) {
                if (!running.backOff.isSuperseded) throw error
                running = synchronized(this) { rotation } ?: throw error
            }
        }
    }

    /** Rotates for the reason that the service demands; without a demand, as scheduled. */
    suspend fun rotateAsDemanded() {
        rotate(context.ledger.load().rotationDemand?.reason ?: RotationReason.SCHEDULED)
    }

    /** Resets the identity, after all earlier resets. */
    suspend fun reset(reason: ResetReason) {
        val operation = synchronized(this) {
            tokens.clear()
            fetches.clear()
            val earlier = resetting
            start {
                // An earlier reset must not wipe the identity that is registered after the present reset.
                earlier?.join()
                context.exclusively {
                    endOperations()
                    Resetter(context).reset(reason)
                    context.maintenance.allow()
                }
            }.also { resetting = it }
        }
        operation.outcome()
    }

    /** Ends the registration and the rotation. The caller, a reset, holds the operation lock, so both are only waiting. */
    private fun endOperations() = synchronized(this) {
        registration?.backOff?.end()
        rotation?.backOff?.end()
        registration = null
        rotation = null
    }

    /**
     * Whether a request that the service refused can be signed again with another key: the record's current key is no longer [key]. If
     * a rotation is unfinished, the service may have the new key already. So this function first tries once to finish the rotation.
     */
    suspend fun hasReplaced(key: KeyReference): Boolean {
        val record = context.ledger.load()
        if (record.key != key) return true
        if (record.journal !is JournalEntry.Rotation) return false
        // Make a separate attempt: a running rotation may pause for minutes between its attempts.
        start {
            context.exclusively {
                val entry = context.ledger.load().journal
                if (entry is JournalEntry.Rotation) Rotator(context).attempt(entry.reason)
            }
        }.outcome()
        return context.ledger.load().key != key
    }

    /**
     * Calls the service with the current key. If the service refuses a key that was just replaced, calls again with the new one.
     * If a reset ended the identity during the call, the error says so. Otherwise the app could give up its new identity because of
     * the refusal of the old one.
     *
     * @return the answer, and the key that signed
     */
    private suspend fun call(
        route: Route, body: ByteArray = ByteArray(0), keyOf: (IdentityRecord) -> KeyReference = IdentityRecord::signingKey,
    ): Pair<ServiceClient.Answer, KeyReference> {
        var refused: KeyReference? = null
        val call: suspend (IdentityRecord, KeyReference) -> Pair<ServiceClient.Answer, KeyReference> = { record, key ->
            try {
                context.signedCall(route, record, key, body) to key
            } catch (error: SynheartAuthException) {
                if (error.isInvalidSignature && refused == null) {
                    refused = key
                } else if (error.recovery == Recovery.RESET && context.ledger.load().deviceId != record.deviceId) {
                    throw resetMeanwhile()
                }
                throw error
            }
        }
        return try {
            context.signAsCurrent(keyOf, call)
        } catch (error: SynheartAuthException) {
            if (refused?.let { hasReplaced(it) } != true) throw error
            context.signAsCurrent(keyOf, call)
        }
    }

    suspend fun maintain() {
        val record = context.ledger.load()
        val entry = record.journal
        when {
            entry is JournalEntry.Rotation && record.identity == Identity.ACTIVE ->
                // The rotation's reason is the stronger of its own and the demanded one.
                rotate(record.rotationDemand?.reason?.takeIf { it == RotationReason.COMPROMISE } ?: entry.reason)
            entry is JournalEntry.Disposal -> start { context.exclusively { Rotator(context).disposeLeftover() } }.outcome()
        }
        val now = context.ledger.load()
        if (RotationSchedule.isDue(now, context.serverTime(now))) rotateAsDemanded()
    }

    /** Starts [maintain] if [MaintenanceTurn] allows it. */
    fun maintainInBackground() {
        if (!context.configuration.rotatesAutomatically) return
        val run = context.maintenance.begin() ?: return
        scope.launch {
            val result = runCatching { maintain() }
            context.maintenance.end(run, hasFailed = result.isFailure)
            result.exceptionOrNull()?.let { if (it !is SynheartAuthException) throw it }
        }
    }

    suspend fun status(): DeviceStatus {
        // A pending device has a status too.
        val (answer) = call(Route.STATUS) { record -> record.key?.takeIf { record.identity != Identity.NONE } ?: record.signingKey() }
        return answer.read(::statusAnswer)
    }

    suspend fun token(audience: String?): DeviceToken {
        val name = audience.orEmpty()
        val clock = context.configuration.clock
        val key = context.ledger.load().signingKey()
        val held = synchronized(this) { tokens[name] }?.takeIf { it.thumbprint == key.thumbprint }
        if (held != null && held.isFresh(clock.elapsedMillis)) return held.at(clock.elapsedMillis)
        val fetch = synchronized(this) {
            // Join only a fetch with the same key. A fetch with another key may be of an identity that was reset meanwhile.
            fetches[name]?.takeIf { it.outcome.isActive && it.thumbprint == key.thumbprint }
                ?: Fetch(key.thumbprint, start { fetchToken(audience) }).also { fetches[name] = it }
        }
        try {
            return fetch.outcome.outcome()
        } catch (error: SynheartAuthException.NetworkError) {
            // The token is past half of its life but still valid, and the service is down.
            return held?.at(clock.elapsedMillis)?.takeIf { it.remaining > Duration.ZERO } ?: throw error
        } finally {
            synchronized(this) { if (fetches[name] === fetch && !fetch.outcome.isActive) fetches.remove(name) }
        }
    }

    private suspend fun fetchToken(audience: String?): DeviceToken {
        var hasRotated = false
        while (true) {
            try {
                val (answer, key) = call(Route.TOKEN, tokenRequest(audience))
                val token = answer.read(TokenAnswer::parse)
                val entry = TokenCache.Entry(token.token, answer.sentAtMillis, token.lifeSeconds.coerceIn(0, 600) * 1000, key.thumbprint)
                if (entry.thumbprint == context.ledger.load().key?.thumbprint) synchronized(this) { tokens[audience.orEmpty()] = entry }
                return entry.at(context.configuration.clock.elapsedMillis)
            } catch (error: SynheartAuthException) {
                if (error.remedy != Remedy.ROTATE) throw error
                if (hasRotated) throw failure(OwnCode.ROTATION_FAILED, "the service calls a new key too old", error)
                hasRotated = true
                rotateAsDemanded()
            }
        }
    }
}

/** The tokens of one identity, cached in memory. */
internal class TokenCache {
    class Entry(
        private val token: String,
        /** The time at which the token was requested. */
        private val fetchedAtMillis: Long,
        private val lifeMillis: Long,
        /** The thumbprint of the key that the token names. After a rotation a new token is due. */
        val thumbprint: String,
    ) {
        private fun remaining(nowMillis: Long) = fetchedAtMillis + lifeMillis - nowMillis

        fun isFresh(nowMillis: Long): Boolean = remaining(nowMillis) > lifeMillis / 2

        fun at(nowMillis: Long) = DeviceToken(token, remaining(nowMillis).milliseconds)
    }

    private val entries = HashMap<String, Entry>()

    operator fun get(audience: String): Entry? = entries[audience]

    operator fun set(audience: String, entry: Entry) {
        // Limits the memory that the cache uses: an app may ask for a new audience in every call.
        if (entries.size >= 16 && audience !in entries) entries.clear()
        entries[audience] = entry
    }

    fun clear() = entries.clear()
}
