internal import AuthContract
internal import AuthService
internal import HTTPTypes
internal import HummingbirdCore
internal import Logging
internal import NIOHTTP1

/// Answers the public API: finds the route, reads the body within its limit, asks the service; one log line a request.
struct PublicResponder: ListenerResponder {
    let service: AuthService
    let settings: LiveSettings
    let bodies: BodyBudget
    let proxies: TrustedProxies
    let random: any RandomSource
    let metrics: ServerMetrics
    let log: RequestLog

    /// What became known of a request on the way, whether it was answered or refused.
    private struct Progress {
        var route: Route?
        /// Where the request is one of a device's own, and it verified.
        var verified: VerifiedRequest?
        /// Whether a refusal from here on is a verdict on somebody else's request.
        var judgesAnother = false
        /// The app that a verdict counts for.
        var judgedApp: AppID?
        /// Whose request it says it is, where its own headers do not say that.
        var claimed: ClaimedIdentity?
        /// Whether a signature verified: then the time in the headers is the client's.
        var isSigned = false
        /// What its body takes.
        var body: BodyBudget.Hold
    }

    func respond(to request: Request, over connection: ConnectionContext) async throws -> Response {
        let started = ContinuousClock.now
        var progress = Progress(body: bodies.hold)
        defer { progress.body.release() }
        var refusal: Refusal?
        var answer: Answer?
        do {
            answer = try await self.answer(request, connection, &progress)
        } catch let error as HTTPParserError {
            throw error
        } catch {
            refusal = Refusal(answering: error)
        }
        let frame = AnswerFrame(for: request.head, requestID: RandomUUID(from: random).text, now: service.clock.now)
        let final = rotating(
            answer ?? refused(refusal, progress, frame), progress,
            progress.verified?.rotationDemand ?? refusal?.rotationDemand)
        let took = started.duration(to: .now)
        metrics.publicRequest(progress.route, final, took: took)
        if !request.headers[values: .developmentMode].isEmpty { metrics.developmentRequest(final) }
        let claimed = progress.claimed ?? ClaimedIdentity(request.headers)
        if progress.isSigned || final.outcome == ErrorCode.clockSkew.rawValue, let time = claimed.time {
            metrics.clockOffset(time.subtractingSaturating(frame.now.seconds))
        }
        log.write(
            requestID: frame.requestID, method: request.method.rawValue, route: progress.route?.rawValue, answer: final,
            reason: refusal?.reason, took: took, claimed: claimed)
        return frame.response(final)
    }

    private func refused(_ refusal: Refusal?, _ progress: Progress, _ frame: AnswerFrame) -> Answer {
        let refusal = refusal ?? Refusal(.internalError, "answered neither way")
        // Errors of the caller's own credential never look like a verdict on the request it asks about.
        let isVerdict = progress.judgesAnother && refusal.code != .unauthorized && refusal.code != .forbidden
        var answer = frame.answer(refusal, verified: isVerdict ? false : nil)
        if isVerdict { metrics.verdict(refusal.code.rawValue, of: progress.judgedApp) }
        if refusal.code == .methodNotAllowed, let route = progress.route {
            answer.headers.append(("Allow", route.methods.joined(separator: ", ")))
        }
        if refusal.code == .unauthorized, progress.route == .verify {
            answer.headers.append(("WWW-Authenticate", "Bearer"))
        }
        return answer
    }

    /// Tells a device that it must rotate, with every answer to a request of its own, until it has.
    private func rotating(_ answer: Answer, _ progress: Progress, _ demand: RotationDemand?) -> Answer {
        guard let demand else { return answer }
        if progress.route == .rotateKey, answer.status == 200 { return answer }
        var answer = answer
        answer.headers.append((HeaderName.rotate, demand.headerValue))
        return answer
    }

    private func answer(
        _ request: Request, _ connection: ConnectionContext, _ progress: inout Progress
    ) async throws -> Answer {
        try Expectation.check(request.head)
        let target = try RequestTarget(request.head.path ?? "")
        guard let route = Route(rawValue: target.path.text) else { throw Refusal(.notFound, "no such path") }
        progress.route = route
        guard route.methods.contains(request.method.rawValue) else {
            throw Refusal(.methodNotAllowed, "not \(route.method)")
        }
        let provenance = try RequestProvenance(of: request.head, over: connection, trusting: proxies)
        if route.hasJSONBody { try request.requireJSON() }
        switch route {
        case .challenge:
            try service.admitEnrolment(from: provenance.address)
            let (http, body) = try await read(request, target, provenance, connection, &progress)
            let question = try ChallengeRequest(received: body)
            progress.claimed = ClaimedIdentity(app: question.appID)
            return .json(try await service.issueChallenge(question, http))
        case .register:
            try service.admitEnrolment(from: provenance.address)
            let (http, body) = try await read(request, target, provenance, connection, &progress)
            return try await register(try RegisterRequest(received: body), http, &progress)
        case .status:
            let (verified, _) = try await authenticate(request, target, provenance, connection, for: .status, &progress)
            return .json(try await service.status(verified))
        case .rotateKey:
            let (verified, body) = try await authenticate(
                request, target, provenance, connection, for: .rotateKey, &progress)
            return .json(try await service.rotateKey(RotateKeyRequest(received: body), verified))
        case .device:
            let (verified, _) = try await authenticate(
                request, target, provenance, connection, for: .deregister, &progress)
            try await service.deregister(verified)
            return .noContent
        case .token:
            let (verified, body) = try await authenticate(
                request, target, provenance, connection, for: .token, &progress)
            return .json(try await service.issueToken(TokenRequest(received: body), verified))
        case .verify:
            let credential = try await service.credentials.authenticate(
                authorization: request.authorization, from: provenance.address)
            metrics.used(credential, at: service.clock.now)
            let question = try VerifyRequest(
                received: try await request.bytes(
                    upTo: settings.limits.verifyBody, within: &progress.body, over: connection))
            try requireWithinLimit(question)
            progress.judgesAnother = true
            progress.claimed = ClaimedIdentity(question.headers)
            progress.judgedApp = credential.judgedApp(claimed: progress.claimed?.app)
            let response = try await service.verify(question, by: credential, address: provenance.address)
            metrics.verdict(response.outcome, of: progress.judgedApp)
            if let identity = response.identity {
                progress.isSigned = true
                metrics.verified(identity.signatureScheme, keyAgeSeconds: identity.keyAgeSeconds)
            }
            return .json(response, outcome: response.outcome)
        case .keySet:
            var answer = Answer.json(try await service.signingKeys.keySet())
            answer.cacheControl = "public, max-age=\(SigningKeys.cacheLife)"
            return answer
        }
    }

    private func register(
        _ body: RegisterRequest, _ http: IncomingRequest, _ progress: inout Progress
    ) async throws -> Answer {
        progress.claimed = ClaimedIdentity(app: body.appID)
        do {
            let response = try await service.register(body, http)
            progress.claimed?.device = response.deviceID
            metrics.registration(body, response.status.rawValue)
            return .json(response, outcome: response.status.rawValue)
        } catch {
            metrics.registration(body, Refusal(answering: error).code.rawValue)
            throw error
        }
    }

    private func authenticate(
        _ request: Request, _ target: RequestTarget, _ provenance: RequestProvenance,
        _ connection: ConnectionContext, for operation: Operation, _ progress: inout Progress
    ) async throws -> (VerifiedRequest, body: [UInt8]) {
        let (http, body) = try await read(request, target, provenance, connection, &progress)
        let verified = try await service.authenticate(http, for: operation)
        progress.verified = verified
        progress.claimed = ClaimedIdentity(verified)
        progress.isSigned = true
        metrics.verified(verified.scheme, keyAgeSeconds: verified.keyAgeSeconds)
        return (verified, body)
    }

    /// The request as the rules see it, with its body read to the end.
    private func read(
        _ request: Request, _ target: RequestTarget, _ provenance: RequestProvenance,
        _ connection: ConnectionContext, _ progress: inout Progress
    ) async throws -> (IncomingRequest, body: [UInt8]) {
        let body = try await request.bytes(upTo: settings.limits.deviceBody, within: &progress.body, over: connection)
        let incoming = IncomingRequest(
            method: request.method.rawValue, scheme: provenance.scheme, authority: provenance.authority,
            path: target.path.text, query: target.query,
            headers: HeaderFields(request.headers.lazy.map { ($0.name.rawName, $0.value) }), body: .bytes(body),
            address: provenance.address)
        return (incoming, body)
    }

    private func requireWithinLimit(_ question: VerifyRequest) throws(Refusal) {
        guard case .bytes(let body) = question.body, body.count > settings.limits.verifiedBody else { return }
        throw Refusal(.payloadTooLarge, "the body asked about has \(body.count) bytes")
    }
}

extension Int64 {
    /// The difference, of numbers of which one is a client's.
    fileprivate func subtractingSaturating(_ other: Int64) -> Int64 {
        let (difference, overflow) = subtractingReportingOverflow(other)
        return overflow ? (self < other ? .min : .max) : difference
    }
}

extension Route {
    /// The methods that the route answers. HEAD is nothing that a device could sign a read with, so only what is public has it.
    var methods: [String] { self == .keySet ? ["GET", "HEAD"] : [method] }

    /// Whether a request has a body of JSON.
    var hasJSONBody: Bool { method == "POST" }
}

extension Credential {
    /// The app that a request counts for: the one it names, where the credential is for that, or the only one there is.
    fileprivate func judgedApp(claimed app: AppID?) -> AppID? {
        if let app { return apps.contains(app) ? app : nil }
        return apps.count == 1 ? apps.first : nil
    }
}

extension VerifyResponse {
    fileprivate var outcome: String {
        switch self {
        case .verified: "verified"
        case .observed(let code, _): "observed_\(code.rawValue)"
        }
    }

    fileprivate var identity: VerifiedIdentity? {
        switch self {
        case .verified(let identity): identity
        case .observed(_, let identity): identity
        }
    }
}
