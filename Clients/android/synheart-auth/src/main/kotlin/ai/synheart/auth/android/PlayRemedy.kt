package ai.synheart.auth.android

import ai.synheart.auth.SynheartAuthException
import android.content.Intent
import android.net.Uri
import com.google.android.play.core.integrity.IntegrityServiceException
import com.google.android.play.core.integrity.StandardIntegrityException
import com.google.android.play.core.integrity.model.IntegrityErrorCode

/** An action for the phone's user if Google Play gave no token. */
public enum class PlayRemedy(private val packageName: String) {
    /** Update the Play Store, or install it. */
    UPDATE_PLAY_STORE("com.android.vending"),

    /** Update Google Play services, or install them. */
    UPDATE_PLAY_SERVICES("com.google.android.gms"),

    /** Open the Play Store and sign in with an account. */
    SIGN_IN("com.android.vending"),
    ;

    /** An intent for the page of the Play Store where the user can do this. A phone without a Play Store has no activity for it. */
    public fun intent(): Intent = Intent(Intent.ACTION_VIEW, Uri.parse("market://details?id=$packageName")).addFlags(Intent.FLAG_ACTIVITY_NEW_TASK)

    internal companion object {
        private const val CAUSES = 8

        fun of(error: Throwable): PlayRemedy? = generateSequence(error) { it.cause }.take(CAUSES).firstNotNullOfOrNull { cause ->
            when (cause) {
                is StandardIntegrityException -> of(cause.errorCode)
                is IntegrityServiceException -> of(cause.errorCode)
                else -> null
            }
        }

        private fun of(code: Int): PlayRemedy? = when (code) {
            IntegrityErrorCode.API_NOT_AVAILABLE, IntegrityErrorCode.PLAY_STORE_NOT_FOUND, IntegrityErrorCode.CANNOT_BIND_TO_SERVICE,
            IntegrityErrorCode.PLAY_STORE_VERSION_OUTDATED,
            -> UPDATE_PLAY_STORE
            IntegrityErrorCode.PLAY_SERVICES_NOT_FOUND, IntegrityErrorCode.PLAY_SERVICES_VERSION_OUTDATED -> UPDATE_PLAY_SERVICES
            IntegrityErrorCode.PLAY_STORE_ACCOUNT_NOT_FOUND -> SIGN_IN
            else -> null
        }
    }
}

/** The user's remedy for an error of a registration or rotation; null if there is none, or if the app lacks Google's library. */
public fun SynheartAuthException.playRemedy(): PlayRemedy? = try {
    PlayRemedy.of(this)
} catch (_: LinkageError) {
    null
}
