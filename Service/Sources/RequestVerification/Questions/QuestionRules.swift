package import AuthContract
internal import Bytes
internal import StrictJSON

/// Makes the questions that ask the service about requests, and interprets its answers. Performs no I/O.
package struct QuestionRules: Sendable {
    private enum Source: Sendable {
        case origin(RequestOrigin)
        case proxies([IPNetwork], trustsUnixSockets: Bool)
    }

    private let source: Source
    let bodyLimit: Int
    let identityAudience: String?
    let now: @Sendable () -> UnixTime

    /// - Parameter now: the clock, for refusals that do not come from the service.
    package init(
        _ configuration: RequestVerifierConfiguration, now: @escaping @Sendable () -> UnixTime
    ) throws(VerifierConfigurationError) {
        source = try Self.source(configuration.source)
        bodyLimit = configuration.bodyLimit
        identityAudience = configuration.identityAudience
        self.now = now
    }

    private static func source(_ source: RequestSource) throws(VerifierConfigurationError) -> Source {
        switch source {
        case .origin(let text):
            guard let origin = try? RequestOrigin(text) else {
                throw VerifierConfigurationError("expected an origin such as https://api.example.com, found \(text)")
            }
            return .origin(origin)
        case .trustedProxies(let texts):
            guard !texts.isEmpty else { throw VerifierConfigurationError("trustedProxies names no proxy") }
            var networks: [IPNetwork] = []
            for text in texts where text != "unix" {
                guard let network = IPNetwork(text) else {
                    throw VerifierConfigurationError("expected a network such as 10.0.0.0/8, found \(text)")
                }
                networks.append(network)
            }
            return .proxies(networks, trustsUnixSockets: texts.contains("unix"))
        }
    }

    /// The question about a request.
    ///
    /// - Parameter id: a new UUID. A repeated question has the same id.
    /// - Throws: the refusal of a request that is answered without asking the service.
    package func question(about request: ReceivedRequest, id: String) throws(RefusalAnswer) -> VerifyRequest {
        guard isFramed(request) else {
            throw refusal(.invalidRequest, "The body is not framed as the headers say.", id)
        }
        if case .bytes(let bytes) = request.body, bytes.count > bodyLimit { throw bodyTooLarge(id) }
        let origin = try origin(of: request, id)
        let target = request.target.utf8
        let mark = target.firstIndex(of: UInt8(ascii: "?"))
        return VerifyRequest(
            method: request.method, scheme: origin.scheme.rawValue, authority: origin.authority,
            path: String(request.target[..<(mark ?? target.endIndex)]),
            query: mark.map { String(request.target[target.index(after: $0)...]) },
            headers: HeaderFields(
                request.headers.lines.filter { IdentityHeader.isTold($0.name) }.map { ($0.name, $0.value) }),
            body: body(of: request), verificationID: id, identityAudience: identityAudience)
    }

    /// The body in the question to the service. Scheme 2 signs the digest of the body, so the service then needs only the digest.
    private func body(of request: ReceivedRequest) -> VerifyRequest.Body {
        switch request.body {
        case .bytes(let bytes): request.usesSchemeTwo ? .sha256(ContentDigest(of: bytes).sha256) : .bytes(bytes)
        case .sha256(let digest): .sha256(digest)
        }
    }

    /// Whether the headers name no length, or exactly one length that fits the body, and no `Transfer-Encoding` beside it.
    /// Ambiguous framing allows request smuggling.
    private func isFramed(_ request: ReceivedRequest) -> Bool {
        let lengths = request.headers.values("Content-Length")
        guard let length = lengths.first else { return true }
        guard lengths.count == 1, !request.headers.contains("Transfer-Encoding"),
            length.utf8.allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }), let length = Int(length)
        else { return false }
        if case .bytes(let bytes) = request.body { return length == bytes.count }
        return true
    }

    private func origin(of request: ReceivedRequest, _ id: String) throws(RefusalAnswer) -> RequestOrigin {
        switch source {
        case .origin(let origin): return origin
        case .proxies(let networks, let trustsUnixSockets):
            let isTrusted =
                switch request.peer {
                case .address(let text):
                    IPNetwork.address(text).map { address in
                        networks.contains { $0.contains(address) }
                    } ?? false
                case .unixSocket: trustsUnixSockets
                case .unknown: false
                }
            if isTrusted, let scheme = try? request.headers.one("X-Forwarded-Proto"),
                scheme == "http" || scheme == "https",
                let authority = try? request.headers.one("X-Forwarded-Host"),
                let origin = try? RequestOrigin(scheme: scheme, authority: authority)
            {
                return origin
            }
            throw refusal(
                .misdirectedRequest, "The request did not come through a proxy that this backend trusts.", id)
        }
    }

    func bodyTooLarge(_ id: String) -> RefusalAnswer {
        refusal(.payloadTooLarge, "The body has more than \(bodyLimit) bytes.", id)
    }

    /// A refusal that this backend makes itself.
    private func refusal(_ code: ErrorCode, _ message: String, _ id: String) -> RefusalAnswer {
        RefusalAnswer(
            status: code.httpStatus,
            ErrorBody(code: code.rawValue, message: message, requestID: id, serverTimestamp: now()))
    }

    /// The answer for a request without a verdict. The request does not pass.
    ///
    /// - Parameter isOutage: whether other requests would get no verdict either.
    func unavailable(
        _ id: String, _ reason: String, retryAfter: Int64? = nil, isOutage: Bool
    ) -> VerificationAnswer {
        let code = ErrorCode.serviceUnavailable
        let error = ErrorBody(
            code: code.rawValue, message: "The request cannot be verified now.", requestID: id, serverTimestamp: now())
        var refusal = RefusalAnswer(status: code.httpStatus, error, [("Retry-After", String(retryAfter ?? 5))])
        refusal.isOutage = isOutage
        return .unavailable(refusal, reason: reason)
    }
}
