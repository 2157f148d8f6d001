public import AuthContract

extension SynheartAuth {
    /// Signs a request, sends it, and returns the answer, whatever its status.
    ///
    /// Recovers once from each of `CLOCK_SKEW` (learns, signs again), `NONCE_REPLAY` (signs again), `KEY_EXPIRED` (rotates),
    /// `KEY_INVALIDATED` (registers), `ASSERTION_REQUIRED` (adds an App Attest assertion), and a rotation whose answer was
    /// lost. The request's deadline bounds the call as a whole. `DEVICE_REVOKED` is thrown with recovery `reset`: registering by itself would undo a revocation.
    ///
    /// - Parameters:
    ///   - request: To the auth service or one of `Configuration.origins`. Redirects are not followed. A body that is a
    ///     file needs scheme 2: it is read twice, in pieces, once for its digest and once to be sent. Its headers may not name
    ///     what the transport writes (`Host`, `Content-Length`, `Transfer-Encoding`, `Connection`, …) or what is part of the
    ///     signature.
    ///   - appId: Whose identity signs.
    ///   - scheme: `one`, or `two` (RFC 9421), which also covers query, host and body digest.
    /// - Throws: `SIGNING_FAILED` where the origin is not one to sign for, or a header is not one to send; `NETWORK_ERROR` where
    ///   no answer came by the deadline.
    public func send(
        _ request: TransportRequest, appId: String, scheme: SignatureScheme = .one
    ) async throws(SynheartAuthError) -> TransportAnswer {
        let identity = try identity(appId)
        let answer = try await AuthenticatedSend(request, scheme, identity: identity).run()
        await identity.maintainInBackground()
        return answer
    }

    /// The headers of a request to `url`, of the scheme asked for.
    ///
    /// - Throws: `SIGNING_FAILED` where the URL's origin is neither the auth service's nor one of `Configuration.origins`.
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

    /// A token that any backend can check offline; fetched, and renewed once half of its life is over.
    ///
    /// - Parameters:
    ///   - appId: Whose identity it speaks of.
    ///   - audience: One of the app's `token_audiences`; nil for the app itself.
    public func deviceToken(
        appId: String, audience: String? = nil
    ) async throws(SynheartAuthError) -> DeviceToken {
        try await identity(appId).token(audience)
    }

    /// Finishes what an interrupted rotation left and rotates a key that is due. `send` and `registerDevice` do it by
    /// themselves, in the background, where `Configuration.rotatesAutomatically` says so.
    public func maintain(appId: String) async throws(SynheartAuthError) {
        try await identity(appId).maintain()
    }
}
