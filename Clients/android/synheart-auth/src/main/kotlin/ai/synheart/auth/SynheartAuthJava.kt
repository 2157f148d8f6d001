package ai.synheart.auth

import ai.synheart.auth.concurrency.WORK
import java.io.Closeable
import java.util.concurrent.CompletableFuture
import kotlin.time.Duration.Companion.milliseconds
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.SupervisorJob
import kotlinx.coroutines.flow.launchIn
import kotlinx.coroutines.flow.onEach
import kotlinx.coroutines.launch

/**
 * [DeviceAuth] for Java: each suspending function returns a [CompletableFuture].
 *
 * A future fails with [SynheartAuthException]. It completes on a background thread;
 * `thenAcceptAsync(…, ContextCompat.getMainExecutor(context))` continues on the thread that may change views. Cancelling it ends
 * the wait; a registration, rotation or reset continues.
 *
 * @property auth the client, or `FakeDeviceAuth` of `synheart-auth-testing` in an app's own tests
 */
public class SynheartAuthJava(public val auth: DeviceAuth) {
    private val scope = CoroutineScope(SupervisorJob() + WORK)

    /** See [DeviceAuth.isRegistered]. */
    public fun isRegistered(appId: String): CompletableFuture<Boolean> = future { auth.isRegistered(appId) }

    /** See [DeviceAuth.registerDevice]. */
    public fun registerDevice(appId: String): CompletableFuture<Registration> = future { auth.registerDevice(appId) }

    /** See [DeviceAuth.getDeviceId]. The value may be null. */
    public fun getDeviceId(appId: String): CompletableFuture<String?> = future { auth.getDeviceId(appId) }

    /** See [DeviceAuth.state]. */
    public fun state(appId: String): CompletableFuture<IdentityState> = future { auth.state(appId) }

    /** See [DeviceAuth.signRequest]. */
    @JvmOverloads
    public fun signRequest(
        appId: String, method: String, path: String, body: ByteArray = ByteArray(0),
    ): CompletableFuture<Map<String, String>> = future { auth.signRequest(appId, method, path, body) }

    /** See [DeviceAuth.sign]. */
    @JvmOverloads
    public fun sign(
        appId: String, method: String, url: String, body: ByteArray = ByteArray(0),
    ): CompletableFuture<Map<String, String>> = future { auth.sign(appId, method, url, body) }

    /** See [DeviceAuth.sign]. */
    public fun sign(appId: String, method: String, url: String, streamedBody: StreamedBody): CompletableFuture<Map<String, String>> =
        future { auth.sign(appId, method, url, streamedBody) }

    /** See [DeviceAuth.send]. [SynheartAuthJava.Companion.request] makes the request. */
    public fun send(appId: String, request: HttpRequest): CompletableFuture<HttpResponse> = future { auth.send(appId, request) }

    /** See [DeviceAuth.deviceToken]. */
    @JvmOverloads
    public fun deviceToken(appId: String, audience: String? = null): CompletableFuture<DeviceToken> =
        future { auth.deviceToken(appId, audience) }

    /** See [DeviceAuth.status]. */
    public fun status(appId: String): CompletableFuture<DeviceStatus> = future { auth.status(appId) }

    /** See [DeviceAuth.rotateKey]. */
    @JvmOverloads
    public fun rotateKey(appId: String, reason: RotationReason = RotationReason.SCHEDULED): CompletableFuture<KeyRotation> =
        future { auth.rotateKey(appId, reason) }

    /** See [DeviceAuth.resetDeviceIdentity]. The value is null. */
    public fun resetDeviceIdentity(appId: String, reason: ResetReason): CompletableFuture<Void?> = future {
        auth.resetDeviceIdentity(appId, reason)
        null
    }

    /** See [DeviceAuth.correctClockSkew]. The value is null. */
    public fun correctClockSkew(serverTimestamp: Double): CompletableFuture<Void?> = future {
        auth.correctClockSkew(serverTimestamp)
        null
    }

    /** See [DeviceAuth.maintain]. The value is null. */
    public fun maintain(appId: String): CompletableFuture<Void?> = future {
        auth.maintain(appId)
        null
    }

    /** Calls the listener on a background thread for each change of state from now on, until the result is closed. */
    public fun addStateListener(listener: StateListener): Closeable {
        val job = auth.stateChanges.onEach { listener.onChange(it) }.launchIn(scope)
        return Closeable { job.cancel() }
    }

    /** Receives changes of state. Must not throw: the app would end. */
    public fun interface StateListener {
        /** A change. */
        public fun onChange(change: StateChange)
    }

    private fun <Value> future(body: suspend () -> Value): CompletableFuture<Value> {
        val future = CompletableFuture<Value>()
        val job = scope.launch {
            try {
                future.complete(body())
            } catch (error: Throwable) {
                future.completeExceptionally(error)
            }
        }
        // End the job also when the caller cancels the future.
        future.whenComplete { _, _ -> job.cancel() }
        return future
    }

    /** Replaces Kotlin's durations and default arguments for Java. */
    public companion object {
        private const val DEADLINE_MILLIS = 30_000L

        /** A request. See [HttpRequest]. */
        @JvmStatic
        @JvmOverloads
        public fun request(
            method: String, url: String, headers: Map<String, String> = emptyMap(), body: ByteArray = ByteArray(0),
            deadlineMillis: Long = DEADLINE_MILLIS, maximumAnswer: Int = USUAL_MAXIMUM_ANSWER, streamsAnswer: Boolean = false,
        ): HttpRequest = HttpRequest(method, url, headers.toList(), body, deadlineMillis.milliseconds, maximumAnswer, streamsAnswer)

        /** A request with a streamed body. See [HttpRequest]. */
        @JvmStatic
        @JvmOverloads
        public fun request(
            method: String, url: String, headers: Map<String, String>, streamedBody: StreamedBody, deadlineMillis: Long = DEADLINE_MILLIS,
            maximumAnswer: Int = USUAL_MAXIMUM_ANSWER, streamsAnswer: Boolean = false,
        ): HttpRequest = HttpRequest(method, url, headers.toList(), streamedBody, deadlineMillis.milliseconds, maximumAnswer, streamsAnswer)

        /** How long to wait before another attempt, in milliseconds; null if neither the service nor the client knows. */
        @JvmStatic
        public fun retryAfterMillis(error: SynheartAuthException): Long? = error.retryAfter?.inWholeMilliseconds

        /** The rest of a token's life, in milliseconds. */
        @JvmStatic
        public fun remainingMillis(token: DeviceToken): Long = token.remaining.inWholeMilliseconds
    }
}
