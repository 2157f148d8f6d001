internal import AuthContract
internal import AuthService
internal import HTTPTypes
internal import HummingbirdCore
internal import NIOHTTP1
internal import StrictJSON

/// Answers the operations listener: health, readiness, metrics, the description of the API, administration, and the console.
struct OperationsResponder: ListenerResponder {
    let service: AuthService
    let stores: AuthService.Stores
    let hosts: Set<String>
    let proxies: TrustedProxies
    /// The description of the API.
    let document: JSONValue
    let random: any RandomSource
    let readiness: Readiness
    let metrics: ServerMetrics
    let gauges: [MetricsSource]
    let settings: ReloadableSettings
    let administration: AdminAPI
    let risk: RiskMetricCounts
    let log: RequestLog
    /// The pages below `/console`; nil: there are none.
    let pages: (any OperationsPages)?
    /// The budget that bounds the memory of all forms together.
    let forms = BodyBudget(bytes: PageRequest.maximumForms * PageRequest.maximumForm)
    /// Whether this responder only answers the paths for load balancers and Prometheus.
    var answersProbesAlone = false

    func respond(to request: Request, over connection: ConnectionContext) async throws -> Response {
        let id = request.head.requestID(over: connection, trusting: proxies, random)
        return try await RequestID.$current.withValue(id) {
            try await respond(to: request, id, over: connection)
        }
    }

    private func respond(
        to request: Request, _ id: String, over connection: ConnectionContext
    ) async throws -> Response {
        let started = ContinuousClock.now
        let frame = ResponseFrame(for: request.head, requestID: id, now: service.clock.now)
        var area = "unknown"
        var refused: Refusal?
        var page: PageAnswer?
        var answer: APIResponse
        do {
            answer = try await self.answer(request, connection, &area, &page)
            refused = page?.refusal
        } catch let error as HTTPParserError {
            throw error
        } catch {
            let refusal = Refusal.answering(error)
            refused = refusal
            answer = frame.answer(refusal)
            if let error = error as? MethodRefusal {
                answer = frame.answer(Refusal(.methodNotAllowed, "not one of \(error.allowed)"))
                answer.headers.append(("Allow", error.allowed.joined(separator: ", ")))
            }
            if refusal.code == .unauthorized { answer.headers.append(("WWW-Authenticate", "Bearer")) }
        }
        metrics.operationsRequest(area, answer)
        let tellsOfSetUp = refused?.tellsOfSetUp ?? false
        if let page, let route = page.route {
            log.write(
                requestID: frame.requestID, method: request.method.rawValue, route: route, answer: answer,
                reason: refused?.reason, took: started.duration(to: .now))
        } else if page == nil, area == "admin" || area == "console" || tellsOfSetUp {
            let (route, app, device) = AdminRoute.logged(request.head.path)
            log.write(
                requestID: frame.requestID, method: request.method.rawValue, route: route, answer: answer,
                reason: refused?.reason, tellsOfSetUp: tellsOfSetUp, took: started.duration(to: .now), app: app,
                device: device)
        }
        return frame.response(answer)
    }

    private func answer(
        _ request: Request, _ connection: ConnectionContext, _ area: inout String, _ page: inout PageAnswer?
    ) async throws -> APIResponse {
        try request.head.requireKnownExpectation()
        let target = try RequestTarget(request.head.path ?? "")
        guard !answersProbesAlone || Self.probes.contains(target.path.text) else {
            throw Refusal(.notFound, "no such path")
        }
        try requireKnownHost(request.head, for: target)
        switch target.path.text {
        case "/healthz":
            area = "healthz"
            try requireRead(request)
            return .json(["status": "ok"])
        case "/readyz":
            area = "readyz"
            try requireRead(request)
            return await readyz()
        case "/metrics":
            area = "metrics"
            try requireRead(request)
            _ = await checkReadiness()
            if let apps = await risk.apps() { metrics.risk(apps) }
            metrics.providers(await service.providerReport(), at: service.clock.now)
            metrics.certificate(settings.tls.all.map(\.validity.upperBound).min())
            let text = await metrics.text(of: service, stores, with: gauges)
            return APIResponse(body: Array(text.utf8), contentType: "text/plain; version=0.0.4; charset=utf-8")
        case "/openapi.json":
            area = "openapi"
            try requireRead(request)
            return .json(document)
        case "/" where pages != nil:
            area = "console"
            try requireRead(request)
            return APIResponse(status: 303, headers: [("Location", PageRequest.base)])
        default:
            if let pages, target.path.isBelow(PageRequest.base) {
                area = "console"
                let answer = try await self.page(pages, request, target, over: connection)
                page = answer
                return APIResponse(answer)
            }
            guard target.path.isBelow(AdminRoute.base) else { throw Refusal(.notFound, "no such path") }
            area = "admin"
            let provenance = try RequestProvenance(of: request.head, over: connection, trusting: proxies)
            return try await administration.answer(request, target, from: provenance.address, over: connection)
        }
    }

    /// The paths for load balancers and Prometheus. They are answered for any `Host`.
    private static let probes: Set = ["/healthz", "/readyz", "/metrics"]

    /// Refuses unknown names: after DNS rebinding, a browser sends the name of the attacker's page as `Host`.
    private func requireKnownHost(_ head: HTTPRequest, for target: RequestTarget) throws(Refusal) {
        let values = head.headerFields[values: .host]
        // An HTTP/1.0 probe has no Host.
        if Self.probes.contains(target.path.text), values.count <= 1 { return }
        guard values.count == 1, let host = values.first, hosts.contains(Self.name(of: host)) else {
            let came = values.isEmpty ? "none" : String(values.joined(separator: " and ").prefix(128))
            throw Refusal(
                setUp: .invalidRequest,
                "Host is \(came), and operations.hosts are \(hosts.sorted().joined(separator: ", "))",
                hint: "Host is none of operations.hosts")
        }
    }

    /// The host without its port, in lower case.
    static func name(of host: String) -> String {
        let host = host.lowercased()
        guard !host.hasPrefix("[") else { return String(host.prefix { $0 != "]" }) + "]" }
        return String(host.prefix { $0 != ":" })
    }

    private func requireRead(_ request: Request) throws {
        guard request.method == .get || request.method == .head else { throw MethodRefusal(allowed: ["GET", "HEAD"]) }
    }

    /// Runs the checks and sets their metrics.
    private func checkReadiness() async -> [Readiness.CheckResult] {
        let findings = await readiness.findings()
        for finding in findings {
            metrics.ready(finding.name, finding.failure == nil)
            metrics.degraded(finding.name, finding.degraded != nil)
        }
        // If the replay store, or one of its servers, did not answer, the result tells nothing about a loss of replay claims.
        if let replay = findings.first(where: { $0.name == "replay" }), replay.failure == nil,
            replay.degraded == nil || replay.degraded?.until != nil
        {
            metrics.historyLost(until: replay.degraded?.until, at: service.clock.now)
        }
        return findings
    }

    private func readyz() async -> APIResponse {
        let findings = await checkReadiness()
        let failures = findings.compactMap { finding in finding.failure.map { (finding.name, JSONValue.string($0)) } }
        let degraded = findings.compactMap { finding in
            finding.degraded.map { found -> (String, JSONValue) in
                (
                    finding.name,
                    ["reason": .string(found.reason), "until": found.until.map { .string($0.iso8601) } ?? .null]
                )
            }
        }
        let notes = findings.compactMap { finding in finding.note.map { (finding.name, JSONValue.string($0)) } }
        var members: [(String, JSONValue)] = [
            ("status", failures.isEmpty ? "ready" : "not ready"),
            ("checks", .object(JSONObject(findings.map { ($0.name, .bool($0.failure == nil)) }))),
            ("failures", .object(JSONObject(failures))), ("degraded", .object(JSONObject(degraded))),
        ]
        if !notes.isEmpty { members.append(("notes", .object(JSONObject(notes)))) }
        return .json(JSONObject(members), status: failures.isEmpty ? 200 : 503)
    }
}

/// The error for a path that does not support the request's method.
struct MethodRefusal: Error {
    let allowed: [String]
}
