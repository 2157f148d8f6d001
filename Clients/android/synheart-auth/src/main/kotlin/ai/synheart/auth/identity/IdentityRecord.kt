package ai.synheart.auth.identity

import ai.synheart.auth.IdentityState
import ai.synheart.auth.ResetReason
import ai.synheart.auth.RotationReason
import ai.synheart.auth.SignatureScheme
import ai.synheart.auth.wire.FormException
import ai.synheart.auth.wire.JsonObject
import ai.synheart.auth.wire.PLATFORM
import ai.synheart.auth.wire.RotationDemand
import ai.synheart.auth.wire.isDeviceId
import ai.synheart.auth.wire.writeJson

/** The service's knowledge of this device. In the state `registering` each of the three values is possible. */
internal enum class Identity(val wire: String) {
    /** The device has no usable identity. */
    NONE("none"),

    /** The service has not decided yet. */
    PENDING("pending"),

    /** Requests can be signed. */
    ACTIVE("active"),
}

/** A key's name in the key store and its RFC 7638 thumbprint. */
internal data class KeyReference(val alias: String, val thumbprint: String)

/**
 * An operation in progress. The entry is written before each step with outside effects, so that the operation can be finished or
 * undone after the process is killed.
 */
internal sealed interface JournalEntry {
    /**
     * A registration with this key. If it [isSent], the service may know the key. If it [isRejected], the service knows the key and
     * has rejected the device. Only a reset by the app may then replace the key: a new key would undo the rejection.
     */
    data class Registration(val key: KeyReference, val isSent: Boolean, val isRejected: Boolean = false) : JournalEntry

    /** A rotation. */
    data class Rotation(
        /** The new key's name. */
        val alias: String,
        val reason: RotationReason,
        /** The new key's thumbprint; null until the key exists. */
        val thumbprint: String? = null,
        /** The latest timestamp of the copies of the rotation request that may still take effect; null if there are none. */
        val lastCopy: Long? = null,
        /** Whether the service answered the request with `ROTATION_FAILED`, or named another key as the current one. */
        val isRefused: Boolean = false,
    ) : JournalEntry

    /** A key that must be deleted: one that a rotation replaced, or the new key of an abandoned rotation. */
    data class Disposal(val alias: String) : JournalEntry

    /** A reset that must tell the service and delete the keys. */
    data class Reset(val reason: ResetReason) : JournalEntry
}

/** The persisted record of one identity. It never holds private keys, attestations or tokens. */
internal data class IdentityRecord(
    val appId: String,
    val state: IdentityState = IdentityState.UNREGISTERED,
    val identity: Identity = Identity.NONE,
    val deviceId: String? = null,
    val key: KeyReference? = null,
    /** When the device was registered, in unix seconds. All other times of the record have this unit too, except those of [suspicions]. */
    val registeredAt: Long? = null,
    val keyRotatedAt: Long? = null,
    val clockOffset: ClockOffset = ClockOffset.NONE,
    /** The auth service of the identity. */
    val authOrigin: String? = null,
    /** A demanded rotation (`X-Synheart-Rotate`). */
    val rotationDemand: RotationDemand? = null,
    /** The lowest scheme to sign under: the service refuses lower ones from this device. */
    val schemeFloor: SignatureScheme = SignatureScheme.ONE,
    /** The running operation, or the rest of an interrupted one. */
    val journal: JournalEntry? = null,
    /** For each key alias, the first answer of the key store that suggested that the key is lost. */
    val suspicions: Map<String, Suspicion> = emptyMap(),
) {
    /** The persisted form. */
    fun toBytes(): ByteArray = writeJson(
        "version" to VERSION,
        "app_id" to appId,
        "state" to state.wire,
        "identity" to identity.wire,
        "device_id" to deviceId,
        "platform" to PLATFORM,
        "key_alias" to key?.alias,
        "key_thumbprint" to key?.thumbprint,
        "registered_at" to registeredAt,
        "key_rotated_at" to keyRotatedAt,
        "clock_offset_ms" to clockOffset.millis,
        "auth_origin" to authOrigin,
        "must_rotate_by" to rotationDemand?.by,
        "must_rotate_reason" to rotationDemand?.reason?.wire,
        "scheme_floor" to schemeFloor.number,
        "journal" to journal?.toJson(),
        "suspicions" to suspicions.takeIf { it.isNotEmpty() }?.mapValues { it.value.toJson() },
    )

    /** Whether the state allows this [identity], and a pending or active identity has a device id and a key. */
    val isConsistent: Boolean
        get() {
            val isAllowed = when (state) {
                IdentityState.REGISTERING -> true
                IdentityState.REGISTERED -> identity == Identity.ACTIVE
                else -> identity == Identity.NONE
            }
            return isAllowed && (identity == Identity.NONE || deviceId != null && key != null)
        }

    companion object {
        private const val VERSION = 1L

        /** Reads a persisted record, strictly. Another version, another app or a contradictory state is an error, never a fresh start. */
        fun parse(bytes: ByteArray, appId: String): IdentityRecord {
            val json = JsonObject.parse(bytes)
            val version = json.long("version")
            if (version > VERSION) throw NewerVersionException()
            if (version != VERSION) throw FormException("the record has another version")
            if (json.string("app_id") != appId) throw FormException("the record is another app's")
            if (json.string("platform") != PLATFORM) throw FormException("the record is another platform's")
            val record = IdentityRecord(
                appId = appId,
                state = json.choice("state", IdentityState.entries, IdentityState::wire),
                identity = json.choice("identity", Identity.entries, Identity::wire),
                deviceId = json.optionalString("device_id")?.also { if (!isDeviceId(it)) throw FormException("device_id is not an id") },
                key = json.alias(appId)?.let { KeyReference(it, json.string("key_thumbprint")) },
                registeredAt = json.optionalLong("registered_at"),
                keyRotatedAt = json.optionalLong("key_rotated_at"),
                clockOffset = ClockOffset.of(json.long("clock_offset_ms")) ?: throw FormException("clock_offset_ms is out of range"),
                authOrigin = json.optionalString("auth_origin"),
                rotationDemand = json.optionalLong("must_rotate_by")?.let {
                    RotationDemand(it, json.choice("must_rotate_reason", RotationReason.entries, RotationReason::wire))
                },
                schemeFloor = json.long("scheme_floor").let { number ->
                    SignatureScheme.entries.find { it.number.toLong() == number } ?: throw FormException("scheme_floor is unknown")
                },
                journal = json.optionalObject("journal")?.let { journalEntry(it, appId) },
                suspicions = json.optionalObject("suspicions")?.let { suspicions(it, appId) }.orEmpty(),
            )
            if (!record.isConsistent) throw FormException("the record contradicts itself")
            return record
        }
    }
}

/** The record is intact, and of a later version of the client. */
internal class NewerVersionException : Exception("the record is of a newer version of the SDK")

/** The names of an app's keys. The record says which of the two is current; after a rotation they alternate. */
internal object KeyAlias {
    /** The name of the first key. */
    fun primary(appId: String) = "synheart_auth_$appId"

    /** Both names. */
    fun both(appId: String) = listOf(primary(appId), "${primary(appId)}_next")

    /** The name of the app's other key, which is not [alias]. */
    fun other(alias: String, appId: String): String = both(appId).first { it != alias }
}

internal fun Suspicion.toJson(): Map<String, Any?> = mapOf("launch" to launch, "at_ms" to atMillis)

internal fun suspicion(subject: String, json: JsonObject) = Suspicion(subject, json.string("launch"), json.long("at_ms"))

private fun suspicions(json: JsonObject, appId: String): Map<String, Suspicion> = json.members.keys.associateWith { alias ->
    if (alias !in KeyAlias.both(appId)) throw FormException("a suspicion is of another app's key")
    suspicion(alias, json.optionalObject(alias) ?: throw FormException("a suspicion is missing"))
}

private fun JournalEntry.toJson(): Map<String, Any?> = when (this) {
    is JournalEntry.Registration -> mapOf(
        "operation" to "registration", "key_alias" to key.alias, "key_thumbprint" to key.thumbprint, "sent" to isSent,
        "rejected" to isRejected.takeIf { it },
    )
    is JournalEntry.Rotation -> mapOf(
        "operation" to "rotation", "key_alias" to alias, "key_thumbprint" to thumbprint, "reason" to reason.wire,
        "last_copy" to lastCopy, "refused" to isRefused,
    )
    is JournalEntry.Disposal -> mapOf("operation" to "disposal", "key_alias" to alias)
    is JournalEntry.Reset -> mapOf("operation" to "reset", "reason" to reason.wire)
}

private fun journalEntry(json: JsonObject, appId: String): JournalEntry {
    fun alias() = json.alias(appId) ?: throw FormException("key_alias is missing")
    return when (json.string("operation")) {
        "registration" -> JournalEntry.Registration(
            KeyReference(alias(), json.string("key_thumbprint")), json.boolean("sent"), json.optionalBoolean("rejected") ?: false,
        )
        "rotation" -> JournalEntry.Rotation(
            alias(), json.choice("reason", RotationReason.entries, RotationReason::wire), json.optionalString("key_thumbprint"),
            json.optionalLong("last_copy"), json.boolean("refused"),
        )
        "disposal" -> JournalEntry.Disposal(alias())
        "reset" -> JournalEntry.Reset(json.choice("reason", ResetReason.entries, ResetReason::wire))
        else -> throw FormException("the journal names an unknown operation")
    }
}

private fun JsonObject.alias(appId: String): String? =
    optionalString("key_alias")?.also { if (it !in KeyAlias.both(appId)) throw FormException("key_alias is not the app's") }
