internal import AsyncHTTPClient
internal import AuthContract
internal import AuthServer
internal import HTTPTypes
internal import HummingbirdCore
internal import Logging
internal import NIOCore
internal import RequestVerification

/// Answers the requests of a proxy: verifies each one, and forwards it if the verifier allows.
struct ProxyResponder: Sendable {
    let backend: Backend
    let settings: AuthProxySettings
    let metrics: ProxyMetrics
    let state: ProxyState
    let logger: Logger
    private let bodies: BodyBudget

    init(
        backend: Backend, settings: AuthProxySettings, metrics: ProxyMetrics, state: ProxyState, logger: Logger
    ) {
        self.backend = backend
        self.settings = settings
        self.metrics = metrics
        self.state = state
        self.logger = logger
        bodies = BodyBudget(bytes: settings.server.limits.allBodies)
    }

    @Sendable func respond(to request: Request, over connection: SidecarConnection) async throws -> Response {
        let started = ContinuousClock.now
        let room = bodies.share()
        defer { room.release() }
        var line = ProxyLogLine(requestID: connection.requestID, method: request.method.rawValue)
        let response: Response
        do {
            response = try await forward(request, over: connection, within: room, &line)
        } catch let declined as Declined {
            line.outcome = declined.outcome
            line.reason = declined.reason
            let refused = declined.response(isHead: request.method == .head, requestID: line.requestID)
            (line.code, response) = refused
        } catch {
            // The client is gone, or its body is malformed HTTP. The HTTP library answers malformed HTTP and ends the connection.
            line.outcome = .clientGone
            line.reason = "\(type(of: error))"
            metrics.request(.clientGone)
            logger.log(line, status: 0, took: started.duration(to: .now))
            throw error
        }
        metrics.request(line.outcome)
        logger.log(line, status: response.status.code, took: started.duration(to: .now))
        return response
    }

    private func forward(
        _ request: Request, over connection: SidecarConnection, within room: BodyBudget.Share,
        _ line: inout ProxyLogLine
    ) async throws -> Response {
        guard let judge = state.judge else { throw Declined.starting }
        var received = ReceivedRequest(
            request.head, body: .bytes([]), peer: connection.peer.map { .address($0) } ?? .unknown)
        let target = try Self.supportedTarget(of: request.head, received.headers)
        var body = try IncomingBody(of: request, received, limits: settings, over: connection)
        received.body = try await body.describe(within: room)
        let identity = try await verify(received, by: judge.verifier, &line)
        // The upstream headers are secrets, so only verified requests may carry them. In observe mode, unverified requests pass
        // too, and any client can name an app that is in this mode.
        guard identity != nil || judge.headers.upstream.lines.isEmpty else { throw Declined(observed: line.code) }
        let headers = judge.headers.request(
            received.headers, identity: identity.map(carrying) ?? [], peer: connection.peer ?? "unknown",
            isFromTrustedProxy: connection.isFromTrustedProxy, requestID: line.requestID)
        let sent = ContinuousClock.now
        let answer: Backend.Answer
        do {
            answer = try await body.send(to: backend, received.method, target, headers, isVerified: identity != nil)
        } catch let failure as BackendFailure {
            try Task.checkCancellation()
            throw Declined(failure)
        }
        metrics.answer(status: answer.status, took: sent.duration(to: .now))
        return response(answer, line.requestID)
    }

    /// The target that is sent to the backend. Throws if the proxy cannot forward the request.
    private static func supportedTarget(of head: HTTPRequest, _ headers: HeaderFields) throws(Declined) -> String {
        guard let target = ForwardedTarget.escaped(head.path ?? "") else {
            throw .invalid("The target is not a path and a query that all servers read in the same way.")
        }
        // TRACE would show the client the headers for the backend, which may be secrets.
        guard head.method != .trace, head.method != .connect else {
            throw .unsupported("This proxy does not forward \(head.method.rawValue).")
        }
        guard !headers.values("Upgrade").contains(where: { $0.lowercased().contains("websocket") }) else {
            throw .unsupported("This proxy does not forward WebSocket connections.")
        }
        guard headers.values("Host").count == 1 else { throw .invalid("Host must stand once.") }
        guard headers.values("Expect").allSatisfy({ $0.lowercased() == "100-continue" }) else {
            throw .invalid("Expect may only be 100-continue.")
        }
        guard !ForwardedHeaders.hidesItsMeaning(headers) else {
            throw .invalid("Connection names a header that must reach the backend.")
        }
        return target
    }

    /// The signer of the request; nil if the request passes only because of observe mode.
    private func verify(
        _ received: ReceivedRequest, by verifier: RequestVerifier, _ line: inout ProxyLogLine
    ) async throws -> VerifiedIdentity? {
        let asked = ContinuousClock.now
        let answer = await verifier.verify(received)
        // A client that is gone reads no answer, so do not forward its request.
        try Task.checkCancellation()
        metrics.verification(took: asked.duration(to: .now))
        switch answer {
        case .accepted(let identity):
            state.failure = nil
            (line.app, line.device) = (identity.appID, identity.deviceID)
            return identity
        case .observed(let code):
            state.failure = nil
            (line.outcome, line.code) = (.observed, code)
            return nil
        case .refused(let refusal):
            if refusal.isVerdict { state.failure = nil }
            throw Declined(.refused, refusal)
        case .unavailable(let refusal, let reason):
            if refusal.isOutage { state.failure = reason }
            throw Declined(.unavailable, refusal, reason: reason)
        }
    }

    /// The headers that carry an identity to the backend.
    private func carrying(_ identity: VerifiedIdentity) -> [(String, String)] {
        switch settings.identity {
        case .headers: Array(zip(VerifiedIdentity.headerNames, identity.headerValues))
        // The verifier accepts no answer without the token that it asked for.
        case .token: [(IdentityHeader.token, identity.identityToken ?? "")]
        }
    }

    /// The backend's answer for the client. Its body is read as fast as the client reads it.
    private func response(_ answer: Backend.Answer, _ requestID: String) -> Response {
        var fields = HTTPFields()
        for line in ForwardedHeaders.answer(answer.headers) {
            guard let name = HTTPField.Name(line.name), HTTPField.isValidValue(line.value) else { continue }
            fields.append(HTTPField(name: name, value: line.value))
        }
        if let name = HTTPField.Name(HeaderName.requestID), !fields.contains(name) { fields[name] = requestID }
        let body = ResponseBody(contentLength: nil) { [metrics, logger] writer in
            do {
                // Keep the closer until the answer ends. Its release closes the pipe, which aborts a request body that is still streamed.
                defer { withExtendedLifetime(answer.pipe) {} }
                for try await piece in answer.body { try await writer.write(piece) }
                // After a cancellation the body ends early and looks complete.
                try Task.checkCancellation()
            } catch {
                metrics.brokenAnswer()
                logger.info(
                    "an answer of the backend did not reach the client complete",
                    metadata: ["reason": "\(error)", "request_id": "\(requestID)"])
                throw error
            }
            try await writer.finish(nil)
        }
        return Response(status: .init(code: answer.status), headers: fields, body: body)
    }
}

/// The error for a request that does not reach the backend, or gets no answer from it.
struct Declined: Error {
    let outcome: ProxyMetrics.Outcome
    /// Why the request was declined. The reason is only logged.
    let reason: String?
    private let answer: @Sendable (_ requestID: String) -> RefusalAnswer

    /// A refusal by the verifier.
    init(_ outcome: ProxyMetrics.Outcome, _ refusal: RefusalAnswer, reason: String? = nil) {
        self.outcome = outcome
        self.reason = reason
        answer = { _ in refusal }
    }

    /// The refusal of an unverified request that observe mode would let pass.
    ///
    /// - Parameter code: the code with which mode `enforce` would refuse the request. Nil, or a code that only a newer
    ///   service knows, becomes `FORBIDDEN`.
    init(observed code: String?) {
        let known = code.flatMap { ErrorCode(rawValue: $0) } ?? .forbidden
        self.init(
            .refused, status: known.httpStatus, known, known.message,
            reason: "observed, and refused because of the upstream's headers")
    }

    /// A refusal that the proxy itself decided.
    init(
        _ outcome: ProxyMetrics.Outcome, status: Int, _ code: ErrorCode, _ message: String, retryAfter: Int? = nil,
        reason: String? = nil
    ) {
        self.outcome = outcome
        self.reason = reason ?? message
        answer = {
            RefusalAnswer(status: status, code: code, message: message, requestID: $0, retryAfter: retryAfter)
        }
    }

    static func invalid(_ message: String) -> Declined { unsupported(message, status: 400) }

    static func unsupported(_ message: String, status: Int = 501) -> Declined {
        Declined(.unsupported, status: status, .invalidRequest, message)
    }

    static var starting: Declined { unavailable(503, "The proxy starts.", .unavailable) }

    /// The answer to a request that the backend did not answer. 502 and 504 distinguish it from a missing verdict, which is 503.
    init(_ failure: BackendFailure) {
        switch failure {
        case .unreachable: self = .unavailable(502, "The backend cannot be reached.", .backendUnreachable, "\(failure)")
        case .tooSlow: self = .unavailable(504, "The backend did not answer in time.", .backendTimeout, "\(failure)")
        case .broken: self = .unavailable(502, "The backend did not answer.", .backendBroken, "\(failure)")
        }
    }

    static func unavailable(
        _ status: Int, _ message: String, _ outcome: ProxyMetrics.Outcome, _ reason: String? = nil
    ) -> Declined {
        Declined(
            outcome, status: status, .serviceUnavailable, message, retryAfter: status == 503 ? 1 : nil, reason: reason)
    }

    /// The code and the answer. A body that the proxy itself writes has the same request id as the header and the log.
    func response(isHead: Bool, requestID: String) -> (code: String, Response) {
        let answer = answer(requestID)
        var fields = answer.head.headerFields
        if let name = HTTPField.Name(HeaderName.requestID) { fields[name] = requestID }
        let body =
            isHead
            ? ResponseBody(contentLength: nil) { try await $0.finish(nil) }
            : ResponseBody(byteBuffer: ByteBuffer(bytes: answer.body))
        return (answer.code, Response(status: answer.head.status, headers: fields, body: body))
    }
}

/// The log line of a request. It never has a body, a signature or a path, and only a hash of the device id.
struct ProxyLogLine {
    let requestID: String
    let method: String
    var outcome = ProxyMetrics.Outcome.verified
    var app: AppID?
    var device: DeviceID?
    /// The code of a refusal, even of one that observe mode does not enforce.
    var code: String?
    var reason: String?
}

extension Logger {
    fileprivate func log(_ line: ProxyLogLine, status: Int, took: Duration) {
        let level = line.outcome.level
        guard level >= logLevel else { return }
        let microseconds = took.components.seconds * 1_000_000 + took.components.attoseconds / 1_000_000_000_000
        log(
            level: level, "request",
            metadata: [
                "app": .string(line.app?.text ?? ""), "code": .string(line.code ?? ""),
                "device": .string(line.device?.logged ?? ""), "method": .string(line.method),
                "microseconds": .stringConvertible(microseconds), "outcome": .string(line.outcome.rawValue),
                "reason": .string(line.reason ?? ""), "request_id": .string(line.requestID),
                "status": .stringConvertible(status),
            ])
    }
}
