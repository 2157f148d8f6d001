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
import ai.synheart.auth.SynheartAuthException
import java.util.concurrent.LinkedBlockingQueue
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.flow.MutableSharedFlow

/** A client whose calls succeed at once, fail with [failure], or wait for [gate]. */
internal class FakeClient : AuthClient {
    /** The calls until now: the method and its arguments as the client got them. */
    val calls = LinkedBlockingQueue<List<Any?>>()

    /** The error that the calls throw. */
    @Volatile
    var failure: SynheartAuthException? = null

    /** Calls wait until this completes; null: they do not wait. */
    @Volatile
    var gate: CompletableDeferred<Unit>? = null

    /** The response of `send`. */
    @Volatile
    var answer = HttpResponse(200, listOf("Content-Type" to "text/plain", "X-Two" to "a", "X-Two" to "b"), byteArrayOf(1, 2, 3))

    override val stateChanges = MutableSharedFlow<StateChange>(extraBufferCapacity = 16)

    private suspend fun begin(vararg call: Any?) {
        calls.put(call.toList())
        gate?.await()
        failure?.let { throw it }
    }

    override fun configure(settings: Settings) {
        calls.put(
            listOf(
                "configure", settings.baseUrl, settings.origins, settings.aliases, settings.scheme, settings.rotatesAutomatically,
                settings.cloudProjectNumber, settings.androidProof, settings.developmentMode,
            ),
        )
        failure?.let { throw it }
    }

    override suspend fun isRegistered(appId: String): Boolean {
        begin("isRegistered", appId)
        return true
    }

    override suspend fun registerDevice(appId: String, joins: Boolean): Registration {
        begin("registerDevice", appId, joins)
        return Registration(Registration.Status.ALREADY_REGISTERED, DEVICE)
    }

    override suspend fun getDeviceId(appId: String): String? {
        begin("getDeviceId", appId)
        return null
    }

    override suspend fun state(appId: String): IdentityState {
        begin("getState", appId)
        return IdentityState.KEY_INVALID
    }

    override suspend fun signRequest(
        appId: String, method: String, path: String, body: ByteArray, scheme: SignatureScheme?,
    ): Map<String, String> {
        begin("signRequest", appId, method, path, body.toList(), scheme)
        return mapOf("X-Synheart-Nonce" to "n", "X-Synheart-Signature" to "s")
    }

    override suspend fun sign(
        appId: String, method: String, url: String, body: ByteArray, scheme: SignatureScheme?,
    ): Map<String, String> {
        begin("sign", appId, method, url, body.toList(), scheme)
        return mapOf("Signature" to "s")
    }

    override suspend fun send(appId: String, request: HttpRequest, scheme: SignatureScheme?): HttpResponse {
        begin(
            "send", appId, request.method, request.url, request.headers, request.body.toList(), request.deadline,
            request.maximumAnswer, scheme,
        )
        return answer
    }

    override suspend fun deviceToken(appId: String, audience: String?): DeviceToken {
        begin("deviceToken", appId, audience)
        return DeviceToken("a.b.c", 599.seconds)
    }

    override suspend fun rotateKey(appId: String, reason: RotationReason): KeyRotation {
        begin("rotateKey", appId, reason)
        return KeyRotation(DEVICE, 1_700_000_000)
    }

    override suspend fun resetDeviceIdentity(appId: String, reason: ResetReason) = begin("resetDeviceIdentity", appId, reason)

    override suspend fun maintain(appId: String) = begin("maintain", appId)

    override suspend fun correctClockSkew(serverTimestamp: Double, appId: String?) =
        begin("correctClockSkew", serverTimestamp, appId)

    companion object {
        const val DEVICE = "00000000-0000-4000-8000-000000000001"
    }
}
