package ai.synheart.auth.flutter

import ai.synheart.auth.DeviceToken
import ai.synheart.auth.HttpResponse
import ai.synheart.auth.HttpRequest
import ai.synheart.auth.IdentityState
import ai.synheart.auth.KeyRotation
import ai.synheart.auth.Registration
import ai.synheart.auth.ResetReason
import ai.synheart.auth.RotationReason
import ai.synheart.auth.SignatureScheme
import ai.synheart.auth.StateChange
import ai.synheart.auth.SynheartAuth
import kotlinx.coroutines.flow.Flow

/** The arguments of `configure`. */
internal data class Settings(
    val baseUrl: String,
    val origins: Set<String>,
    val aliases: Set<String>,
    val scheme: SignatureScheme,
    val rotatesAutomatically: Boolean,
    val cloudProjectNumber: Long?,
    /** The name of the proof on the channel: `playIntegrity`, `keyAttestation`, `both` or `either`. */
    val androidProof: String,
    val developmentMode: Boolean,
)

/**
 * Dart's configuration in this process. All engines, isolates and hot restarts share one client. So a second `configure` with the
 * same values changes nothing, and one with other values is refused.
 */
internal class Configured {
    private var settings: Settings? = null

    /** Applies [settings] by [apply], unless they are applied already. After a failure of [apply], a later call applies anew. */
    fun once(settings: Settings, apply: () -> Unit) = synchronized(this) {
        val before = this.settings
        if (before == settings) return@synchronized
        if (before != null) throw ConfiguredOtherwise("this app is configured already, with another ${before.difference(settings)}")
        apply()
        this.settings = settings
    }

    companion object {
        /** The configuration of this process. */
        val process = Configured()
    }
}

/** `configure` was called again, with other values. */
internal class ConfiguredOtherwise(override val message: String) : Exception(message)

private fun Settings.difference(other: Settings): String = listOf(
    "baseUrl" to (baseUrl == other.baseUrl), "origins" to (origins == other.origins), "aliases" to (aliases == other.aliases),
    "scheme" to (scheme == other.scheme), "rotatesAutomatically" to (rotatesAutomatically == other.rotatesAutomatically),
    "cloudProjectNumber" to (cloudProjectNumber == other.cloudProjectNumber),
    "androidProof" to (androidProof == other.androidProof), "developmentMode" to (developmentMode == other.developmentMode),
).filter { !it.second }.joinToString { it.first }

/** The part of the Kotlin client that the plugin calls. Tests replace it. */
internal interface AuthClient {
    fun configure(settings: Settings)
    suspend fun isRegistered(appId: String): Boolean
    suspend fun registerDevice(appId: String, joins: Boolean): Registration
    suspend fun getDeviceId(appId: String): String?
    suspend fun state(appId: String): IdentityState
    suspend fun signRequest(
        appId: String, method: String, path: String, body: ByteArray, scheme: SignatureScheme?,
    ): Map<String, String>
    suspend fun sign(
        appId: String, method: String, url: String, body: ByteArray, scheme: SignatureScheme?,
    ): Map<String, String>
    suspend fun send(appId: String, request: HttpRequest, scheme: SignatureScheme?): HttpResponse
    suspend fun deviceToken(appId: String, audience: String?): DeviceToken
    suspend fun rotateKey(appId: String, reason: RotationReason): KeyRotation
    suspend fun resetDeviceIdentity(appId: String, reason: ResetReason)
    suspend fun maintain(appId: String)
    suspend fun correctClockSkew(serverTimestamp: Double, appId: String?)
    val stateChanges: Flow<StateChange>
}

/** The Kotlin client itself: by default the instance that the app's own Kotlin code shares. */
internal class SharedClient(
    private val auth: SynheartAuth = SynheartAuth.shared,
    private val applyTo: (SynheartAuth, Settings) -> Unit,
) : AuthClient {
    override fun configure(settings: Settings) = applyTo(auth, settings)
    override suspend fun isRegistered(appId: String) = auth.isRegistered(appId)
    override suspend fun registerDevice(appId: String, joins: Boolean) = auth.registerDevice(appId, joins)
    override suspend fun getDeviceId(appId: String) = auth.getDeviceId(appId)
    override suspend fun state(appId: String) = auth.state(appId)
    override suspend fun signRequest(
        appId: String, method: String, path: String, body: ByteArray, scheme: SignatureScheme?,
    ) = auth.signRequest(appId, method, path, body, scheme)
    override suspend fun sign(
        appId: String, method: String, url: String, body: ByteArray, scheme: SignatureScheme?,
    ) = auth.sign(appId, method, url, body, scheme)
    override suspend fun send(appId: String, request: HttpRequest, scheme: SignatureScheme?) =
        auth.send(appId, request, scheme)
    override suspend fun deviceToken(appId: String, audience: String?) = auth.deviceToken(appId, audience)
    override suspend fun rotateKey(appId: String, reason: RotationReason) = auth.rotateKey(appId, reason)
    override suspend fun resetDeviceIdentity(appId: String, reason: ResetReason) =
        auth.resetDeviceIdentity(appId, reason)
    override suspend fun maintain(appId: String) = auth.maintain(appId)
    override suspend fun correctClockSkew(serverTimestamp: Double, appId: String?) =
        auth.correctClockSkew(serverTimestamp, appId)
    override val stateChanges: Flow<StateChange> get() = auth.stateChanges
}
