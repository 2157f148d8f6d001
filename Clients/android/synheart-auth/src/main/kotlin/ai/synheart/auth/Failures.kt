package ai.synheart.auth

import ai.synheart.auth.SynheartAuthException.*
import kotlin.time.Duration

/** The client's own reaction to a failure. It is tried once, unless noted otherwise. If it fails, the client reports the error. */
internal enum class Remedy {
    /** Report the error. Only `send` does not throw it: it returns the refusal as the answer. */
    NONE,

    /** Report the error, also from `send`. */
    REPORT,

    /** Repeat the operation, with the back-off of its [RetryPolicy]. */
    BACK_OFF,

    /** Read the record again, with the back-off of [RetryPolicy.STORAGE]. */
    READ_AGAIN,

    /** Start the registration again with a new challenge, with the back-off of [RetryPolicy.REGISTRATION]. */
    NEW_CHALLENGE,

    /** Ask the attestation provider again, with the back-off of [RetryPolicy.PROVIDER], while the challenge lives. */
    ASK_PROVIDER_AGAIN,

    /** Ask the attestation provider once more, with a new challenge. */
    ATTEST_AGAIN,

    /** Sign again with a new time and a new nonce. */
    SIGN_AGAIN,

    /** Learn the clock from the service and sign again. */
    LEARN_CLOCK,

    /** Sign again under the other scheme. */
    SIGN_OTHER_SCHEME,

    /** The service demands an App Attest assertion. Android has none: a rotation is sent again with evidence, other requests fail. */
    ASSERT,

    /** Ask for a challenge and rotate again with evidence. */
    ATTEST_ROTATION,

    /** Rotate the key and sign again. */
    ROTATE,

    /** Register again and sign again. */
    REGISTER,

    /** Finish the unsettled rotation, if there is one. Sign again if the key has been replaced. Otherwise do the same as for [CONFIRM]. */
    FINISH_ROTATION,

    /** Confirm the refusal with a status request to the auth service, unless the auth service itself sent the refusal. */
    CONFIRM,
}

/** A stable code: one of the client's own, or one of the service. */
internal sealed interface Code {
    val text: String
    val remedy: Remedy
    val recovery: Recovery
}

/** The client's own codes, each with the client's remedy, and the recovery that is left to the app if the remedy fails. */
internal enum class OwnCode(override val remedy: Remedy, override val recovery: Recovery, val message: String) : Code {
    NETWORK_ERROR(Remedy.BACK_OFF, Recovery.RETRY, "The auth service could not be asked."),
    CHALLENGE_EXPIRED(Remedy.NEW_CHALLENGE, Recovery.RETRY, "The challenge expired."),
    ATTESTATION_UNAVAILABLE(Remedy.NONE, Recovery.NONE, "This device cannot attest."),
    ATTESTATION_FAILED(Remedy.NONE, Recovery.NONE, "The attestation was refused."),
    KEY_INVALIDATED(Remedy.REGISTER, Recovery.REGISTER, "The hardware key is no longer usable."),
    KEYSTORE_ERROR(Remedy.NONE, Recovery.NONE, "The key store failed."),
    SECURE_ENCLAVE_ERROR(Remedy.NONE, Recovery.NONE, "The Secure Enclave failed."),
    SIGNING_FAILED(Remedy.NONE, Recovery.NONE, "The request could not be signed."),
    DEVICE_REVOKED(Remedy.CONFIRM, Recovery.RESET, "The service revoked this device."),
    CLOCK_SKEW(Remedy.LEARN_CLOCK, Recovery.RETRY, "The device's clock is off."),
    ROTATION_FAILED(Remedy.NONE, Recovery.RETRY, "The key was not rotated; the old one is active."),
    NONCE_REPLAY(Remedy.SIGN_AGAIN, Recovery.RETRY, "The service has seen this nonce."),
    ALREADY_REGISTERED(Remedy.NONE, Recovery.NONE, "The device is registered."),
    NOT_REGISTERED(Remedy.NONE, Recovery.REGISTER, "The device is not registered."),
    NOT_CONFIGURED(Remedy.NONE, Recovery.CONFIGURE, "Call configure first."),
    REGISTRATION_IN_PROGRESS(Remedy.NONE, Recovery.RETRY, "A registration of this app is in progress."),
    CRYPTO_ERROR(Remedy.NONE, Recovery.NONE, "A cryptographic operation failed."),
    STORAGE_ERROR(Remedy.NONE, Recovery.NONE, "The identity's record could not be read or written."),
    ANSWER_TOO_LARGE(Remedy.NONE, Recovery.NONE, "The answer is too large; the request may have succeeded."),
    INVALID_STATE_TRANSITION(Remedy.NONE, Recovery.NONE, "The state does not allow this."),
    ;

    override val text: String get() = name
}

/** A code of the service that the client reports unchanged. */
internal data class ServiceCode(override val text: String, override val remedy: Remedy, override val recovery: Recovery) : Code {
    companion object {
        private fun row(text: String, remedy: Remedy, recovery: Recovery) = ServiceCode(text, remedy, recovery)

        val INVALID_CHALLENGE = row("INVALID_CHALLENGE", Remedy.NEW_CHALLENGE, Recovery.RETRY)
        val ATTESTATION_REQUIRED = row("ATTESTATION_REQUIRED", Remedy.ATTEST_ROTATION, Recovery.NONE)
        val NOT_REGISTERED = row("NOT_REGISTERED", Remedy.CONFIRM, Recovery.RESET)
        val INVALID_SIGNATURE = row("INVALID_SIGNATURE", Remedy.FINISH_ROTATION, Recovery.RESET)
        val KEY_EXPIRED = row("KEY_EXPIRED", Remedy.ROTATE, Recovery.ROTATE)
        val ASSERTION_REQUIRED = row("ASSERTION_REQUIRED", Remedy.ASSERT, Recovery.NONE)
        val UNSUPPORTED_SIG_VERSION = row("UNSUPPORTED_SIG_VERSION", Remedy.SIGN_OTHER_SCHEME, Recovery.NONE)
        val RATE_LIMITED = row("RATE_LIMITED", Remedy.NONE, Recovery.RETRY)

        /** The service is not configured for the origin that was signed. */
        val MISDIRECTED_REQUEST = row("MISDIRECTED_REQUEST", Remedy.REPORT, Recovery.NONE)

        private val rows = listOf(
            INVALID_CHALLENGE, ATTESTATION_REQUIRED, NOT_REGISTERED, INVALID_SIGNATURE, KEY_EXPIRED, ASSERTION_REQUIRED,
            UNSUPPORTED_SIG_VERSION, RATE_LIMITED, MISDIRECTED_REQUEST,
        ).associateBy { it.text }

        private val form = Regex("[A-Z0-9_]{1,64}")

        /** A code as received. A text of another form becomes `UNKNOWN`, so that codes are safe to log. */
        fun of(text: String): ServiceCode {
            val safe = if (form.matches(text)) text else "UNKNOWN"
            return rows[safe] ?: ServiceCode(safe, Remedy.NONE, Recovery.NONE)
        }

        /** The service's codes that the client reports as its own. Every 5xx is a network error. */
        val renamed: Map<String, OwnCode> = mapOf(
            "CHALLENGE_EXPIRED" to OwnCode.CHALLENGE_EXPIRED,
            "INVALID_ATTESTATION" to OwnCode.ATTESTATION_FAILED,
            "DEVICE_REVOKED" to OwnCode.DEVICE_REVOKED,
            "CLOCK_SKEW" to OwnCode.CLOCK_SKEW,
            "NONCE_REPLAY" to OwnCode.NONCE_REPLAY,
            "ROTATION_FAILED" to OwnCode.ROTATION_FAILED,
            "PROVIDER_UNAVAILABLE" to OwnCode.NETWORK_ERROR,
            "SERVICE_UNAVAILABLE" to OwnCode.NETWORK_ERROR,
            "INTERNAL_ERROR" to OwnCode.NETWORK_ERROR,
        )

        /** The code under which the client reports a service's code. */
        fun reported(text: String): Code = renamed[text] ?: of(text)
    }
}

/** Failures that the client can tell apart although their code is the same. */
internal enum class Situation(val code: Code, val remedy: Remedy, val recovery: Recovery) {
    // The failures of an attestation provider.
    ATTESTATION_UNSUPPORTED(OwnCode.ATTESTATION_UNAVAILABLE, Remedy.NONE, Recovery.NONE),
    ATTESTATION_REFUSED(OwnCode.ATTESTATION_FAILED, Remedy.ATTEST_AGAIN, Recovery.NONE),
    PROVIDER_UNAVAILABLE(OwnCode.ATTESTATION_FAILED, Remedy.ASK_PROVIDER_AGAIN, Recovery.RETRY),
    /** The hardware was too busy to attest the key, and there is no other proof. The next attempt makes a new key. */
    KEY_UNATTESTED(OwnCode.ATTESTATION_FAILED, Remedy.NEW_CHALLENGE, Recovery.RETRY),
    PROVIDER_SILENT(OwnCode.ATTESTATION_FAILED, Remedy.NONE, Recovery.RETRY),

    /** The service refused the evidence, but may have registered the key by an earlier request. */
    KNOWN_KEY_REFUSED(OwnCode.ATTESTATION_FAILED, Remedy.NONE, Recovery.RESET),

    /** The service wants the key's own attestation, but that attestation names a used challenge. */
    KEY_ATTESTATION_SPENT(OwnCode.ATTESTATION_FAILED, Remedy.ATTEST_AGAIN, Recovery.NONE),

    /** The key store is locked or busy. */
    KEY_STORE_UNAVAILABLE(OwnCode.KEYSTORE_ERROR, Remedy.NONE, Recovery.RETRY),

    /**
     * The key store answered once as if the key were lost. The client treats the key as lost only after a second such
     * answer, if the canaries (a test key and a test value in the storage) work.
     */
    KEY_SUSPECTED(OwnCode.KEYSTORE_ERROR, Remedy.NONE, Recovery.RETRY),

    // The record cannot be read, locked or written now, cannot be decoded, is of a newer version, or belongs to another auth service.
    RECORD_UNAVAILABLE(OwnCode.STORAGE_ERROR, Remedy.READ_AGAIN, Recovery.RETRY),
    RECORD_LOCKED(OwnCode.STORAGE_ERROR, Remedy.NONE, Recovery.RETRY),
    RECORD_NOT_WRITTEN(OwnCode.STORAGE_ERROR, Remedy.NONE, Recovery.RETRY),
    RECORD_DAMAGED(OwnCode.STORAGE_ERROR, Remedy.NONE, Recovery.RETRY),
    RECORD_OF_NEWER_VERSION(OwnCode.STORAGE_ERROR, Remedy.NONE, Recovery.NONE),
    RECORD_OF_ANOTHER_SERVICE(OwnCode.STORAGE_ERROR, Remedy.NONE, Recovery.RESET),

    /** The clock is off by more than the client may learn. */
    CLOCK_TOO_FAR_OFF(OwnCode.CLOCK_SKEW, Remedy.NONE, Recovery.CORRECT_CLOCK),

    /** The service accepts no key of this device: it names a key that the device does not have, or refuses every key that is left. */
    NO_KEY_ACCEPTED(OwnCode.ROTATION_FAILED, Remedy.NONE, Recovery.RESET),

    /** The service refuses the rotation because the key is too old. */
    KEY_TOO_OLD_TO_ROTATE(ServiceCode.KEY_EXPIRED, Remedy.NONE, Recovery.RESET),

    /** A copy of a request that must not run twice was accepted. */
    WRITE_REPLAYED(OwnCode.NONCE_REPLAY, Remedy.NONE, Recovery.NONE),

    /** `configure` was called again with other values. */
    CONFIGURED_OTHERWISE(OwnCode.NOT_CONFIGURED, Remedy.NONE, Recovery.NONE),

    // DEADLINE_PASSED: the call's deadline has passed. ENDED: the client was closed, or the identity was reset.
    DEADLINE_PASSED(OwnCode.NETWORK_ERROR, Remedy.NONE, Recovery.RETRY),
    ENDED(OwnCode.NETWORK_ERROR, Remedy.NONE, Recovery.RETRY),
}

/** The data of an exception. */
internal data class Failure(
    val code: Code,
    val remedy: Remedy,
    val recovery: Recovery,
    val message: String,
    val cause: Throwable?,
    val retryAfter: Duration?,
    /** The service's clock in unix seconds; null if the error does not come from an answer of the service. */
    val serverTime: Long?,
    val situation: Situation? = null,
    /** Whether the request of a `send` may have taken effect. */
    val mayHaveHappened: Boolean = false,
)

internal val SynheartAuthException.remedy: Remedy get() = failure.remedy

/** Makes an exception with a code, and with the remedy and the recovery that belong to the code. */
internal fun failure(
    code: Code, message: String, cause: Throwable? = null, retryAfter: Duration? = null, serverTime: Long? = null,
): SynheartAuthException = exception(Failure(code, code.remedy, code.recovery, message, cause, retryAfter, serverTime))

/** Makes an exception for a situation, with the code, the remedy and the recovery that belong to the situation. */
internal fun failure(
    situation: Situation, message: String, cause: Throwable? = null, retryAfter: Duration? = null, serverTime: Long? = null,
): SynheartAuthException =
    exception(Failure(situation.code, situation.remedy, situation.recovery, message, cause, retryAfter, serverTime, situation))

internal fun invalidTransition(from: IdentityState, to: IdentityState): SynheartAuthException {
    val code = OwnCode.INVALID_STATE_TRANSITION
    val failure = Failure(code, code.remedy, code.recovery, "${from.wire} does not lead to ${to.wire}", null, null, null)
    return InvalidStateTransition(failure, from, to)
}

/** The same exception with another `mayHaveHappened`. An [InvalidStateTransition] stays as it is. */
internal fun SynheartAuthException.afterRequest(mayHaveHappened: Boolean): SynheartAuthException = when {
    failure.mayHaveHappened == mayHaveHappened || this is InvalidStateTransition -> this
    else -> exception(failure.copy(mayHaveHappened = mayHaveHappened)).also { it.stackTrace = stackTrace }
}

/** Makes an exception of the class that belongs to the code. Facades in other languages rely on this mapping of codes to classes. */
private fun exception(failure: Failure): SynheartAuthException = when (failure.code) {
    is ServiceCode -> ServerError(failure)
    OwnCode.NETWORK_ERROR -> NetworkError(failure)
    OwnCode.CHALLENGE_EXPIRED -> ChallengeExpired(failure)
    OwnCode.ATTESTATION_UNAVAILABLE -> AttestationUnavailable(failure)
    OwnCode.ATTESTATION_FAILED -> AttestationFailed(failure)
    OwnCode.KEY_INVALIDATED -> KeyInvalidated(failure)
    OwnCode.KEYSTORE_ERROR -> KeystoreError(failure)
    OwnCode.SECURE_ENCLAVE_ERROR -> SecureEnclaveError(failure)
    OwnCode.SIGNING_FAILED -> SigningFailed(failure)
    OwnCode.DEVICE_REVOKED -> DeviceRevoked(failure)
    OwnCode.CLOCK_SKEW -> ClockSkew(failure)
    OwnCode.ROTATION_FAILED -> RotationFailed(failure)
    OwnCode.NONCE_REPLAY -> NonceReplay(failure)
    OwnCode.ALREADY_REGISTERED -> AlreadyRegistered(failure)
    OwnCode.NOT_REGISTERED -> NotRegistered(failure)
    OwnCode.NOT_CONFIGURED -> NotConfigured(failure)
    OwnCode.REGISTRATION_IN_PROGRESS -> RegistrationInProgress(failure)
    OwnCode.CRYPTO_ERROR -> CryptoError(failure)
    OwnCode.STORAGE_ERROR -> StorageError(failure)
    OwnCode.ANSWER_TOO_LARGE -> AnswerTooLarge(failure)
    OwnCode.INVALID_STATE_TRANSITION -> InvalidStateTransition(failure)
}
