package ai.synheart.auth.android

import android.os.Build
import android.security.KeyStoreException
import android.security.keystore.BackendBusyException
import android.security.keystore.KeyPermanentlyInvalidatedException
import android.security.keystore.StrongBoxUnavailableException
import android.security.keystore.UserNotAuthenticatedException
import java.security.UnrecoverableKeyException

/** What a failure of the Android Keystore means. */
internal enum class KeystoreFault {
    /** The key does not exist any more, or the system refuses it for good. */
    LOST,

    /** The key cannot be used. If it stays so while other keys work, it is lost. */
    UNUSABLE,

    /** The Keystore is locked or busy, or could not be reached. The key may be intact. */
    BUSY,

    /** The hardware cannot do this, and will not be able to later. */
    IMPOSSIBLE,

    /** An operation was dropped in favour of others. It can be started again at once. */
    OPERATION_DROPPED,

    /** Anything else. */
    OTHER,
    ;

    companion object {
        private const val CAUSES = 8

        /**
         * Before API 33 the daemon's code stands only in the message, and the class of the cause is hidden. A failure that this
         * does not know is never [LOST].
         */
        fun of(error: Throwable): KeystoreFault {
            if (error is KeyPermanentlyInvalidatedException) return LOST
            if (error is UserNotAuthenticatedException) return BUSY
            if (Build.VERSION.SDK_INT >= 28 && error is StrongBoxUnavailableException) return IMPOSSIBLE
            val cause = generateSequence(error) { it.cause }.take(CAUSES)
                .firstOrNull { it.javaClass.name == "android.security.KeyStoreException" }
            if (cause != null) return byMessage(cause) ?: byCode(cause)
            if (Build.VERSION.SDK_INT >= 31 && error is BackendBusyException) return BUSY
            // Without a cause of the daemon: "User changed or deleted their auth credentials", or a key of another form.
            if (error is UnrecoverableKeyException) return UNUSABLE
            return OTHER
        }

        private fun byMessage(cause: Throwable): KeystoreFault? = when {
            cause.says("Key not found") || cause.says("Key permanently invalidated") -> LOST
            cause.says("Key blob corrupted") || cause.says("Invalid key blob") -> UNUSABLE
            cause.says("Invalid operation handle") -> OPERATION_DROPPED
            else -> null
        }

        private fun Throwable.says(text: String): Boolean = message?.contains(text, ignoreCase = true) ?: false

        private fun byCode(cause: Throwable): KeystoreFault {
            if (Build.VERSION.SDK_INT < 33) return BUSY
            val error = cause as? KeyStoreException ?: return BUSY
            return when (error.numericErrorCode) {
                KeyStoreException.ERROR_KEY_DOES_NOT_EXIST -> LOST
                KeyStoreException.ERROR_KEY_CORRUPTED -> UNUSABLE
                KeyStoreException.ERROR_KEY_OPERATION_EXPIRED -> OPERATION_DROPPED
                KeyStoreException.ERROR_UNIMPLEMENTED,
                KeyStoreException.ERROR_INCORRECT_USAGE,
                KeyStoreException.ERROR_ID_ATTESTATION_FAILURE,
                KeyStoreException.ERROR_ATTESTATION_CHALLENGE_TOO_LARGE,
                KeyStoreException.ERROR_DEVICE_REQUIRES_UPGRADE_FOR_ATTESTATION,
                -> IMPOSSIBLE
                // Never again: Google's provisioning server refused this device.
                KeyStoreException.ERROR_ATTESTATION_KEYS_UNAVAILABLE ->
                    if (Build.VERSION.SDK_INT >= 34 && error.retryPolicy == KeyStoreException.RETRY_NEVER) IMPOSSIBLE else BUSY
                else -> BUSY
            }
        }
    }
}
