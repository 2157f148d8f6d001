package ai.synheart.auth.android

import ai.synheart.auth.DeviceKeyStoreException
import ai.synheart.auth.DeviceKeyStoreException.Code
import android.os.Build
import android.security.KeyStoreException
import android.security.keystore.BackendBusyException
import android.security.keystore.KeyPermanentlyInvalidatedException
import android.security.keystore.StrongBoxUnavailableException
import android.security.keystore.UserNotAuthenticatedException
import java.security.ProviderException

/** The meaning of a failure of the Android Keystore: for an existing key, and for one that was to be made. */
internal enum class KeystoreFault(
    /** The meaning for a key that should exist. */
    val code: Code,
) {
    /** The system permanently refuses the key. */
    FINAL(Code.INVALIDATED),

    /** No retry is documented. An existing key is suspected to be lost. */
    SUSPICIOUS(Code.FAILED),

    /** The Keystore is locked, busy or restarting. The key may be intact. */
    TEMPORARY(Code.UNAVAILABLE),

    /** An operation was dropped in favor of others. It can be started again at once. */
    OPERATION_DROPPED(Code.UNAVAILABLE),

    /** The hardware can do this only after an update of the system. Attempts before the update fail. */
    AFTER_UPDATE(Code.UNAVAILABLE),

    /** The hardware cannot do this. */
    IMPOSSIBLE(Code.FAILED),
    ;

    companion object {
        private const val CAUSES = 8
        private const val TOO_MANY_OPERATIONS = -31

        /** `ERROR_DEVICE_REQUIRES_UPGRADE_FOR_ATTESTATION`, a constant that Android hides although `numericErrorCode` returns it. */
        private const val REQUIRES_UPGRADE = 17

        /**
         * The meaning of a failure. From API 33 on, the numeric code and the platform's own retry policy decide. In earlier versions the
         * class of the cause is hidden, so the message decides.
         */
        fun of(error: Throwable): KeystoreFault {
            if (error is KeyPermanentlyInvalidatedException) return FINAL
            if (error is UserNotAuthenticatedException) return TEMPORARY
            if (Build.VERSION.SDK_INT >= 28 && error is StrongBoxUnavailableException) return IMPOSSIBLE
            if (Build.VERSION.SDK_INT >= 31 && error is BackendBusyException) return TEMPORARY
            // API 31 and 32 say so without a cause if the attestation keys are used up for now, or their supplier cannot be reached.
            if (Build.VERSION.SDK_INT in 31..32 && error is ProviderException && PROVISIONING_MESSAGES.any { error.message == it }) {
                return TEMPORARY
            }
            val cause = generateSequence(error) { it.cause }.take(CAUSES)
                .firstOrNull { it.javaClass.name == "android.security.KeyStoreException" } ?: return SUSPICIOUS
            return if (Build.VERSION.SDK_INT >= 33) byCode(cause) else byMessage(cause.message.orEmpty())
        }

        /** The error of the client for a failure. */
        fun exception(error: Exception): DeviceKeyStoreException {
            val fault = of(error)
            val message = if (fault.code == Code.UNAVAILABLE) "the Keystore is locked or busy" else "the Keystore failed"
            return DeviceKeyStoreException(fault.code, message, error)
        }

        private fun byCode(error: Throwable): KeystoreFault {
            if (Build.VERSION.SDK_INT < 33) return SUSPICIOUS
            if (error !is KeyStoreException) return SUSPICIOUS
            val number = error.numericErrorCode
            if (number == REQUIRES_UPGRADE) return AFTER_UPDATE
            if (number == KeyStoreException.ERROR_KEY_OPERATION_EXPIRED) return OPERATION_DROPPED
            if (error.isTransientFailure) {
                return if (error.retryPolicy == KeyStoreException.RETRY_AFTER_NEXT_REBOOT) AFTER_UPDATE else TEMPORARY
            }
            return when (number) {
                // ERROR_INTERNAL_SYSTEM_ERROR also occurs when the daemon restarts.
                KeyStoreException.ERROR_USER_AUTHENTICATION_REQUIRED, KeyStoreException.ERROR_KEYSTORE_UNINITIALIZED,
                KeyStoreException.ERROR_INTERNAL_SYSTEM_ERROR,
                -> TEMPORARY
                KeyStoreException.ERROR_UNIMPLEMENTED, KeyStoreException.ERROR_INCORRECT_USAGE,
                KeyStoreException.ERROR_ID_ATTESTATION_FAILURE, KeyStoreException.ERROR_ATTESTATION_CHALLENGE_TOO_LARGE,
                // Google's provisioning server refused this device.
                KeyStoreException.ERROR_ATTESTATION_KEYS_UNAVAILABLE,
                -> IMPOSSIBLE
                // Too many operations and a damaged key have this public code. Only the internal code distinguishes them.
                KeyStoreException.ERROR_KEYMINT_FAILURE -> if (internalCode(error) == TOO_MANY_OPERATIONS) TEMPORARY else SUSPICIOUS
                else -> SUSPICIOUS
            }
        }

        private val internal = Regex("internal Keystore code: (-?[0-9]{1,6})\\)$")

        private fun internalCode(error: Throwable): Int? = internal.find(error.toString())?.groupValues?.get(1)?.toIntOrNull()

        private fun byMessage(message: String): KeystoreFault = when {
            message.startsWith("Invalid operation handle") -> OPERATION_DROPPED
            TEMPORARY_MESSAGES.any { message.startsWith(it) } || message.substringBefore(' ') in TEMPORARY_NUMBERS -> TEMPORARY
            else -> SUSPICIOUS
        }

        private val PROVISIONING_MESSAGES = listOf("Failed to provision new attestation keys.", "Failed to talk to RemoteProvisioner")

        private val TEMPORARY_MESSAGES = listOf(
            "User authentication required", "User not authenticated", "Device locked", "Keystore not initialized", "System error",
            "Too many operations",
        )

        /**
         * Codes that a message names only by number: not authenticated, too many operations, busy, not reachable, rate limit,
         * no application id, locked.
         */
        private val TEMPORARY_NUMBERS = setOf("-26", "-31", "-48", "-49", "-54", "-65", "-72")
    }
}
