public import AuthContract

extension SynheartAuth {
    /// Signs a request, sends it, and returns the answer, whatever its status.
    ///
    /// One `send` takes effect once: each signed copy is sent once. The call recovers once from each failure that comes before a
    /// request is accepted: `CLOCK_SKEW` (learns the clock), `KEY_EXPIRED` (rotates), `KEY_INVALIDATED` (registers),
    /// `ASSERTION_REQUIRED` (adds an App Attest assertion), a lost App Attest key (binds a new one by a rotation), and a rotation
    /// whose answer was lost. `NONCE_REPLAY` means that a copy was accepted. The call then signs again only if a second effect
    /// does no harm: GET, HEAD, OPTIONS, PUT, DELETE, or a request with `Idempotency-Key`.
    ///
    /// `DEVICE_REVOKED` is thrown with recovery `reset` if the auth service confirms it: registering automatically would undo a
    /// revocation. `MISDIRECTED_REQUEST` is thrown as a configuration error that names the origin.
    ///
    /// - Parameters:
    ///   - request: A request to the auth service or to one of `Configuration.origins`. Redirects are not followed. Its deadline
    ///     bounds the whole call; if the answer is streamed, only the time until the answer's head. A file or a source as the body
    ///     needs scheme 2; it is read for its digest, and again for each copy that is sent. The headers must not include those that
    ///     the transport writes (`Host`, `Content-Length`, `Transfer-Encoding`, `Connection`, …) or those of the signature.
    ///   - appID: The app whose identity signs.
    ///   - scheme: nil for the scheme that the device signs with, which is the higher of `Configuration.scheme` and the
    ///     device's floor. Any other scheme is refused, because no call may change the scheme of other calls.
    ///   - asserting: Whether the request carries an App Attest assertion from the start. If it is false, the SDK adds one where the
    ///     service demands an assertion, and remembers for which paths.
    /// - Throws: `SIGNING_FAILED` for another origin, another scheme or a forbidden header, `NETWORK_ERROR` if no answer came by
    ///   the deadline, `ANSWER_TOO_LARGE` if the answer is larger than the request allows, and the failure if a recovery did not
    ///   help. ``SynheartAuthError/mayHaveHappened`` says whether the request may have taken effect. After `CancellationError` it
    ///   may have taken effect, too.
    public func send(
        _ request: TransportRequest, appID: String, scheme: SignatureScheme? = nil, asserting: Bool = false
    ) async throws -> TransportResponse {
        try await forCaller { () async throws(SynheartAuthError) in
            let identity = try identity(appID)
            let answer = try await AuthenticatedSend(request, scheme, asserting: asserting, identity: identity).run()
            await identity.maintainInBackground()
            return answer
        }
    }

    /// The signature headers of a request to `url`.
    ///
    /// - Parameters:
    ///   - appID: The app whose identity signs.
    ///   - scheme: nil for the scheme that the device signs with; any other is refused.
    ///   - method: The HTTP method.
    ///   - url: The whole URL, as sent.
    ///   - bodyBytes: The body as sent.
    ///   - asserting: Whether an App Attest assertion is added. Such requests must arrive in the order in which they were signed.
    /// - Throws: `SIGNING_FAILED` unless the URL's origin is the auth service's or one of `Configuration.origins`.
    public func sign(
        appID: String, scheme: SignatureScheme? = nil, method: String, url: String,
        bodyBytes: some Collection<UInt8> = [], asserting: Bool = false
    ) async throws -> SignedHeaders {
        let body = RequestBody.bytes(Array(bodyBytes))
        return try await sign(
            appID: appID, scheme: scheme, method: method, url: url, body: body, asserting: asserting)
    }

    /// The signature headers of a request whose body is a file, under scheme 2. The file is read in pieces for its
    /// digest, and must not change until it is sent.
    ///
    /// - Throws: `SIGNING_FAILED` if the URL's origin is neither the auth service's nor one of `Configuration.origins`,
    ///   if the device signs under scheme 1, or if the file cannot be read.
    public func sign(appID: String, method: String, url: String, bodyFile: String) async throws -> SignedHeaders {
        try await sign(appID: appID, scheme: nil, method: method, url: url, body: .file(bodyFile))
    }

    package func sign(
        appID: String, scheme: SignatureScheme?, method: String, url: String, body: RequestBody, asserting: Bool = false
    ) async throws -> SignedHeaders {
        try await forCaller { () async throws(SynheartAuthError) in
            let context = try identity(appID).context
            let place = try RequestTargetURL(url)
            _ = try context.configuration.checkOrigin(place.origin)
            let record = try await context.signingRecord()
            let scheme = try context.scheme(scheme, for: record)
            let signed = try await RequestSigner(context: context).sign(scheme, method: method, to: place, body: body)
            // The SDK does not see the answer. If the service accepts the request, it refuses lower schemes from then on.
            await context.noteScheme(scheme, record)
            guard asserting else { return SignedHeaders(signed.fields) }
            return SignedHeaders(signed.fields + [try await context.assertionField(over: signed)])
        }
    }

    /// A token that any backend can check offline. The SDK fetches it, and renews it past half of its life.
    ///
    /// - Parameters:
    ///   - appID: The app whose identity the token names.
    ///   - audience: One of the app's `token_audiences`; nil for the app itself.
    public func deviceToken(appID: String, audience: String? = nil) async throws -> DeviceToken {
        try await forCaller { () async throws(SynheartAuthError) in try await identity(appID).token(audience) }
    }

    /// Finishes an interrupted rotation, and rotates a key that is due. `send`, and `registerDevice` on a registered device, do
    /// both in the background if `Configuration.rotatesAutomatically` is set.
    public func maintain(appID: String) async throws {
        try await forCaller { () async throws(SynheartAuthError) in try await identity(appID).maintain() }
    }
}
