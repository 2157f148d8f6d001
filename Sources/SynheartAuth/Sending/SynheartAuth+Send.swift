public import AuthContract

extension SynheartAuth {
    /// Signs a request, sends it, and returns the answer, whatever its status.
    ///
    /// Recovers once from each of `CLOCK_SKEW` (learns the clock), `NONCE_REPLAY` (signs again), `KEY_EXPIRED` (rotates),
    /// `KEY_INVALIDATED` (registers), `ASSERTION_REQUIRED` (adds an App Attest assertion), and a rotation whose answer was lost.
    /// `DEVICE_REVOKED` is thrown with recovery `reset`: registering automatically would undo a revocation.
    ///
    /// - Parameters:
    ///   - request: A request to the auth service or to one of `Configuration.origins`. Redirects are not followed. Its deadline
    ///     bounds the whole call. A file as the body needs scheme 2; it is read twice, for its digest and to be sent. The headers
    ///     must not name what the transport writes (`Host`, `Content-Length`, `Transfer-Encoding`, `Connection`, …) or what belongs
    ///     to the signature.
    ///   - appID: The app whose identity signs.
    ///   - scheme: `one`, or `two` (RFC 9421), which also covers query, host and body digest; nil: the device's, which is `one` until
    ///     a scheme 2 request was accepted.
    ///   - asserting: Whether the request carries an App Attest assertion from the start. Without it, the SDK adds one where the
    ///     service demands it, and remembers for which paths.
    /// - Throws: `SIGNING_FAILED` for another origin or a forbidden header, `NETWORK_ERROR` if no answer came by the deadline,
    ///   `ANSWER_TOO_LARGE` if the answer is larger than the request allows; the request may have succeeded.
    public func send(
        _ request: TransportRequest, appID: String, scheme: SignatureScheme? = nil, asserting: Bool = false
    ) async throws(SynheartAuthError) -> TransportAnswer {
        let identity = try identity(appID)
        let answer = try await AuthenticatedSend(request, scheme, asserting: asserting, identity: identity).run()
        await identity.maintainInBackground()
        return answer
    }

    /// The signature headers of a request to `url`.
    ///
    /// - Parameters:
    ///   - appID: The app whose identity signs.
    ///   - scheme: The scheme; nil: the device's.
    ///   - method: The HTTP method.
    ///   - url: The whole URL, as sent.
    ///   - bodyBytes: The body as sent.
    ///   - asserting: Whether an App Attest assertion is added. Such requests must arrive in the order in which they were signed.
    /// - Throws: `SIGNING_FAILED` unless the URL's origin is the auth service's or one of `Configuration.origins`.
    public func sign(
        appID: String, scheme: SignatureScheme? = nil, method: String, url: String,
        bodyBytes: some Collection<UInt8> = [], asserting: Bool = false
    ) async throws(SynheartAuthError) -> SignedHeaders {
        try await sign(
            appID: appID, scheme: scheme, method: method, url: url, body: .bytes(Array(bodyBytes)),
            asserting: asserting)
    }

    package func sign(
        appID: String, scheme: SignatureScheme?, method: String, url: String, body: RequestBody, asserting: Bool = false
    ) async throws(SynheartAuthError) -> SignedHeaders {
        let context = try identity(appID).context
        let place = try RequestTargetURL(url)
        _ = try context.configuration.checkOrigin(place.origin)
        let record = try await context.ledger.load()
        let scheme = scheme ?? record.schemeFloor
        let signed = try await RequestSigner(context: context).sign(scheme, method: method, to: place, body: body)
        // The SDK does not see the answer. If the service accepts the request, it accepts no lower scheme any more.
        await context.noteScheme(scheme, record)
        guard asserting else { return SignedHeaders(signed.fields) }
        return SignedHeaders(signed.fields + [try await context.assertionField(over: signed)])
    }

    /// A token that any backend can check offline. The SDK fetches it, and renews it past half of its life.
    ///
    /// - Parameters:
    ///   - appID: The app whose identity the token names.
    ///   - audience: One of the app's `token_audiences`; nil for the app itself.
    public func deviceToken(
        appID: String, audience: String? = nil
    ) async throws(SynheartAuthError) -> DeviceToken {
        try await identity(appID).token(audience)
    }

    /// Finishes an interrupted rotation, and rotates a key that is due. `send` and `registerDevice` do both in the background if
    /// `Configuration.rotatesAutomatically` is set.
    public func maintain(appID: String) async throws(SynheartAuthError) {
        try await identity(appID).maintain()
    }
}
