internal import AuthContract

/// A signed request with all data for its judgement, except the device's row. Its contents are unverified.
///
/// A class, because a dozen steps read it: copies of a struct took 6 % of the time, the signature check excluded.
final class SignedRequest: Sendable {
    /// The request as it was received.
    let incoming: IncomingRequest
    let headers: SignatureHeaders
    let app: ProvisionedApp
    let operation: Operation
    /// The path as the client signed it.
    let path: RequestPath
    /// The time of the judgement.
    let now: UnixTime
    /// The bytes that the signature must cover.
    let message: [UInt8]
    /// The thumbprint of the key that the signer names; scheme 2 only.
    let keyID: String?
    /// The replay claims of this request. The replay store accepts each claim only once, so it detects a repeated request.
    let claims: [ReplayClaim]

    var appID: AppID { headers.appID }
    var deviceID: DeviceID { headers.deviceID }
    var timestamp: UnixTime { headers.timestamp }
    var signature: RequestSignature { headers.signature }
    var scheme: SignatureScheme { headers.scheme }
    /// Whether the method only reads.
    var isRead: Bool { Self.isRead(incoming.method) }
    /// Whether the request may be accepted only once.
    var needsClaims: Bool { app.record.signature.replayOnReads || !isRead }

    /// Checks the app's policy on path and query, and the digest of the body.
    ///
    /// - Parameter origin: the origin that the request was sent to, if the service or the app's operator configured it.
    ///   Nil: scheme 2 is refused.
    init(
        _ request: IncomingRequest, _ headers: SignatureHeaders, of app: ProvisionedApp, for operation: Operation,
        origin: RequestOrigin?, now: UnixTime
    ) throws(Refusal) {
        let path = try Self.signedPath(request.target.path, of: app, operation)
        try Self.requireQueryAllowed(request, headers.scheme, app)
        incoming = request
        self.headers = headers
        self.app = app
        self.operation = operation
        self.path = path
        self.now = now
        switch headers {
        case .one(let headers):
            guard case .bytes(let body) = request.body else {
                throw Refusal(malformed: ContractError("scheme 1 needs the body itself, not its digest"))
            }
            message = SchemeOneMessage.bytes(
                method: request.method, path: path.text, timestamp: headers.timestamp, body: body)
            keyID = nil
            claims = [
                .nonce(headers.nonce, of: headers.deviceID), .signatureR(headers.signature, of: headers.deviceID),
            ]
        case .two(let headers):
            guard let origin else {
                let unset = app.hasSchemeTwo ? "server.public_origin is not set" : "signature.authorities are empty"
                throw Refusal(setUp: .unsupportedSigVersion, "a scheme 2 request, and \(unset)")
            }
            try Self.requireDigest(headers.contentDigest, of: request.body)
            let base = try wellFormed {
                try headers.base(
                    method: request.method, origin: origin,
                    target: RequestTarget(path: path, query: request.target.query))
            }
            message = base.bytes
            keyID = headers.parameters.keyID
            claims = [.signatureBase(base.digest, of: headers.deviceID)]
        }
    }

    /// This request, as if it had been sent to another origin.
    func sent(to origin: RequestOrigin) throws(Refusal) -> SignedRequest {
        try SignedRequest(incoming, headers, of: app, for: operation, origin: origin, now: now)
    }

    /// Whether a method only reads.
    static func isRead(_ method: String) -> Bool { reads.contains(method.uppercased()) }

    private static let reads: Set = ["GET", "HEAD", "OPTIONS"]

    /// The path as the client signed it, without the prefix that the deployment's proxy adds (`path_prefix_strip`).
    private static func signedPath(
        _ path: RequestPath, of app: ProvisionedApp, _ operation: Operation
    ) throws(Refusal) -> RequestPath {
        guard operation == .otherService, let prefix = app.record.signature.pathPrefixStrip else { return path }
        guard path.isBelow(prefix) else {
            throw Refusal(
                setUp: .invalidRequest,
                // Show only the first segment: the rest may be a secret, such as the token of a link.
                "the path begins with /\(path.text.split(separator: "/").first?.prefix(64) ?? ""), and "
                    + "signature.path_prefix_strip is \(prefix)")
        }
        let stripped = String(path.text.dropFirst(prefix.count))
        return try wellFormed { try RequestPath(stripped.isEmpty ? "/" : stripped) }
    }

    private static func requireQueryAllowed(
        _ request: IncomingRequest, _ scheme: SignatureScheme, _ app: ProvisionedApp
    ) throws(Refusal) {
        guard scheme == .one, request.target.query != nil else { return }
        switch app.record.signature.unsignedQuery {
        case .allow: return
        case .refuseOnWrites where isRead(request.method): return
        case .refuseOnWrites, .refuse:
            let hint = "a query is not covered by signature scheme 1 and is refused here"
            throw Refusal(.invalidRequest, hint, hint: hint)
        }
    }

    private static func requireDigest(
        _ digest: ContentDigest, of body: VerifyRequest.Body
    ) throws(Refusal) {
        let actual: [UInt8] =
            switch body {
            case .bytes(let body): ContentDigest(of: body).sha256
            case .sha256(let digest): digest
            }
        guard constantTimeEquals(actual, digest.sha256) else {
            throw Refusal(.invalidSignature, "the body is not the one of Content-Digest")
        }
    }
}

extension SignatureHeaders {
    var scheme: SignatureScheme {
        switch self {
        case .one: .one
        case .two: .two
        }
    }
}
