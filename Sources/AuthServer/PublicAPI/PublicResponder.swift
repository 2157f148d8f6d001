internal import AuthContract
internal import AuthService
internal import HTTPTypes
internal import Hummingbird
internal import Logging
internal import NIOCore
internal import StrictJSON

/// Answers the public API: finds the route, reads the body within its limit, asks the service, writes one log line.
struct PublicResponder: HTTPResponder {
    typealias Context = ConnectionContext

    let service: AuthService
    let limits: RequestLimits
    let random: any RandomSource
    let log: RequestLog

    func respond(to request: Request, context: ConnectionContext) async throws -> Response {
        let started = ContinuousClock.now
        let frame = AnswerFrame(
            requestID: RandomUUID(from: random).text, now: service.clock.now,
            prefersProblem: request.headers[values: .accept].contains { $0.contains("application/problem+json") })
        let target = request.head.path ?? ""
        let path = target.prefix { $0 != "?" }
        let route = Route(rawValue: String(path))
        var answer: Answer
        var reason: String?
        do {
            answer = try await self.answer(request, route, context)
        } catch {
            let refusal = Self.refusal(error)
            reason = refusal.reason
            answer = frame.answer(refusal, verified: Self.judgesAnother(route, refusal) ? false : nil)
            if refusal.code == .methodNotAllowed, let route { answer.headers.append(("Allow", route.method)) }
        }
        log.write(
            requestID: frame.requestID, method: request.method.rawValue, route: route?.rawValue, answer: answer,
            reason: reason, took: started.duration(to: .now))
        return frame.response(answer)
    }

    /// Errors of the caller's own credential never look like a verdict on the request it asks about.
    private static func judgesAnother(_ route: Route?, _ refusal: Refusal) -> Bool {
        route == .verify
            && ![.unauthorized, .forbidden, .methodNotAllowed, .payloadTooLarge, .unsupportedMediaType]
                .contains(refusal.code)
    }

    private static func refusal(_ error: any Error) -> Refusal {
        switch error {
        case let refusal as Refusal: refusal
        case let error as JSONError: Refusal(malformed: error)
        case let error as ContractError: Refusal(malformed: error)
        default: Refusal(.internalError, "\(type(of: error)): \(error)")
        }
    }

    private func answer(_ request: Request, _ route: Route?, _ context: ConnectionContext) async throws -> Answer {
        guard let route else { throw Refusal(.notFound, "no such path") }
        guard request.method.rawValue == route.method else { throw Refusal(.methodNotAllowed, "not \(route.method)") }
        switch route {
        case .challenge:
            try service.admitEnrolment(from: context.address)
            let (http, body) = try await read(request, context, upTo: limits.deviceBody)
            return .json(try await service.issueChallenge(try json(body, request), http))
        case .register:
            try service.admitEnrolment(from: context.address)
            let (http, body) = try await read(request, context, upTo: limits.deviceBody)
            let response = try await service.register(try json(body, request), http)
            return .json(response, outcome: response.status.rawValue)
        case .status:
            let (http, _) = try await read(request, context, upTo: limits.deviceBody)
            let verified = try await service.authenticate(http, for: .status)
            return try await rotating(verified, .json(service.status(verified)))
        case .rotateKey:
            let (http, body) = try await read(request, context, upTo: limits.deviceBody)
            let verified = try await service.authenticate(http, for: .rotateKey)
            return .json(try await service.rotateKey(try json(body, request), verified))
        case .device:
            let (http, _) = try await read(request, context, upTo: limits.deviceBody)
            try await service.deregister(try await service.authenticate(http, for: .deregister))
            return .noContent
        case .token:
            let (http, body) = try await read(request, context, upTo: limits.deviceBody)
            let verified = try await service.authenticate(http, for: .token)
            return rotating(verified, .json(try await service.issueToken(try json(body, request), verified)))
        case .verify:
            let credential = try await service.credentials.authenticate(authorization: request.headers[.authorization])
            let body = try await collect(request, upTo: limits.verifyBody)
            let response = try await service.verify(
                try json(body, request), by: credential, address: context.address)
            return .json(response, outcome: response.outcome)
        case .keySet:
            var answer = Answer.json(.object(try await service.signingKeys.keySet()))
            answer.cacheControl = "public, max-age=\(SigningKeys.cacheLife)"
            return answer
        }
    }

    /// Tells a device that it must rotate, with any answer to a request of its own.
    private func rotating(_ verified: VerifiedRequest, _ answer: Answer) -> Answer {
        guard let by = verified.device.mustRotateBy else { return answer }
        var answer = answer
        answer.headers.append((HeaderName.rotate, "required; by=\(by)"))
        return answer
    }

    /// The request as the rules see it, with its body read to the end.
    private func read(
        _ request: Request, _ context: ConnectionContext, upTo limit: Int
    ) async throws -> (IncomingRequest, [UInt8]) {
        let target = request.head.path ?? ""
        let parts = target.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        let body = try await collect(request, upTo: limit)
        let incoming = IncomingRequest(
            method: request.method.rawValue, scheme: "http", authority: request.head.authority ?? "",
            path: parts.first ?? "", query: parts.count > 1 ? parts[1] : nil,
            headers: HeaderFields(request.headers.map { ($0.name.rawName, $0.value) }), body: .bytes(body),
            address: context.address)
        return (incoming, body)
    }

    private func collect(_ request: Request, upTo limit: Int) async throws -> [UInt8] {
        if let length = request.headers[.contentLength].flatMap({ Int($0) }), length > limit {
            throw Refusal(.payloadTooLarge, "\(length) bytes")
        }
        var bytes: [UInt8] = []
        for try await buffer in request.body {
            guard bytes.count + buffer.readableBytes <= limit else {
                throw Refusal(.payloadTooLarge, "more than \(limit) bytes")
            }
            bytes.append(contentsOf: buffer.readableBytesView)
        }
        return bytes
    }

    private func json<Body: WireBody>(
        _ bytes: [UInt8], _ request: Request, as type: Body.Type = Body.self
    ) throws -> Body {
        let mediaType = request.headers[.contentType]?.prefix { $0 != ";" }.lowercased() ?? ""
        guard mediaType.trimmingSuffix(" ") == "application/json" else {
            throw Refusal(.unsupportedMediaType, "Content-Type is not application/json")
        }
        return try Body(parsing: bytes, limits: JSONValue.Limits(bytes: max(bytes.count, 1), depth: 16))
    }
}

extension String {
    fileprivate func trimmingSuffix(_ character: Character) -> Substring {
        var text = self[...]
        while text.last == character { text.removeLast() }
        return text
    }
}

extension VerifyResponse {
    fileprivate var outcome: String {
        switch self {
        case .verified: "verified"
        case .observed(let code, _): "observed_\(code.rawValue)"
        }
    }
}
