package ai.synheart.auth

import kotlin.time.Duration

/** What the app can do about an error. */
public enum class Recovery(
    /** The name on platform channels. */
    public val wire: String,
) {
    /** Report it to the developer. */
    NONE("none"),

    /** Call again, after `retryAfter` if it is known. */
    RETRY("retry"),

    /** Call `configure`, or correct the configuration. */
    CONFIGURE("configure"),

    /** Call `registerDevice`. */
    REGISTER("register"),

    /** Call `rotateKey`. */
    ROTATE("rotate"),

    /** Call `resetDeviceIdentity`, if the app agrees to lose the identity, then `registerDevice`. */
    RESET("reset"),

    /** Ask the user to correct the device's clock: the client does not learn an offset that large. */
    CORRECT_CLOCK("correctClock"),
}

/**
 * The error of every operation: one class for each code (RFC-AUTH-MOBILE-0001 section 11).
 *
 * The message is for the developer and holds no secret. The cause is for logs of debug builds.
 */
public sealed class SynheartAuthException(internal val failure: Failure) : Exception(failure.message, failure.cause) {
    /** The stable code, such as `NETWORK_ERROR`. */
    public val code: String get() = failure.code.text

    /** What the app can do. */
    public val recovery: Recovery get() = failure.recovery

    /** Whether the same call may succeed later. */
    public val isRetryable: Boolean get() = recovery == Recovery.RETRY

    /** How long to wait before the next call; null if neither the service nor the client knows. */
    public val retryAfter: Duration? get() = failure.retryAfter

    /**
     * Whether the request of a `send` may have taken effect. False only if no part of it was sent, or if the service refused it before
     * it had an effect. Errors of other functions have false.
     */
    public val mayHaveHappened: Boolean get() = failure.mayHaveHappened

    /** Code and message. */
    override fun toString(): String = "$code: $message"

    /** No verdict came in time, or the client was closed or the identity reset meanwhile. */
    public class NetworkError internal constructor(failure: Failure) : SynheartAuthException(failure)

    /** The challenge expired. */
    public class ChallengeExpired internal constructor(failure: Failure) : SynheartAuthException(failure)

    /** This device cannot attest. */
    public class AttestationUnavailable internal constructor(failure: Failure) : SynheartAuthException(failure)

    /** The attestation was refused. */
    public class AttestationFailed internal constructor(failure: Failure) : SynheartAuthException(failure)

    /** The hardware key is no longer usable. */
    public class KeyInvalidated internal constructor(failure: Failure) : SynheartAuthException(failure)

    /** The Android Keystore failed. */
    public class KeystoreError internal constructor(failure: Failure) : SynheartAuthException(failure)

    /** The Secure Enclave failed. Android has no Secure Enclave, so only [fromCode] makes this exception. */
    public class SecureEnclaveError internal constructor(failure: Failure) : SynheartAuthException(failure)

    /** The request could not be signed. */
    public class SigningFailed internal constructor(failure: Failure) : SynheartAuthException(failure)

    /** The service revoked this device. */
    public class DeviceRevoked internal constructor(failure: Failure) : SynheartAuthException(failure)

    /** The device's clock is off. */
    public class ClockSkew internal constructor(failure: Failure) : SynheartAuthException(failure)

    /** The key was not rotated. The old one is active, unless the recovery is [Recovery.RESET]. */
    public class RotationFailed internal constructor(failure: Failure) : SynheartAuthException(failure)

    /** The service has seen this nonce. */
    public class NonceReplay internal constructor(failure: Failure) : SynheartAuthException(failure)

    /** The device is registered. */
    public class AlreadyRegistered internal constructor(failure: Failure) : SynheartAuthException(failure)

    /** The device is not registered. */
    public class NotRegistered internal constructor(failure: Failure) : SynheartAuthException(failure)

    /** `configure` was not called, or the configuration is wrong. */
    public class NotConfigured internal constructor(failure: Failure) : SynheartAuthException(failure)

    /** A registration of this app is in progress. */
    public class RegistrationInProgress internal constructor(failure: Failure) : SynheartAuthException(failure)

    /** A cryptographic operation failed. */
    public class CryptoError internal constructor(failure: Failure) : SynheartAuthException(failure)

    /** The identity's record could not be read or written. */
    public class StorageError internal constructor(failure: Failure) : SynheartAuthException(failure)

    /** The answer is larger than the request allows. The request may have succeeded. */
    public class AnswerTooLarge internal constructor(failure: Failure) : SynheartAuthException(failure)

    /** The identity's state does not allow the operation. This is a bug in the program. */
    public class InvalidStateTransition internal constructor(
        failure: Failure,
        /** The state before the operation; null if the error came through a platform channel. */
        public val from: IdentityState? = null,
        /** The state that the operation could not reach; null if [from] is null. */
        public val to: IdentityState? = null,
    ) : SynheartAuthException(failure)

    /** Any other code of the service. */
    public class ServerError internal constructor(failure: Failure) : SynheartAuthException(failure)

    /** Makes exceptions from codes. */
    public companion object {
        /** The exception of a code that came through a platform channel. Any code that is not the client's own is a [ServerError]. */
        public fun fromCode(code: String, message: String? = null): SynheartAuthException {
            val own = OwnCode.entries.find { it.text == code }
            return if (own != null) failure(own, message ?: own.message) else failure(ServiceCode.of(code), message ?: "The service refused.")
        }
    }
}
