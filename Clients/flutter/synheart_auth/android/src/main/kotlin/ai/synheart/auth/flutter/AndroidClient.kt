package ai.synheart.auth.flutter

import ai.synheart.auth.AttestationProvider
import ai.synheart.auth.SynheartAuthException
import ai.synheart.auth.android.AndroidConfiguration
import ai.synheart.auth.android.AndroidProof
import android.content.Context

/** The Kotlin client with Android's own key store, storage and attestation. */
internal fun androidClient(context: Context): AuthClient =
    SharedClient { auth, settings -> auth.configure(configuration(settings).with(context)) }

internal fun configuration(settings: Settings) = AndroidConfiguration(
    baseUrl = settings.baseUrl,
    cloudProjectNumber = settings.cloudProjectNumber,
    proof = when (settings.androidProof) {
        "playIntegrity" -> AndroidProof.PLAY_INTEGRITY
        "keyAttestation" -> AndroidProof.KEY_ATTESTATION
        "both" -> AndroidProof.BOTH
        else -> AndroidProof.EITHER
    },
    attestation = if (settings.developmentMode) developmentAttestation() else null,
    origins = settings.origins,
    aliases = settings.aliases,
    rotatesAutomatically = settings.rotatesAutomatically,
    scheme = settings.scheme,
)

/**
 * The development mode of the Kotlin module. Its release build does not contain the class, so this plugin, which is compiled
 * against both builds, looks it up by name.
 */
private fun developmentAttestation(): AttestationProvider =
    try {
        Class.forName("ai.synheart.auth.DevelopmentAttestation").getField("INSTANCE").get(null) as AttestationProvider
    } catch (_: ReflectiveOperationException) {
        throw SynheartAuthException.fromCode("NOT_CONFIGURED", "a release build contains no development mode")
    }
