internal import AuthContract
internal import AuthService
internal import HTTPTypes
internal import HummingbirdCore
internal import NIOHTTP1
internal import StrictJSON

/// Answers the operations listener of a sidecar: health, readiness, metrics.
struct SidecarOperations: ListenerResponder {
    let metrics: SidecarMetrics
    let stopping: Stopping
    let degraded: @Sendable () -> String?
    let random: any RandomSource

    func respond(to request: Request, over connection: ConnectionContext) async throws -> Response {
        let frame = ResponseFrame(
            for: request.head, requestID: RandomUUID(from: random).text, now: SystemClock().now)
        guard request.method == .get || request.method == .head else {
            var answer = frame.answer(Refusal(.methodNotAllowed, "not GET or HEAD"))
            answer.headers.append(("Allow", "GET, HEAD"))
            return frame.response(answer)
        }
        return frame.response(await answer(to: request.head.path ?? "", in: frame))
    }

    private func answer(to target: String, in frame: ResponseFrame) async -> APIResponse {
        switch target.prefix(while: { $0 != "?" }) {
        case "/healthz": return .json(["status": "ok"])
        case "/readyz": return readyz
        case "/metrics":
            let text = await metrics.text()
            return APIResponse(body: Array(text.utf8), contentType: "text/plain; version=0.0.4; charset=utf-8")
        default: return frame.answer(Refusal(.notFound, "no such path"))
        }
    }

    /// The response to `/readyz`, in the same form as the auth service's response.
    private var readyz: APIResponse {
        let isAccepting = !stopping.hasBegun
        let reason = degraded()
        metrics.readiness(accepts: isAccepting, isDegraded: reason != nil)
        let checks = JSONObject([("accepting", .bool(isAccepting))])
        let failures = JSONObject(isAccepting ? [] : [("accepting", "it stops")])
        let degraded = JSONObject(
            reason.map { reason in
                [("auth_service", .object(JSONObject([("reason", .string(reason)), ("until", .null)])))]
            } ?? [])
        return .json(
            JSONObject([
                ("status", isAccepting ? "ready" : "not ready"), ("checks", .object(checks)),
                ("failures", .object(failures)), ("degraded", .object(degraded)),
            ]), status: isAccepting ? 200 : 503)
    }
}

/// The metrics of every sidecar: its listeners, its readiness and its process.
struct SidecarMetrics: ListenerMetrics {
    private typealias Name = ServerMetrics.Name

    private let registry: MetricsRegistry

    /// Adds these metrics to the registry. The series of the listeners exist from the start, with 0.
    init(_ registry: MetricsRegistry, listeners: [String]) {
        self.registry = registry
        let families = [
            Name.connections, Name.refusedConnections, Name.malformed, Name.readiness, Name.degraded, Name.start,
            Name.build,
        ]
        for (name, kind, help) in ServerMetrics.families where families.contains(name) {
            registry.describe(name, kind, help)
        }
        for listener in listeners {
            for name in [Name.connections, Name.refusedConnections, Name.malformed] {
                registry.count(name, [("listener", listener)], by: 0)
            }
        }
        registry.value(Name.start).set(Double(SystemClock().now.seconds))
        registry.value(Name.build, [("version", Build.version)]).set(1)
        readiness(accepts: true, isDegraded: false)
        ProcessMetrics.describe(in: registry)
    }

    func connections(_ open: Int, listener: String) {
        registry.value(Name.connections, [("listener", listener)]).set(Double(open))
    }

    func refusedConnection(listener: String) {
        registry.count(Name.refusedConnections, [("listener", listener)])
    }

    func malformedRequest(listener: String) { registry.count(Name.malformed, [("listener", listener)]) }

    func readiness(accepts: Bool, isDegraded: Bool) {
        registry.value(Name.readiness, [("check", "accepting")]).set(accepts ? 1 : 0)
        registry.value(Name.degraded, [("check", "auth_service")]).set(isDegraded ? 1 : 0)
    }

    func text() async -> String {
        await ProcessMetrics.update(registry)
        return registry.text()
    }
}
