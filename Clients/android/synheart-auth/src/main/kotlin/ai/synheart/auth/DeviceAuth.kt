package ai.synheart.auth

import kotlinx.coroutines.flow.SharedFlow
import kotlinx.coroutines.flow.StateFlow

/**
 * The calls of an app. [SynheartAuth] is the client. `FakeDeviceAuth` of the module `synheart-auth-testing` replaces it in an
 * app's own tests.
 *
 * Every function can be called on any thread, the main thread included. It throws [SynheartAuthException], and
 * `CancellationException` once its caller is cancelled.
 */
public interface DeviceAuth {
    /** Whether this device is registered: the stored record says so, and the key is not known to be lost. No network. */
    public suspend fun isRegistered(appId: String): Boolean

    /**
     * Registers this device for an app. Idempotent: call it at every launch. For a registered device the call itself sends nothing,
     * but it may start [maintain] in the background.
     *
     * @param joins whether the call joins a registration in progress. If false, it throws `REGISTRATION_IN_PROGRESS` instead
     */
    public suspend fun registerDevice(appId: String, joins: Boolean = true): Registration

    /** The id that the service issued, even if the device is still pending. Null if the service has issued none. */
    public suspend fun getDeviceId(appId: String): String?

    /** The state of the identity. */
    public suspend fun state(appId: String): IdentityState

    /** The state of the identity, and its changes. Changes by other processes appear when this process reads the record. */
    public suspend fun stateFlow(appId: String): StateFlow<IdentityState>

    /** Changes of state that this instance makes from now on, of all apps. A slow collector misses the oldest of more than 64. */
    public val stateChanges: SharedFlow<StateChange>

    /**
     * The six headers of a request that is signed under scheme 1. The client makes timestamp and nonce. No network.
     *
     * @param method the HTTP method. It is converted to upper case
     * @param path the path as sent: escaped, without the query
     * @param body the body as sent
     * @param scheme null, or the scheme that the device signs with
     * @throws SynheartAuthException.SigningFailed if the device signs under scheme 2, which needs the whole URL ([sign]), and if
     *   [scheme] is another scheme than the device's
     */
    public suspend fun signRequest(
        appId: String, method: String, path: String, body: ByteArray = ByteArray(0), scheme: SignatureScheme? = null,
    ): Map<String, String>

    /**
     * The signature headers of a request to [url]. No network.
     *
     * @param method the HTTP method as sent
     * @param url the whole URL as sent
     * @param body the body as sent
     * @param scheme null, or the scheme that the device signs with: the higher of `Configuration.scheme` and the highest scheme
     *   that the device has used
     * @throws SynheartAuthException.SigningFailed if [scheme] is another scheme than the device's, and if the URL's origin
     *   is neither the auth service's nor one of `Configuration.origins`
     */
    public suspend fun sign(
        appId: String, method: String, url: String, body: ByteArray = ByteArray(0), scheme: SignatureScheme? = null,
    ): Map<String, String>

    /**
     * The signature headers of a request with a streamed body, under scheme 2. Reads the body once. No network.
     *
     * @param method the HTTP method as sent
     * @param url the whole URL as sent
     * @param streamedBody the body as sent
     * @throws SynheartAuthException.SigningFailed if the body cannot be read, if the device signs under scheme 1, and if the
     *   URL's origin is neither the auth service's nor one of `Configuration.origins`
     */
    public suspend fun sign(appId: String, method: String, url: String, streamedBody: StreamedBody): Map<String, String>

    /**
     * Signs a request, sends it, and returns the answer, whatever its status. If the client cannot recover from one of the
     * refusals below, `send` throws it.
     *
     * Recovers once from each of `CLOCK_SKEW` (learns the clock), `NONCE_REPLAY` (signs again), `KEY_EXPIRED` (rotates),
     * `KEY_INVALIDATED` (registers), and a rotation whose answer was lost. `DEVICE_REVOKED` is thrown with recovery `RESET`:
     * registering automatically would undo a revocation.
     *
     * One `send` takes effect at most once. `NONCE_REPLAY` means that another copy of the request was accepted. So the
     * client signs again only if the method is safe or idempotent, or the request carries an `Idempotency-Key`. An error's
     * `mayHaveHappened` says whether the request may have taken effect.
     *
     * A streamed body is read once for its digest, and again for each copy that is sent. If the bytes differ then, the copy ends
     * before its last byte, and the call throws `SIGNING_FAILED`.
     *
     * @param request a request to the auth service or to one of `Configuration.origins`. Redirects are not followed. Its deadline
     *   bounds the whole call. The headers must not include those that the transport writes or those of the signature
     * @param scheme null, or the scheme that the device signs with
     * @param transport the transport that sends the request; null for the configuration's. It is called again for each
     *   recovery
     * @throws SynheartAuthException.SigningFailed for a URL of any other origin, for a forbidden header, and for a streamed
     *   body under scheme 1, one that cannot be read, or one that changes
     * @throws SynheartAuthException.NetworkError if no answer came by the deadline
     * @throws SynheartAuthException.AnswerTooLarge if the answer is larger than the request allows; the request may have succeeded
     */
    public suspend fun send(
        appId: String, request: HttpRequest, scheme: SignatureScheme? = null, transport: HttpTransport? = null,
    ): HttpResponse

    /**
     * A token that any backend can check offline. The client fetches it, and renews it past half of its life.
     *
     * @param audience one of the app's `token_audiences`; null for the app itself
     */
    public suspend fun deviceToken(appId: String, audience: String? = null): DeviceToken

    /** Asks the service for its view of this device. The device may also be pending. */
    public suspend fun status(appId: String): DeviceStatus

    /**
     * Replaces the key and keeps the device id. Signing continues meanwhile. If the service demands it, the rotation attests
     * again.
     *
     * A call joins a rotation in progress, unless that one is scheduled and this one follows a compromise.
     *
     * @throws SynheartAuthException.RotationFailed if the old key stays active, or with recovery `RESET` if the service names a key
     *   that this device never had
     * @throws SynheartAuthException.NetworkError after three attempts
     */
    public suspend fun rotateKey(appId: String, reason: RotationReason = RotationReason.SCHEDULED): KeyRotation

    /**
     * Gives up the identity: tells the service, if that works within 3 s, deletes the key, and clears the record.
     *
     * Use it only for one of the reasons of [ResetReason], never as a retry.
     */
    public suspend fun resetDeviceIdentity(appId: String, reason: ResetReason): Unit

    /**
     * Learns the service's clock from the `server_timestamp` of a `CLOCK_SKEW` answer.
     *
     * @param serverTimestamp unix seconds, as received
     * @param appId the app; null for every app used so far
     * @throws SynheartAuthException.ClockSkew if the device's clock differs from it by more than 24 hours. The client then
     *   learns nothing
     */
    public suspend fun correctClockSkew(serverTimestamp: Double, appId: String? = null)

    /**
     * Finishes an interrupted rotation, and rotates a key that is due. `send` and `registerDevice` do both in the background if
     * `Configuration.rotatesAutomatically` is set; a periodic background job may call this.
     */
    public suspend fun maintain(appId: String): Unit
}
