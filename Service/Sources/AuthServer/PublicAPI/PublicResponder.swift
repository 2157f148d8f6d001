internal import AuthContract
internal import AuthService
internal import HTTPTypes
internal import HummingbirdCore
internal import Logging
internal import NIOHTTP1
internal import StrictJSON

/// Answers the public API: finds the route, reads the body within its limit, calls the service, logs the request.
struct PublicResponder: ListenerResponder {
    let service: AuthService
    let settings: ReloadableSettings
    let bodies: BodyBudget
    let proxies: TrustedProxies
    let random: any RandomSource
    let metrics: ServerMetrics
    let log: RequestLog
    /// Nil: requests are not traced.
    let tracer: RequestTracer?

    func respond(to request: Request, over connection: ConnectionContext) async throws -> Response {
        let id = request.head.requestID(over: connection, trusting: proxies, random)
        return try await RequestID.$current.withValue(id) {
            guard let tracer else { return try await respond(to: request, id, over: connection) }
            return try await tracer.tracing(request.head, id, over: connection, trusting: proxies) { span in
                try await respond(to: request, id, over: connection, span)
            }
        }
    }

    private func respond(
        to request: Request, _ id: String, over connection: ConnectionContext, _ span: TraceSpan? = nil
    ) async throws -> Response {
        let started = ContinuousClock.now
        let room = bodies.share()
        defer { room.release() }
        var outcome = Outcome(of: HeaderFields(request.headers.lazy.map { ($0.name.rawName, $0.value) }))
        do {
            outcome.result = .success(try await answer(request, over: connection, within: room, &outcome))
        } catch let error as HTTPParserError {
            throw error
        } catch {
            outcome.result = .failure(Refusal.answering(error))
        }
        let frame = ResponseFrame(for: request.head, requestID: id, now: service.clock.now)
        let answer = outcome.answer(in: frame)
        let took = started.duration(to: .now)
        span?.add(outcome, answer, method: request.method.rawValue)
        metrics.count(outcome, answer, at: frame.now, took: took)
        if let verdict = outcome.counted(answer, isKnown: service.apps.isKnown) { service.history.count(verdict) }
        if let root = outcome.refusal?.untrustedRoot { log.write(root, app: outcome.app) }
        log.write(
            requestID: frame.requestID, method: request.method.rawValue, route: outcome.route?.rawValue, answer: answer,
            reason: outcome.reason, tellsOfSetUp: outcome.refusal?.tellsOfSetUp ?? false, took: took, app: outcome.app,
            device: outcome.device)
        return frame.response(answer)
    }

    /// Answers a request, or throws its refusal. Adds to `outcome` what becomes known of the request.
    private func answer(
        _ http: Request, over connection: ConnectionContext, within room: BodyBudget.Share, _ outcome: inout Outcome
    ) async throws -> APIResponse {
        let forwarded = ForwardedRequest(
            method: http.method.rawValue, target: http.head.path ?? "", headers: outcome.headers,
            scheme: http.head.scheme ?? "http")
        let (route, target) = try PublicRequest.route(of: http.head, forwarded)
        outcome.route = route
        let request = try PublicRequest(
            http, to: route, target, outcome.headers, over: connection, trusting: proxies, room: room)
        if request.provenance.address.isUnnamed, await service.recordUnnamed(request.provenance.address) {
            metrics.securityEvent(.proxyNamesNoClient)
            log.writeUnnamed(request.provenance.address)
        }
        if let forwarded { return try await judge(forwarded, request, &outcome) }
        switch route {
        case .challenge: return try await challenge(request, &outcome)
        case .register: return try await register(request, &outcome)
        case .status:
            let (verified, _) = try await signed(request, for: .status, &outcome)
            return .json(try await service.status(verified))
        case .rotateKey:
            let (verified, body) = try await signed(request, for: .rotateKey, &outcome)
            let rotation = try RotateKeyRequest(received: body)
            let answer = try await tracer.step("rotate") { try await service.rotateKey(rotation, verified) }
            // A repeated rotation names the current key, and a demand is about that key.
            outcome.hasNewKey = (try? DevicePublicKey(base64: rotation.newPublicKeyText)) != verified.device.key
            return .json(answer)
        case .device:
            let (verified, _) = try await signed(request, for: .deregister, &outcome)
            try await service.deregister(verified)
            return .noContent
        case .token:
            let (verified, body) = try await signed(request, for: .token, &outcome)
            return .json(try await service.issueToken(TokenRequest(received: body), verified))
        case .verify: return try await verify(request, &outcome)
        case .keySet, .wellKnownKeySet: return .keySet(try await service.signingKeys.keySet())
        case .forward: throw Refusal(.notFound, "no forwarded request")
        case .openIDConfiguration, .authorizationServer:
            guard let metadata = service.issuerMetadata else {
                throw Refusal(setUp: .notFound, "a client looks for the issuer, and server.public_origin is not set")
            }
            return .json(metadata)
        }
    }

    private func challenge(_ request: PublicRequest, _ outcome: inout Outcome) async throws -> APIResponse {
        try await service.admitEnrolment(from: request.provenance.address)
        let bytes = try await request.body(upTo: settings.limits.deviceBody)
        let body = try ChallengeRequest(received: bytes)
        outcome.named = (body.appID, nil)
        return .json(try await service.issueChallenge(body, request.incoming(bytes)))
    }

    private func register(_ request: PublicRequest, _ outcome: inout Outcome) async throws -> APIResponse {
        try await service.admitEnrolment(from: request.provenance.address)
        let bytes = try await request.body(upTo: settings.limits.deviceBody)
        let body = try RegisterRequest(received: bytes)
        (outcome.registration, outcome.named) = (body, (body.appID, nil))
        let (response, version) = try await tracer.step("register") {
            try await service.registered(body, request.incoming(bytes))
        }
        outcome.named?.device = response.deviceID
        outcome.registeredVersion = version
        return .json(response, outcome: response.status.rawValue)
    }

    /// Verifies a device's own request, and returns the request with its body. Throws the refusal.
    private func signed(
        _ request: PublicRequest, for operation: Operation, _ outcome: inout Outcome
    ) async throws -> (VerifiedRequest, body: [UInt8]) {
        let body = try await request.body(upTo: settings.limits.deviceBody)
        let judgement = await tracer.step("verify") { await service.judge(request.incoming(body), for: operation) }
        outcome.judgement = judgement
        return (try judgement.get(), body)
    }

    /// Judges a request that another service received.
    private func verify(_ request: PublicRequest, _ outcome: inout Outcome) async throws -> APIResponse {
        let address = request.provenance.address
        let credential = try await service.credentials.authenticate(
            authorization: request.http.authorization, from: address)
        outcome.credential = credential
        var described = HeaderFields()
        let judgement: Judgement
        do {
            let question = try VerifyRequest(received: try await request.body(upTo: settings.limits.verifyBody))
            described = question.headers
            try requireWithinLimit(question)
            outcome.described = described
            judgement = try await tracer.step("verify") {
                try await service.verify(question, by: credential, address: address)
            }
        } catch let refusal as Refusal where refusal.code == .payloadTooLarge {
            // A device may send a body that is too large to be judged. In mode `observe`, such a request is not refused either.
            judgement = await service.judgement(refusing: refusal, of: described, by: credential)
            guard judgement.isObserved else { throw refusal }
            outcome.described = described
        }
        outcome.judgement = judgement
        return .verdict(try judgement.verdict())
    }

    /// Judges a request that a gateway forwards.
    private func judge(
        _ forwarded: ForwardedRequest, _ request: PublicRequest, _ outcome: inout Outcome
    ) async throws -> APIResponse {
        let address = request.provenance.address
        let credential = try await service.credentials.authenticate(text: forwarded.credential(), from: address)
        (outcome.credential, outcome.described) = (credential, forwarded.headers)
        // First check that the credential includes the app: an error in the credential is not a verdict.
        if let app = try? credential.app(claimedIn: forwarded.headers) { try credential.requireQuestions(about: app) }
        let judgement: Judgement
        do {
            let body = credential.bodies == .whole ? try await request.body(upTo: settings.limits.verifiedBody) : []
            let question = try forwarded.question(credential.bodies, received: body)
            judgement = try await tracer.step("verify") {
                try await service.verify(question, by: credential, address: address)
            }
        } catch let refusal as Refusal where refusal.code == .payloadTooLarge || refusal.code == .invalidRequest {
            judgement = await service.judgement(refusing: refusal, of: forwarded.headers, by: credential)
        }
        outcome.judgement = judgement
        return .forwarded(try judgement.verdict())
    }

    private func requireWithinLimit(_ question: VerifyRequest) throws(Refusal) {
        guard case .bytes(let body) = question.body, body.count > settings.limits.verifiedBody else { return }
        throw Refusal(
            setUp: .payloadTooLarge,
            "the described body has \(body.count) bytes, and limits.verified_body_bytes is \(settings.limits.verifiedBody)"
        )
    }
}
