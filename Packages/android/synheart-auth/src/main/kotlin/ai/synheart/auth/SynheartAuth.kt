package ai.synheart.auth

import ai.synheart.auth.concurrency.closed
import ai.synheart.auth.identity.AuthenticatedSend
import ai.synheart.auth.identity.ClockOffset
import ai.synheart.auth.identity.DeviceIdentity
import ai.synheart.auth.identity.IdentityContext
import ai.synheart.auth.identity.IdentityEvent
import ai.synheart.auth.identity.MAXIMUM_CLOCK_OFFSET_MILLIS
import ai.synheart.auth.identity.RequestSigner
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
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Dispatchers
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
 * `CancellationException` once its caller is cancelled. A registration, rotation or reset then runs on: others may have joined it.
 */
public class SynheartAuth(private var configuration: Configuration? = null) : Closeable {
    private val scope = CoroutineScope(SupervisorJob() + Dispatchers.Default)
    private val changes = StateChanges()

    // Guarded by this object's monitor, with the configuration.
    private val identities = HashMap<String, DeviceIdentity>()

    /** Replaces the configuration. Changes no identity. Running operations finish with the old configuration. */
    public fun configure(configuration: Configuration) {
        synchronized(this) {
            this.configuration = configuration
            identities.clear()
        }
    }

    /** Whether the record says that the device is registered, and its key exists. No network. */
    public suspend fun isRegistered(appId: String): Boolean = background(appId) { identity ->
        try {
            identity.context.existingRegistration(identity.context.ledger.load()) != null
        } catch (error: SynheartAuthException) {
            // The first suspicious answer changes nothing.
            if (error.isSuspicion) true else throw error
        }
    }

    /**
     * Registers this device for an app. Idempotent: call it at every launch. A registered device causes no network traffic.
     *
     * @param joins whether a call joins a registration in progress. Otherwise it throws `REGISTRATION_IN_PROGRESS`
     */
    public suspend fun registerDevice(appId: String, joins: Boolean = true): Registration = background(appId) { it.register(joins) }

    /** The id that the service issued, also of a pending device; null if there is none. */
    public suspend fun getDeviceId(appId: String): String? = background(appId) { identity ->
        val record = identity.context.ledger.load()
        record.deviceId.takeIf { record.state != IdentityState.UNREGISTERED }
    }

    /** The state of the identity. */
    public suspend fun state(appId: String): IdentityState = background(appId) { it.context.ledger.load().state }

    /** The state of the identity, and its changes. It follows other processes when this one reads the record. */
    public suspend fun stateFlow(appId: String): StateFlow<IdentityState> = background(appId) {
        val state = it.context.ledger.load().state
        changes.flow(appId, state).asStateFlow()
    }

    /** The changes of state from now on, of all apps of this instance. A slow collector misses the oldest of more than 64. */
    public val stateChanges: SharedFlow<StateChange> = changes.changes.asSharedFlow()

    /**
     * The six headers of a request that is signed under scheme 1. The client makes timestamp and nonce. No network.
     *
     * @param method the HTTP method. It is converted to upper case
     * @param path the path as sent: escaped, without the query
     * @param body the body as sent
     * @param scheme null, or the scheme that the device signs with
     * @throws SynheartAuthException.SigningFailed if the device signs under scheme 2, which needs the whole URL ([sign])
     */
    public suspend fun signRequest(
        appId: String, method: String, path: String, body: ByteArray = ByteArray(0), scheme: SignatureScheme? = null,
    ): Map<String, String> = background(appId) { identity ->
        if (identity.context.scheme(scheme, identity.context.ledger.load()) == SignatureScheme.TWO) {
            throw failure(OwnCode.SIGNING_FAILED, "scheme 2 signs the whole URL: use send or sign")
        }
        RequestSigner(identity.context).sign(method, path, body).headers.toMap()
    }

    /**
     * The signature headers of a request to [url]. No network.
     *
     * @param method the HTTP method as sent
     * @param url the whole URL as sent
     * @param body the body as sent
     * @param scheme null, or the scheme that the device signs with: the higher of `Configuration.scheme` and what it has signed with
     * @throws SynheartAuthException.SigningFailed for another scheme, and unless the URL's origin is the auth service's or one of
     *   `Configuration.origins`
     */
    public suspend fun sign(
        appId: String, method: String, url: String, body: ByteArray = ByteArray(0), scheme: SignatureScheme? = null,
    ): Map<String, String> = background(appId) { identity ->
        val context = identity.context
        val place = signing { RequestUrl.parse(url) }
        context.configuration.isAuthOrigin(place.origin)
        val record = context.ledger.load()
        val used = context.scheme(scheme, record)
        val signed = RequestSigner(context).sign(used, method, place, body)
        // The client does not see the answer. If the service accepts the request, it accepts no lower scheme any more.
        context.noteScheme(used, record)
        signed.headers.toMap()
    }

    /**
     * Signs a request, sends it, and returns the answer, whatever its status.
     *
     * Recovers once from each of `CLOCK_SKEW` (learns the clock), `NONCE_REPLAY` (signs again), `KEY_EXPIRED` (rotates),
     * `KEY_INVALIDATED` (registers), and a rotation whose answer was lost. `DEVICE_REVOKED` is thrown with recovery `RESET`:
     * registering automatically would undo a revocation.
     *
     * One `send` makes one effect. `NONCE_REPLAY` means that a copy was accepted: a request that is not safe or idempotent by its
     * method, and carries no `Idempotency-Key`, is not signed again. An error's `mayHaveHappened` says whether the request may have
     * taken effect.
     *
     * @param request a request to the auth service or to one of `Configuration.origins`. Redirects are not followed. Its deadline
     *   bounds the whole call. The headers must not name what the transport writes or what belongs to the signature
     * @param scheme null, or the scheme that the device signs with
     * @param transport what sends the request; null: the configuration's. It is called again for each recovery
     * @throws SynheartAuthException.SigningFailed for another origin or a forbidden header
     * @throws SynheartAuthException.NetworkError if no answer came by the deadline
     * @throws SynheartAuthException.AnswerTooLarge if the answer is larger than the request allows; the request may have succeeded
     */
    public suspend fun send(
        appId: String, request: HttpRequest, scheme: SignatureScheme? = null, transport: HttpTransport? = null,
    ): HttpAnswer = background(appId) {
        val answer = AuthenticatedSend(it, request, scheme, transport ?: it.context.configuration.transport).run()
        it.maintainInBackground()
        answer
    }

    /**
     * A token that any backend can check offline. The client fetches it, and renews it past half of its life.
     *
     * @param audience one of the app's `token_audiences`; null for the app itself
     */
    public suspend fun deviceToken(appId: String, audience: String? = null): DeviceToken = background(appId) { it.token(audience) }

    /** The service's view of this device, also of a pending one. */
    public suspend fun status(appId: String): DeviceStatus = background(appId) { it.status() }

    /**
     * Replaces the key and keeps the device id. Signing goes on meanwhile. If the service demands it, the rotation attests again.
     *
     * A call joins a rotation in progress, unless that one is scheduled and this one follows a compromise.
     *
     * @throws SynheartAuthException.RotationFailed if the old key stays active
     * @throws SynheartAuthException.NetworkError after three attempts
     */
    public suspend fun rotateKey(appId: String, reason: RotationReason = RotationReason.SCHEDULED): KeyRotation =
        background(appId) { it.rotate(reason) }

    /**
     * Gives the identity up: tells the service if it can (3 s), deletes the key, clears the record.
     *
     * Use it only for the reasons of RFC-AUTH-MOBILE-0001 section 9.3, never as a retry.
     */
    public suspend fun resetDeviceIdentity(appId: String, reason: ResetReason): Unit = background(appId) { it.reset(reason) }

    /**
     * Learns the service's clock from the `server_timestamp` of a `CLOCK_SKEW` answer.
     *
     * @param serverTimestamp unix seconds, as received
     * @param appId the app; null for every app used so far
     * @throws SynheartAuthException.ClockSkew if the clock is more than 24 hours off. The client then learns nothing
     */
    public suspend fun correctClockSkew(serverTimestamp: Double, appId: String? = null) {
        val (configuration, used) = synchronized(this) { configured() to identities.values.toList() }
        val difference = serverTimestamp * 1000 - configuration.clock.wallMillis
        val offset = if (abs(difference) <= MAXIMUM_CLOCK_OFFSET_MILLIS) ClockOffset.of(difference.roundToLong()) else null
        if (offset == null) throw failure(Situation.CLOCK_TOO_FAR_OFF, "the clock is more than 24 hours off")
        for (identity in if (appId != null) listOf(identity(appId)) else used) {
            withContext(Dispatchers.Default) { identity.context.ledger.apply(IdentityEvent.ClockLearned(offset)) }
        }
    }

    /**
     * Finishes an interrupted rotation, and rotates a key that is due. `send` and `registerDevice` do both in the background if
     * `Configuration.rotatesAutomatically` is set; a periodic background job may call this.
     */
    public suspend fun maintain(appId: String): Unit = background(appId) { it.maintain() }

    /** Ends running operations at their next step; their callers get `NETWORK_ERROR`. A later process finishes what they began. */
    override fun close() {
        scope.cancel()
    }

    private suspend fun <Value> background(appId: String, body: suspend (DeviceIdentity) -> Value): Value {
        val identity = identity(appId)
        return withContext(Dispatchers.Default) { body(identity) }
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
