package ai.synheart.auth

import kotlin.time.Duration

/** The state of an identity. */
public enum class IdentityState(
    /** The name in records, in logs and on platform channels. */
    public val wire: String,
) {
    /** This app has no device identity. */
    UNREGISTERED("unregistered"),

    /** A challenge was fetched. The key comes next. */
    CHALLENGE_RECEIVED("challengeReceived"),

    /** The key exists. The attestation comes next. */
    KEY_READY("keyReady"),

    /** A registration or a rotation is running, or the service has not decided yet. */
    REGISTERING("registering"),

    /** The identity is registered. */
    REGISTERED("registered"),

    /** The key is lost, or the record is damaged. */
    KEY_INVALID("keyInvalid"),
}

/** A change of an identity's state. */
public data class StateChange(
    /** The app. */
    public val appId: String,
    /** The state before. */
    public val from: IdentityState,
    /** The state after. */
    public val to: IdentityState,
)

/** The result of `registerDevice`. */
public data class Registration(
    /** The status of the device. */
    public val status: Status,
    /** The id that the service issued, a lower-case UUID. */
    public val deviceId: String,
) {
    /** The status of a device. */
    public enum class Status(
        /** The name on platform channels. */
        public val wire: String,
    ) {
        /** The device became registered in this call. */
        REGISTERED("registered"),

        /** The device was already registered. The call sent nothing. */
        ALREADY_REGISTERED("alreadyRegistered"),

        /** The service has not decided yet. Call again later. */
        PENDING("pending"),
    }
}

/** The client's reason for replacing its key. */
public enum class RotationReason(
    /** The name in requests and records. */
    public val wire: String,
) {
    /** The key is old, or the app or the service asked for a new one. The previous key stays valid for a short overlap. */
    SCHEDULED("scheduled"),

    /** Another party may have the previous key. It stops being valid at once. */
    COMPROMISE("compromise"),
}

/** The result of a rotation. */
public data class KeyRotation(
    /** The device id, which does not change. */
    public val deviceId: String,
    /** The time at which the new key became the current one: unix seconds on the service's clock. */
    public val effectiveAt: Long,
)

/** The app's reason for giving up an identity (RFC-AUTH-MOBILE-0001 section 9.3). */
public enum class ResetReason(
    /** The name in records and on platform channels. */
    public val wire: String,
) {
    /** The service demands it, for example by `DEVICE_REVOKED`. */
    SERVER_INSTRUCTED("server_instructed"),

    /** The user asked for it, for example by signing out everywhere. */
    USER_REQUESTED("user_requested"),

    /** The key is lost and cannot be rotated. */
    KEY_LOST("key_lost"),
}

/** The signature schemes. */
public enum class SignatureScheme(
    /** The number. */
    public val number: Int,
) {
    /** Signs method, path, time and body. */
    ONE(1),

    /** HTTP Message Signatures (RFC 9421). It also covers scheme, host and query. */
    TWO(2),
}

/** A short-lived token that names the device: a JWT of type `synheart-device+jwt`. */
public class DeviceToken(
    /** The JWT, a secret: until it expires, any holder can act as the device, unless the backend also checks a signature. */
    public val token: String,
    /** The remaining life. */
    public val remaining: Duration,
) {
    /** Without the token. */
    override fun toString(): String = "DeviceToken(remaining=$remaining)"
}

/** The service's view of a device. */
public data class DeviceStatus(
    /** The device's id. */
    public val deviceId: String,
    /** The service's decision. */
    public val status: Status,
    /** Unix seconds. */
    public val registeredAt: Long,
    /** Unix seconds; null before the first rotation. */
    public val keyRotatedAt: Long?,
    /** The age of the current key in seconds. */
    public val keyAgeSeconds: Long,
    /** The RFC 7638 thumbprint of the current key, also if the previous key signed the request. */
    public val keyThumbprint: String,
    /** Whether the service demands a rotation. */
    public val mustRotate: Boolean,
    /** The service's clock: unix seconds. */
    public val serverTimestamp: Long,
) {
    /** The service's decision about a device. */
    public enum class Status(
        /** The name in answers. */
        public val wire: String,
    ) {
        /** The service has not decided yet. */
        PENDING("pending"),

        /** The device may sign. */
        REGISTERED("registered"),

        /** The device was not admitted. */
        REJECTED("rejected"),

        /** An operator ended the identity. */
        REVOKED("revoked"),

        /** The device ended the identity. */
        DEREGISTERED("deregistered"),
    }
}
