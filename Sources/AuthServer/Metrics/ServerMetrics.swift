internal import AuthContract
internal import AuthService

/// What the service counts, by the names under which it is scraped.
struct ServerMetrics: Sendable {
    private let registry = MetricsRegistry()

    private static let requests = "synheart_requests_total"
    private static let latency = "synheart_request_duration_seconds"
    private static let registrations = "synheart_registrations_total"
    private static let verdicts = "synheart_verdicts_total"
    private static let schemes = "synheart_verified_requests_total"
    private static let replays = "synheart_replay_refusals_total"
    private static let storeErrors = "synheart_store_errors_total"
    private static let securityEvents = "synheart_security_events_total"
    private static let development = "synheart_development_requests_total"
    private static let malformed = "synheart_malformed_requests_total"
    private static let operations = "synheart_operations_requests_total"
    private static let riskMetrics = "synheart_device_risk_metric"
    private static let overThreshold = "synheart_devices_over_risk_threshold"
    private static let readiness = "synheart_ready"
    private static let start = "synheart_start_time_seconds"

    init(startedAt: UnixTime) {
        let families = [
            (Self.requests, "counter", "Requests to the public API, by route and outcome."),
            (Self.latency, "histogram", "Time to answer a request to the public API, by route."),
            (Self.registrations, "counter", "Registrations whose form was right, by platform and result."),
            (Self.verdicts, "counter", "Verdicts on other services' requests."),
            (Self.schemes, "counter", "Requests whose signature verified, by signature scheme."),
            (Self.replays, "counter", "Requests refused because they were seen before."),
            (Self.storeErrors, "counter", "Requests that failed because a store did."),
            (Self.securityEvents, "counter", "What an honest client does not do, by kind."),
            (Self.development, "counter", "Requests with the development header, by outcome."),
            (Self.malformed, "counter", "What was refused because it is not HTTP, by listener."),
            (Self.operations, "counter", "Requests to the operations listener, by area and status."),
            (
                Self.riskMetrics, "gauge",
                "Registered devices by their latest App Attest risk metric, by app and range; counted once a minute."
            ),
            (
                Self.overThreshold, "gauge",
                "Registered devices whose latest risk metric is above the app's flag_risk_metric_above."
            ),
            (Self.readiness, "gauge", "Whether a thing that the service needs works, by name; as last asked."),
            (Self.start, "gauge", "When the process began, unix time."),
        ]
        for (name, type, help) in families { registry.describe(name, type, help) }
        registry.set(Self.start, to: Double(startedAt.seconds))
        for name in [Self.replays, Self.storeErrors] { registry.count(name, by: 0) }
    }

    func publicRequest(_ route: Route?, _ answer: Answer, took: Duration) {
        let route = route?.label ?? "unknown"
        registry.count(
            Self.requests, [("route", route), ("status", String(answer.status)), ("outcome", answer.outcome)])
        registry.observe(Self.latency, [("route", route)], seconds: took.seconds)
        switch answer.outcome {
        case ErrorCode.nonceReplay.rawValue: registry.count(Self.replays)
        case ErrorCode.serviceUnavailable.rawValue: registry.count(Self.storeErrors)
        case ErrorCode.devModeNotAllowed.rawValue:
            registry.count(Self.securityEvents, [("event", "development_mode_refused")])
        case ErrorCode.unauthorized.rawValue, ErrorCode.forbidden.rawValue:
            registry.count(Self.securityEvents, [("event", "service_credential_refused")])
        default: break
        }
    }

    func registration(_ platform: Platform, _ result: String) {
        registry.count(Self.registrations, [("platform", platform.rawValue), ("result", result)])
    }

    func verdict(_ verdict: String) { registry.count(Self.verdicts, [("verdict", verdict)]) }

    func verified(_ scheme: SignatureScheme) {
        registry.count(Self.schemes, [("scheme", String(scheme.rawValue))])
    }

    func developmentRequest(_ answer: Answer) {
        registry.count(Self.development, [("outcome", answer.outcome)])
    }

    func malformedRequest(listener: String) { registry.count(Self.malformed, [("listener", listener)]) }

    func operationsRequest(_ area: String, _ answer: Answer) {
        registry.count(Self.operations, [("area", area), ("status", String(answer.status))])
        guard area == "admin", answer.status == 401 || answer.status == 403 else { return }
        registry.count(Self.securityEvents, [("event", "admin_credential_refused")])
    }

    func ready(_ name: String, _ isReady: Bool) {
        registry.set(Self.readiness, [("check", name)], to: isReady ? 1 : 0)
    }

    /// Shows how the risk metrics of each app's devices are spread.
    func risk(_ apps: [RiskCensus.App]) {
        registry.replace(
            Self.riskMetrics,
            apps.flatMap { app in
                RiskCensus.ranges.map { range in
                    let labels = [("app", app.id.text), ("range", range.name)]
                    return (labels, Double(app.devices(in: range)))
                }
            })
        registry.replace(
            Self.overThreshold,
            apps.compactMap { app in app.overThreshold.map { ([("app", app.id.text)], Double($0)) } })
    }

    func text() -> String { registry.text() }
}

extension Route {
    /// The route without its base path: what a chart is labelled with.
    fileprivate var label: String { String(rawValue.dropFirst("/auth/v1/".count)) }
}

extension Duration {
    fileprivate var seconds: Double {
        Double(components.seconds) + Double(components.attoseconds) / 1e18
    }
}
