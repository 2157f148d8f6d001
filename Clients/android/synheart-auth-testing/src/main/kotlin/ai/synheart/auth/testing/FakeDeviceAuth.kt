package ai.synheart.auth.testing

import ai.synheart.auth.DeviceAuth
import ai.synheart.auth.DeviceStatus
import ai.synheart.auth.DeviceToken
import ai.synheart.auth.HttpResponse
import ai.synheart.auth.HttpRequest
import ai.synheart.auth.HttpTransport
import ai.synheart.auth.IdentityState
import ai.synheart.auth.KeyRotation
import ai.synheart.auth.Registration
import ai.synheart.auth.ResetReason
import ai.synheart.auth.RotationReason
import ai.synheart.auth.SignatureScheme
import ai.synheart.auth.StateChange
import ai.synheart.auth.StreamedBody
import ai.synheart.auth.SynheartAuthException
import kotlin.time.Duration.Companion.minutes
import kotlinx.coroutines.channels.BufferOverflow
import kotlinx.coroutines.flow.MutableSharedFlow
import kotlinx.coroutines.flow.MutableStateFlow
import kotlinx.coroutines.flow.SharedFlow
import kotlinx.coroutines.flow.StateFlow

/**
 * A [DeviceAuth] in memory, for tests of an app's own code: no phone, no service, no waiting. No service accepts its
 * signatures.
 *
 * ```
 * val auth = FakeDeviceAuth()
 * auth.answer = { HttpResponse(200, body = "[]".toByteArray()) }
 * auth.failNext("KEY_INVALIDATED")
 * ```
 */
public class FakeDeviceAuth : DeviceAuth {
    private val states = HashMap<String, MutableStateFlow<IdentityState>>()
    private val failures = ArrayDeque<SynheartAuthException>()
    private val changes = MutableSharedFlow<StateChange>(extraBufferCapacity = 64, onBufferOverflow = BufferOverflow.DROP_OLDEST)
    private val calledSoFar = ArrayList<String>()

    /** The id that a registration gets. */
    public var deviceId: String = "123e4567-e89b-42d3-a456-426614174000"

    /** The result of `registerDevice` for an unregistered device. */
    public var registration: Registration.Status = Registration.Status.REGISTERED

    /** Answers the requests of `send`. */
    public var answer: suspend (HttpRequest) -> HttpResponse = { HttpResponse(200) }

    /** The functions that were called, in order, such as `registerDevice`. */
    public val calls: List<String> get() = synchronized(this) { calledSoFar.toList() }

    /**
     * Makes the next call throw the error of this code, such as `NETWORK_ERROR`. Several calls queue errors for the following
     * calls.
     */
    public fun failNext(code: String, message: String? = null) {
        synchronized(this) { failures.addLast(SynheartAuthException.fromCode(code, message)) }
    }

    /** Puts an app's identity into a state, as a lost key or another process would. */
    public fun setState(appId: String, state: IdentityState) {
        val flow = flow(appId)
        val before = flow.value
        if (before == state) return
        flow.value = state
        changes.tryEmit(StateChange(appId, before, state))
    }

    private fun flow(appId: String) = synchronized(this) { states.getOrPut(appId) { MutableStateFlow(IdentityState.UNREGISTERED) } }

    private fun called(name: String) {
        val failure = synchronized(this) {
            calledSoFar.add(name)
            failures.removeFirstOrNull()
        }
        if (failure != null) throw failure
    }

    private fun requireRegistered(appId: String) {
        when (flow(appId).value) {
            IdentityState.REGISTERED -> {}
            IdentityState.KEY_INVALID -> throw SynheartAuthException.fromCode("KEY_INVALIDATED")
            else -> throw SynheartAuthException.fromCode("NOT_REGISTERED")
        }
    }

    override suspend fun isRegistered(appId: String): Boolean {
        called("isRegistered")
        return flow(appId).value == IdentityState.REGISTERED
    }

    override suspend fun registerDevice(appId: String, joins: Boolean): Registration {
        called("registerDevice")
        if (flow(appId).value == IdentityState.REGISTERED) return Registration(Registration.Status.ALREADY_REGISTERED, deviceId)
        setState(appId, if (registration == Registration.Status.PENDING) IdentityState.REGISTERING else IdentityState.REGISTERED)
        return Registration(registration, deviceId)
    }

    override suspend fun getDeviceId(appId: String): String? {
        called("getDeviceId")
        return deviceId.takeIf { flow(appId).value != IdentityState.UNREGISTERED }
    }

    override suspend fun state(appId: String): IdentityState {
        called("state")
        return flow(appId).value
    }

    override suspend fun stateFlow(appId: String): StateFlow<IdentityState> {
        called("stateFlow")
        return flow(appId)
    }

    override val stateChanges: SharedFlow<StateChange> get() = changes

    override suspend fun signRequest(
        appId: String, method: String, path: String, body: ByteArray, scheme: SignatureScheme?,
    ): Map<String, String> {
        called("signRequest")
        return headers(appId)
    }

    override suspend fun sign(
        appId: String, method: String, url: String, body: ByteArray, scheme: SignatureScheme?,
    ): Map<String, String> {
        called("sign")
        return headers(appId)
    }

    override suspend fun sign(appId: String, method: String, url: String, streamedBody: StreamedBody): Map<String, String> {
        called("sign")
        return headers(appId)
    }

    private fun headers(appId: String): Map<String, String> {
        requireRegistered(appId)
        return mapOf(
            "X-App-ID" to appId, "X-Device-ID" to deviceId, "X-Synheart-Signature" to "c2lnbmF0dXJl", "X-Synheart-Timestamp" to "1790000000",
            "X-Synheart-Nonce" to "123e4567-e89b-42d3-a456-426614174001", "X-Synheart-Sig-Version" to "1",
        )
    }

    /** Returns the answer of [transport]. Without a transport, returns the answer of the property `answer`. */
    override suspend fun send(appId: String, request: HttpRequest, scheme: SignatureScheme?, transport: HttpTransport?): HttpResponse {
        called("send")
        requireRegistered(appId)
        return transport?.send(request) ?: answer(request)
    }

    override suspend fun deviceToken(appId: String, audience: String?): DeviceToken {
        called("deviceToken")
        requireRegistered(appId)
        return DeviceToken("token", 5.minutes)
    }

    override suspend fun status(appId: String): DeviceStatus {
        called("status")
        requireRegistered(appId)
        return DeviceStatus(deviceId, DeviceStatus.Status.REGISTERED, 1_790_000_000, null, 0, "thumbprint", false, 1_790_000_000)
    }

    override suspend fun rotateKey(appId: String, reason: RotationReason): KeyRotation {
        called("rotateKey")
        requireRegistered(appId)
        return KeyRotation(deviceId, 1_790_000_000)
    }

    override suspend fun resetDeviceIdentity(appId: String, reason: ResetReason) {
        called("resetDeviceIdentity")
        setState(appId, IdentityState.UNREGISTERED)
    }

    override suspend fun correctClockSkew(serverTimestamp: Double, appId: String?) {
        called("correctClockSkew")
    }

    override suspend fun maintain(appId: String) {
        called("maintain")
    }
}
