internal import AuthServer
internal import Logging

/// The metrics of a proxy.
struct ProxyMetrics: Sendable {
    /// The outcome of a request.
    enum Outcome: String, CaseIterable, Sendable {
        /// The request was sent to the backend with an identity, and the backend answered.
        case verified
        /// The request was sent without an identity, in observe mode, and the backend answered.
        case observed
        /// The auth service, or a rule of the protocol, refused the request. If the proxy adds upstream headers, it also refuses
        /// requests that only observe mode lets pass.
        case refused
        /// There was no verdict, for example because the auth service could not be reached, or because the proxy had no
        /// memory left for the body.
        case unavailable
        /// The proxy cannot forward the request because of its target, method, size, an upgrade or another header.
        case unsupported
        /// The backend could not be reached, or all connections to it were busy.
        case backendUnreachable = "backend_unreachable"
        case backendTimeout = "backend_timeout"
        /// The connection to the backend failed, or the backend's bytes were not HTTP, before the head of an answer.
        case backendBroken = "backend_broken"
        /// The client ended the connection, was too slow, or sent a body that is not HTTP.
        case clientGone = "client_gone"

        /// The level of the log line.
        var level: Logger.Level {
            switch self {
            case .verified, .observed, .refused, .unsupported, .clientGone: .info
            case .unavailable, .backendUnreachable, .backendTimeout, .backendBroken: .error
            }
        }
    }

    private enum Name {
        static let requests = "synheart_proxy_requests_total"
        static let answers = "synheart_proxy_backend_answers_total"
        static let broken = "synheart_proxy_broken_answers_total"
        static let verification = "synheart_proxy_verification_duration_seconds"
        static let backend = "synheart_proxy_backend_duration_seconds"
    }

    private let requests: [Outcome: MetricsRegistry.Value]
    private let answers: [Int: MetricsRegistry.Value]
    private let broken: MetricsRegistry.Value
    private let verification, backend: MetricsRegistry.Histogram

    /// Registers the metrics. Every series exists from the start, with 0.
    init(_ registry: MetricsRegistry) {
        registry.describe(Name.requests, .counter, "Requests, by what became of them.")
        registry.describe(Name.answers, .counter, "Answers of the backend, by class of status.")
        registry.describe(Name.broken, .counter, "Answers of the backend that did not reach the client complete.")
        registry.describe(
            Name.verification, .histogram(MetricsRegistry.latencyBuckets),
            "Time until the auth service gave a verdict, with repeated questions.")
        registry.describe(
            Name.backend, .histogram(MetricsRegistry.latencyBuckets),
            "Time from the verdict to the head of the backend's answer.")
        requests = Dictionary(
            uniqueKeysWithValues: Outcome.allCases.map {
                ($0, registry.value(Name.requests, [("outcome", $0.rawValue)]))
            })
        answers = Dictionary(
            uniqueKeysWithValues: (2...5).map { ($0, registry.value(Name.answers, [("status", "\($0)xx")])) })
        broken = registry.value(Name.broken)
        verification = registry.histogram(Name.verification)
        backend = registry.histogram(Name.backend)
    }

    func request(_ outcome: Outcome) { requests[outcome]?.add() }

    func answer(status: Int, took: Duration) {
        answers[status / 100]?.add()
        backend.observe(took.inSeconds)
    }

    func brokenAnswer() { broken.add() }

    func verification(took: Duration) { verification.observe(took.inSeconds) }
}

extension Duration {
    fileprivate var inSeconds: Double { Double(components.seconds) + Double(components.attoseconds) / 1e18 }
}
