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
    ///   - appId: The app whose identity signs.
    ///   - scheme: `one`, or `two` (RFC 9421), which also covers query, host and body digest.
    /// - Throws: `SIGNING_FAILED` for another origin or a forbidden header, `NETWORK_ERROR` if no answer came by the deadline.
    public func send(
        _ request: TransportRequest, appId: String, scheme: SignatureScheme = .one
    ) async throws(SynheartAuthError) -> TransportAnswer {
        let identity = try identity(appId)
        let answer = try await AuthenticatedSend(request, scheme, identity: identity).run()
        await identity.maintainInBackground()
        return answer
    }

    /// The signature headers of a request to `url`.
    ///
    /// - Throws: `SIGNING_FAILED` unless the URL's origin is the auth service's or one of `Configuration.origins`.
    public func sign(
        appId: String, scheme: SignatureScheme, method: String, url: String, bodyBytes: some Collection<UInt8> = []
    ) async throws(SynheartAuthError) -> SignedHeaders {
        try await sign(appId: appId, scheme: scheme, method: method, url: url, body: .bytes(Array(bodyBytes)))
    }

    package func sign(
        appId: String, scheme: SignatureScheme, method: String, url: String, body: RequestBody
    ) async throws(SynheartAuthError) -> SignedHeaders {
        let context = try identity(appId).context
        let place = try RequestTargetURL(url)
        _ = try context.configuration.checkOrigin(place.origin)
        return SignedHeaders(
            try await RequestSigner(context: context).sign(scheme, method: method, to: place, body: body).fields)
    }

    /// A token that any backend can check offline. The SDK fetches it, and renews it past half of its life.
    ///
    /// - Parameters:
    ///   - appId: The app whose identity the token names.
    ///   - audience: One of the app's `token_audiences`; nil for the app itself.
    public func deviceToken(
        appId: String, audience: String? = nil
    ) async throws(SynheartAuthError) -> DeviceToken {
        try await identity(appId).token(audience)
    }

    /// Finishes an interrupted rotation, and rotates a key that is due. `send` and `registerDevice` do both in the background if
    /// `Configuration.rotatesAutomatically` is set.
    public func maintain(appId: String) async throws(SynheartAuthError) {
        try await identity(appId).maintain()
    }
}
