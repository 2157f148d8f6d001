package ai.synheart.auth

import ai.synheart.auth.concurrency.WORK
import ai.synheart.auth.concurrency.closed
import ai.synheart.auth.identity.AuthenticatedSend
import ai.synheart.auth.identity.ClockOffset
import ai.synheart.auth.identity.DeviceIdentity
import ai.synheart.auth.identity.IdentityContext
import ai.synheart.auth.identity.IdentityEvent
import ai.synheart.auth.identity.MAXIMUM_CLOCK_OFFSET_MILLIS
import ai.synheart.auth.identity.RequestSigner
import ai.synheart.auth.identity.SignedMessage
import ai.synheart.auth.identity.StateChanges
import ai.synheart.auth.identity.existingRegistration
import ai.synheart.auth.identity.isAuthOrigin
import ai.synheart.auth.identity.isSuspicion
import ai.synheart.auth.identity.signing
import ai.synheart.auth.wire.RequestUrl
import ai.synheart.auth.wire.isAppId
import java.io.Closeable
import kotlin.math.abs
import kotlin.math.roundToLong
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.SupervisorJob
import kotlinx.coroutines.cancel
import kotlinx.coroutines.flow.SharedFlow
import kotlinx.coroutines.flow.StateFlow
import kotlinx.coroutines.flow.asSharedFlow
import kotlinx.coroutines.flow.asStateFlow
import kotlinx.coroutines.isActive
import kotlinx.coroutines.withContext

/**
 * A hardware-backed identity of this device for each app, and the signatures that prove it.
 *
 * Configure once at launch, register, then sign:
 *
 * ```
 * SynheartAuth.shared.configure(context, AndroidConfiguration("https://auth.example.com"))
 * SynheartAuth.shared.registerDevice("com.example.app")
 * val headers = SynheartAuth.shared.signRequest("com.example.app", "POST", "/v1/readings", body)
 * ```
 *
 * Every function can be called on any thread, the main thread included. It throws [SynheartAuthException], and
 * `CancellationException` once its caller is cancelled. A registration, rotation or reset continues after its caller is
 * cancelled, because other callers may have joined it.
 */
public class SynheartAuth(private var configuration: Configuration? = null) : DeviceAuth, Closeable {
    private val scope = CoroutineScope(SupervisorJob() + WORK)
    private val changes = StateChanges()

    // This object's monitor guards `identities` and `configuration`.
    private val identities = HashMap<String, DeviceIdentity>()

    init {
        configuration?.prepare()
    }

    /**
     * Sets the configuration. Changes no identity. A second call with the same values does nothing.
     *
     * @throws SynheartAuthException.NotConfigured with recovery `none` if this client is configured with other values. Another
     *   configuration needs another client
     */
    public fun configure(configuration: Configuration) {
        synchronized(this) {
            val before = this.configuration
            if (before == null) {
                this.configuration = configuration
            } else if (before.values != configuration.values) {
                throw failure(Situation.CONFIGURED_OTHERWISE, "this client is configured already, with other values: make another SynheartAuth")
            } else {
                return
            }
        }
        configuration.prepare()
    }

    override suspend fun isRegistered(appId: String): Boolean = background(appId) { identity ->
        try {
            identity.context.existingRegistration(identity.context.ledger.load()) != null
        } catch (error: SynheartAuthException) {
            // A first sign that the key is lost (`isSuspicion`) changes nothing: the device is still registered.
            if (error.isSuspicion) true else throw error
        }
    }

    override suspend fun registerDevice(appId: String, joins: Boolean): Registration = background(appId) { it.register(joins) }

    override suspend fun getDeviceId(appId: String): String? = background(appId) { identity ->
        val record = identity.context.ledger.load()
        record.deviceId.takeIf { record.state != IdentityState.UNREGISTERED }
    }

    override suspend fun state(appId: String): IdentityState = background(appId) { it.context.ledger.load().state }

    override suspend fun stateFlow(appId: String): StateFlow<IdentityState> = background(appId) {
        // The flow exists before the record is read, so that it gets the state that is read and each later change.
        changes.flow(appId).apply { it.context.ledger.load() }.asStateFlow()
    }

    override val stateChanges: SharedFlow<StateChange> = changes.changes.asSharedFlow()

    override suspend fun signRequest(
        appId: String, method: String, path: String, body: ByteArray, scheme: SignatureScheme?,
    ): Map<String, String> = background(appId) { identity ->
        if (identity.context.scheme(scheme, identity.context.ledger.load()) == SignatureScheme.TWO) {
            throw failure(OwnCode.SIGNING_FAILED, "scheme 2 signs the whole URL: use send or sign")
        }
        RequestSigner(identity.context).sign(method, path, body).headers.toMap()
    }

    override suspend fun sign(
        appId: String, method: String, url: String, body: ByteArray, scheme: SignatureScheme?,
    ): Map<String, String> = sign(appId, url, scheme) { used, place -> sign(used, method, place, body) }

    override suspend fun sign(appId: String, method: String, url: String, streamedBody: StreamedBody): Map<String, String> =
        sign(appId, url, null) { used, place -> sign(used, method, place) { MeasuredBody.of(streamedBody) } }

    private suspend fun sign(
        appId: String, url: String, scheme: SignatureScheme?, sign: suspend RequestSigner.(SignatureScheme, RequestUrl) -> SignedMessage,
    ): Map<String, String> = background(appId) { identity ->
        val context = identity.context
        val place = signing { RequestUrl.parse(url) }
        context.configuration.isAuthOrigin(place.origin)
        val record = context.ledger.load()
        val used = context.scheme(scheme, record)
        val signed = RequestSigner(context).sign(used, place)
        // The app sends the request, so the client does not see the answer. A service that accepts this scheme refuses lower
        // ones from then on. So the client records the scheme now.
        context.noteScheme(used, record)
        signed.headers.toMap()
    }

    override suspend fun send(
        appId: String, request: HttpRequest, scheme: SignatureScheme?, transport: HttpTransport?,
    ): HttpResponse {
        var answer: HttpResponse? = null
        try {
            return background(appId) {
                val received = AuthenticatedSend(it, request, scheme, transport ?: it.context.configuration.transport).run()
                answer = received
                it.maintainInBackground()
                received
            }
        } catch (error: CancellationException) {
            // The caller was cancelled just as the answer came. It does not receive the answer, so close the stream here.
            answer?.abandon()
            throw error
        }
    }

    override suspend fun deviceToken(appId: String, audience: String?): DeviceToken = background(appId) { it.token(audience) }

    override suspend fun status(appId: String): DeviceStatus = background(appId) { it.status() }

    override suspend fun rotateKey(appId: String, reason: RotationReason): KeyRotation =
        background(appId) { it.rotate(reason) }

    override suspend fun resetDeviceIdentity(appId: String, reason: ResetReason): Unit = background(appId) { it.reset(reason) }

    override suspend fun correctClockSkew(serverTimestamp: Double, appId: String?) {
        val (configuration, used) = synchronized(this) { configured() to identities.values.toList() }
        val difference = serverTimestamp * 1000 - configuration.clock.wallMillis
        val offset = if (abs(difference) <= MAXIMUM_CLOCK_OFFSET_MILLIS) ClockOffset.of(difference.roundToLong()) else null
        if (offset == null) throw failure(Situation.CLOCK_TOO_FAR_OFF, "the clock is more than 24 hours off")
        // One record that cannot be written does not keep the others from learning the clock.
        val results = (if (appId != null) listOf(identity(appId)) else used).map {
            runCatching { withContext(WORK) { it.context.ledger.apply(IdentityEvent.ClockLearned(offset)) } }
        }
        for (result in results) result.getOrThrow()
    }

    override suspend fun maintain(appId: String): Unit = background(appId) { it.maintain() }

    /**
     * Ends running operations at their next step; their callers get `NETWORK_ERROR`. A later process finishes the interrupted operations.
     */
    override fun close() {
        scope.cancel()
    }

    private suspend fun <Value> background(appId: String, body: suspend (DeviceIdentity) -> Value): Value {
        val identity = identity(appId)
        return withContext(WORK) { body(identity) }
    }

    private fun identity(appId: String): DeviceIdentity {
        if (!scope.isActive) throw closed()
        synchronized(this) {
            val configuration = configured()
            identities[appId]?.let { return it }
            if (!isAppId(appId)) {
                throw failure(OwnCode.NOT_CONFIGURED, "appId must be 1 to 128 of A-Z a-z 0-9 . _ - and must not end in _next")
            }
            return DeviceIdentity(IdentityContext(appId, configuration, changes), scope).also { identities[appId] = it }
        }
    }

    private fun configured() = configuration ?: throw failure(OwnCode.NOT_CONFIGURED, "call configure first")

    /** The instance for apps that need only one. */
    public companion object {
        /** The instance for apps that need only one. It throws `NOT_CONFIGURED` until [configure]. */
        public val shared: SynheartAuth = SynheartAuth()
    }
}
