internal import AuthContract
internal import AuthService
internal import HTTPTypes
internal import HummingbirdCore
internal import Logging
internal import NIOHTTP1
internal import StrictJSON

/// Answers the public API: finds the route, reads the body within its limit, calls the service, writes one log line.
struct PublicResponder: ListenerResponder {
    let service: AuthService
    let settings: LiveSettings
    let bodies: BodyBudget
    let proxies: TrustedProxies
    let random: any RandomSource
    let metrics: ServerMetrics
    let log: RequestLog

    func respond(to request: Request, over connection: ConnectionContext) async throws -> Response {
        let started = ContinuousClock.now
        let room = bodies.share()
        defer { room.release() }
        let outcome = try await outcome(of: request, over: connection, within: room)
        let frame = ResponseFrame(for: request.head, requestID: RandomUUID(from: random).text, now: service.clock.now)
        let answer = answer(outcome, frame)
        let took = started.duration(to: .now)
        metrics.publicRequest(outcome.route, answer, took: took)
        if !request.headers[values: .developmentMode].isEmpty { metrics.developmentRequest(answer) }
        if outcome.isTimeSigned || answer.outcome == ErrorCode.clockSkew.rawValue, let time = outcome.time {
            metrics.clockOffset(time.subtractingSaturating(frame.now.seconds))
        }
        log.write(
            requestID: frame.requestID, method: request.method.rawValue, route: outcome.route?.rawValue, answer: answer,
            reason: outcome.reason, took: took, app: outcome.app, device: outcome.device)
        return frame.response(answer)
    }

    // MARK: From the request to its outcome

    private func outcome(
        of http: Request, over connection: ConnectionContext, within room: BodyBudget.Share
    ) async throws -> RequestOutcome {
        let headers = HeaderFields(http.headers.lazy.map { ($0.name.rawName, $0.value) })
        let route: Route
        let target: RequestTarget
        do {
            (route, target) = try PublicRequest.route(of: http.head)
        } catch {
            return RequestOutcome(nil, .failure(Refusal(answering: error)), claimedBy: headers)
        }
        do {
            return try await outcome(
                of: try PublicRequest(
                    http, to: route, target, headers, over: connection, trusting: proxies, room: room))
        } catch let error as HTTPParserError {
            throw error
        } catch {
            return RequestOutcome(route, .failure(Refusal(answering: error)), claimedBy: headers)
        }
    }

    private func outcome(of request: PublicRequest) async throws -> RequestOutcome {
        switch request.route {
        case .challenge: try await challenge(request)
        case .register: try await register(request)
        case .status:
            try await signed(request, for: .status) { verified, _ in .json(try await service.status(verified)) }
        case .rotateKey:
            try await signed(request, for: .rotateKey) { verified, body in
                .json(try await service.rotateKey(RotateKeyRequest(received: body), verified))
            }
        case .device:
            try await signed(request, for: .deregister) { verified, _ in
                try await service.deregister(verified)
                return .noContent
            }
        case .token:
            try await signed(request, for: .token) { verified, body in
                .json(try await service.issueToken(TokenRequest(received: body), verified))
            }
        case .verify: try await verify(request)
        case .keySet, .wellKnownKeySet: try await published(request) { try await service.signingKeys.keySet() }
        case .openIDConfiguration, .authorizationServer:
            try await published(request) {
                guard let metadata = service.issuerMetadata else {
                    throw Refusal(.notFound, "server.public_origin is not set")
                }
                return metadata
            }
        }
    }

    /// A document for everybody, that may be cached.
    private func published(
        _ request: PublicRequest, _ document: () async throws -> JSONObject
    ) async throws -> RequestOutcome {
        RequestOutcome(
            request.route,
            try await RequestOutcome.result {
                var answer = APIResponse.json(try await document())
                answer.cacheControl = "public, max-age=\(SigningKeys.cacheLife)"
                return answer
            }, claimedBy: request.headers)
    }

    private func challenge(_ request: PublicRequest) async throws -> RequestOutcome {
        try await service.admitEnrolment(from: request.provenance.address)
        let bytes = try await request.body(upTo: settings.limits.deviceBody)
        let body = try ChallengeRequest(received: bytes)
        let result = try await RequestOutcome.result {
            .json(try await service.issueChallenge(body, request.incoming(bytes)))
        }
        return RequestOutcome(.challenge, result, app: body.appID)
    }

    private func register(_ request: PublicRequest) async throws -> RequestOutcome {
        try await service.admitEnrolment(from: request.provenance.address)
        let bytes = try await request.body(upTo: settings.limits.deviceBody)
        let body = try RegisterRequest(received: bytes)
        do throws(Refusal) {
            let response = try await service.register(body, request.incoming(bytes))
            metrics.registration(body, response.status.rawValue)
            return RequestOutcome(
                .register, .success(.json(response, outcome: response.status.rawValue)), app: body.appID,
                device: response.deviceID)
        } catch {
            metrics.registration(body, error.code.rawValue)
            return RequestOutcome(.register, .failure(error), app: body.appID)
        }
    }

    /// Judges a device's own request, and lets `handler` answer it if it is accepted.
    private func signed(
        _ request: PublicRequest, for operation: Operation,
        _ handler: (VerifiedRequest, _ body: [UInt8]) async throws -> APIResponse
    ) async throws -> RequestOutcome {
        let body = try await request.body(upTo: settings.limits.deviceBody)
        let judgement = await service.judge(request.incoming(body), for: operation)
        var outcome: RequestOutcome
        switch judgement.result {
        case .success(let verified):
            metrics.verified(verified.scheme, keyAgeSeconds: verified.keyAgeSeconds)
            outcome = RequestOutcome(
                request.route, try await RequestOutcome.result { try await handler(verified, body) },
                app: verified.appID,
                device: verified.deviceID, time: verified.signedAt.seconds)
            outcome.isTimeSigned = true
        case .failure(let refusal):
            outcome = RequestOutcome(request.route, .failure(refusal), claimedBy: request.headers)
        }
        outcome.signed = judgement.signed
        outcome.missingAssertion = judgement.signed?.missingAssertion
        return outcome
    }

    /// Judges a request that another service received.
    private func verify(_ request: PublicRequest) async throws -> RequestOutcome {
        let address = request.provenance.address
        let credential = try await service.credentials.authenticate(
            authorization: request.http.authorization, from: address)
        metrics.used(credential, at: service.clock.now)
        let question: VerifyRequest
        do {
            question = try VerifyRequest(received: try await request.body(upTo: settings.limits.verifyBody))
        } catch let refusal as Refusal {
            return try await observed(refusal, HeaderFields(), by: credential)
        }
        do throws(Refusal) { try requireWithinLimit(question) } catch {
            return try await observed(error, question.headers, by: credential)
        }
        let verdict = await service.verify(question, by: credential, address: address)
        var outcome = RequestOutcome(
            .verify, verdict.result.map { .json($0, outcome: $0.outcome) }, claimedBy: question.headers, of: credential)
        let app = credential.countedApp(claimed: outcome.app)
        switch verdict.result {
        case .success(let response):
            metrics.verdict(response.outcome, of: app)
            if let identity = response.identity {
                outcome.isTimeSigned = true
                metrics.verified(identity.signatureScheme, keyAgeSeconds: identity.keyAgeSeconds)
            }
        case .failure(let refusal):
            // An error of the caller's own credential must not look like a verdict.
            guard verdict.isVerdict, refusal.code != .unauthorized, refusal.code != .forbidden else { break }
            outcome.isVerdict = true
            outcome.missingAssertion = verdict.missingAssertion
            metrics.verdict(refusal.code.rawValue, of: app)
        }
        return outcome
    }

    /// A device may send a body that is too large to be judged. Under observation, such a request is not refused either.
    private func observed(
        _ refusal: Refusal, _ headers: HeaderFields, by credential: Credential
    ) async throws -> RequestOutcome {
        guard refusal.code == .payloadTooLarge else { throw refusal }
        let verdict = await service.verdict(refusing: refusal, of: headers, by: credential)
        guard case .success(let response) = verdict.result else { throw refusal }
        let outcome = RequestOutcome(
            .verify, .success(.json(response, outcome: response.outcome)), claimedBy: headers, of: credential)
        metrics.verdict(response.outcome, of: credential.countedApp(claimed: outcome.app))
        return outcome
    }

    private func requireWithinLimit(_ question: VerifyRequest) throws(Refusal) {
        guard case .bytes(let body) = question.body, body.count > settings.limits.verifiedBody else { return }
        throw Refusal(.payloadTooLarge, "the described body has \(body.count) bytes")
    }

    // MARK: From the outcome to the answer

    private func answer(_ outcome: RequestOutcome, _ frame: ResponseFrame) -> APIResponse {
        var answer: APIResponse
        switch outcome.result {
        case .success(let success): answer = success
        case .failure(let refusal): answer = self.answer(refusal, outcome, frame)
        }
        // Every response to the device's own requests has the demand until the device has rotated.
        if let demand = outcome.signed?.rotationDemand, outcome.route != .rotateKey || answer.status != 200 {
            answer.headers.append((HeaderName.rotate, demand.headerValue))
        }
        return answer
    }

    private func answer(_ refusal: Refusal, _ outcome: RequestOutcome, _ frame: ResponseFrame) -> APIResponse {
        var answer = frame.answer(refusal, verified: outcome.isVerdict ? false : nil)
        switch (refusal.code, outcome.route) {
        case (.assertionRequired, _):
            if let demand = outcome.missingAssertion {
                answer.headers.append((HeaderName.assertion, demand.headerValue))
            }
        case (.methodNotAllowed, let route?):
            answer.headers.append(("Allow", route.methods.joined(separator: ", ")))
        case (.unauthorized, .verify): answer.headers.append(("WWW-Authenticate", "Bearer"))
        default: break
        }
        return answer
    }
}

extension RequestOutcome {
    /// The reason of a refusal, for the log.
    fileprivate var reason: String? {
        if case .failure(let refusal) = result { refusal.reason } else { nil }
    }
}

extension Int64 {
    /// The difference, clamped, because a client may have sent one of the numbers.
    fileprivate func subtractingSaturating(_ other: Int64) -> Int64 {
        let (difference, overflow) = subtractingReportingOverflow(other)
        return overflow ? (self < other ? .min : .max) : difference
    }
}

extension Credential {
    /// The app for which a verdict is counted; nil unless the credential is for it.
    fileprivate func countedApp(claimed app: AppID?) -> AppID? { app.flatMap { scope.covers($0) ? $0 : nil } }
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
