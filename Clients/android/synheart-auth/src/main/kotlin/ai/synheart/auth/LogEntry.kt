package ai.synheart.auth

import ai.synheart.auth.wire.hex
import ai.synheart.auth.wire.sha256

/**
 * A log entry. Only the client makes one, from values that may be logged: no signatures, bodies, proofs, keys, tokens or clock
 * offsets.
 */
public class LogEntry internal constructor(
    /** The severity. */
    public val level: Level,
    /** The event. */
    public val event: Event,
    /** The app. */
    public val appId: String,
    deviceId: String?,
    /** The error's code; null without an error. */
    public val code: String?,
    /** The state before a change, or before one that was refused; null for other events. */
    public val from: IdentityState?,
    /** The state after a change, or the one that could not be reached; null for other events. */
    public val to: IdentityState?,
    /** The duration of the operation; null if it is not known. */
    public val durationMillis: Long?,
) {
    /** The severity of an entry. */
    public enum class Level { DEBUG, INFO, WARNING, ERROR }

    /** What happened. */
    public enum class Event {
        REGISTRATION_STARTED, REGISTRATION_FINISHED, REGISTRATION_FAILED, ATTEMPT_FAILED,
        ROTATION_STARTED, ROTATION_FINISHED, ROTATION_FAILED,
        IDENTITY_RESET, STATE_CHANGED, OPERATION_FAILED,

        /** The service names a key that this device never had. */
        FOREIGN_KEY,
    }

    /** The first 16 hexadecimal digits of SHA-256 of the device id; null without a device id. */
    public val deviceHash: String? = deviceId?.let { sha256(it.toByteArray()).copyOf(8).hex() }

    /** One line: `ROTATION_FINISHED app=com.example.app device=… code=… registering -> registered 12 ms`. */
    override fun toString(): String = listOfNotNull(
        event.name, "app=$appId", deviceHash?.let { "device=$it" }, code?.let { "code=$it" },
        if (from != null && to != null) "${from.wire} -> ${to.wire}" else null, durationMillis?.let { "$it ms" },
    ).joinToString(" ")
}

/** Writes the log entries of one identity. */
internal class IdentityLog(private val appId: String, private val logger: AuthLogger) {
    fun event(
        event: LogEntry.Event, level: LogEntry.Level = LogEntry.Level.INFO, deviceId: String? = null,
        error: SynheartAuthException? = null, durationMillis: Long? = null,
    ) {
        val transition = error as? SynheartAuthException.InvalidStateTransition
        write(LogEntry(level, event, appId, deviceId, error?.code, transition?.from, transition?.to, durationMillis))
    }

    fun transition(from: IdentityState, to: IdentityState, deviceId: String?) =
        write(LogEntry(LogEntry.Level.INFO, LogEntry.Event.STATE_CHANGED, appId, deviceId, null, from, to, null))

    /** Hides an exception of the logger: it must not end an operation. */
    private fun write(entry: LogEntry) {
        try {
            logger.log(entry)
        } catch (_: Exception) {
        }
    }
}
