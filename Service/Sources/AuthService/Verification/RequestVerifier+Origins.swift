package import AuthContract

/// The origins that scheme 2 requests may have been sent to (*Authority* in the protocol).
extension RequestVerifier {
    /// The origins that the request may have been sent to, as the configuration of the service or of the app lists them.
    /// If the service has no configured origins, its own routes accept the origin of the request if that origin is
    /// loopback. If the result is empty, scheme 2 is refused on these routes.
    func origins(
        of request: IncomingRequest, app: ProvisionedApp, _ operation: Operation
    ) throws(Refusal) -> [RequestOrigin] {
        guard operation == .otherService else {
            guard app.hasSchemeTwo else { return [] }
            if ownOrigins.count == 1 { return ownOrigins }
            let received = try? RequestOrigin(request.provenance)
            guard ownOrigins.isEmpty else {
                // Most requests are signed for the origin that received them, so try it first.
                return ownOrigins.filter { $0 == received } + ownOrigins.filter { $0 != received }
            }
            guard let received, received.isLoopback else { return [] }
            return [received]
        }
        guard !app.authorities.isEmpty else {
            throw Refusal(setUp: .unsupportedSigVersion, "a scheme 2 request, and signature.authorities are empty")
        }
        let received = try wellFormed { try RequestOrigin(request.provenance) }
        guard app.authorities.contains(received) else {
            let known = app.authorities.map(\.description).sorted().joined(separator: ", ")
            throw Refusal(.misdirectedRequest, "sent to \(received), and signature.authorities are \(known)")
        }
        return [received]
    }

    /// Whether the client can use scheme 2. On the service's own routes, the app must have scheme 2. If no origin is
    /// configured, the request must also have been sent to loopback.
    func canUseSchemeTwo(_ request: SignedRequest) -> Bool {
        if request.operation == .otherService { return true }
        guard request.app.hasSchemeTwo else { return false }
        if !ownOrigins.isEmpty { return true }
        return (try? RequestOrigin(request.incoming.provenance))?.isLoopback ?? false
    }

    /// Judges the request at the first origin at which its signature verifies. If there is none, returns the judgement at
    /// the origin that the request already has.
    func admit(
        _ request: SignedRequest, orAt others: ArraySlice<RequestOrigin>, _ row: DeviceRow
    ) throws(Refusal) -> Judgement {
        let first = admit(request, row)
        guard first.refusal?.code == .invalidSignature else { return first }
        for origin in others {
            let judgement = admit(try request.sent(to: origin), row)
            guard judgement.refusal?.code == .invalidSignature else { return judgement }
        }
        return first
    }

    /// Distinguishes a wrong origin on the service's own routes from a wrong signature. The origins in the client's headers
    /// only explain a refusal. They never admit a request (*Authority*).
    func explained(_ judgement: Judgement, _ request: SignedRequest, _ row: DeviceRow) throws(Refusal) -> Judgement {
        guard judgement.refusal?.code == .invalidSignature, request.scheme == .two, request.operation != .otherService,
            row.device.status != .deregistered
        else { return judgement }
        for origin in request.incoming.namedOrigins where !ownOrigins.contains(origin) {
            guard signingKey(try request.sent(to: origin), row) != nil else { continue }
            let configured = ownOrigins.isEmpty ? "not set" : ownOrigins.map(\.description).joined(separator: ", ")
            let refusal = Refusal(
                .misdirectedRequest,
                "signed for \(origin), and server.public_origin and server.other_origins are \(configured)")
            return .refused(refusal, app: request.app)
        }
        return judgement
    }
}

extension RequestOrigin {
    fileprivate init(_ provenance: RequestProvenance) throws(ContractError) {
        try self.init(scheme: provenance.scheme, authority: provenance.authority)
    }
}

extension IncomingRequest {
    /// The origins that the request itself names, which are not proven. From each header the last element is used, with both
    /// schemes, because a proxy may change the host or lose the scheme.
    fileprivate var namedOrigins: [RequestOrigin] {
        let named = ["Host", "X-Forwarded-Host"].compactMap { name in
            self.headers.values(name).last?.split(separator: ",").last.map { $0.filter { $0 != " " && $0 != "\t" } }
        }
        var found: [RequestOrigin] = []
        for authority in [provenance.authority] + named {
            for scheme in RequestOrigin.Scheme.allCases {
                guard let origin = try? RequestOrigin(scheme: scheme.rawValue, authority: authority),
                    !found.contains(origin)
                else { continue }
                found.append(origin)
            }
        }
        return found
    }
}

extension AuthService {
    /// The origins of the service's own routes, each once.
    package static func origins(_ publicOrigin: RequestOrigin?, _ others: [RequestOrigin]) -> [RequestOrigin] {
        var origins = publicOrigin.map { [$0] } ?? []
        for other in others where !origins.contains(other) { origins.append(other) }
        return origins
    }
}
