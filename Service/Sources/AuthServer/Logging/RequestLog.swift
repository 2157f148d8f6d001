@_spi(Service) internal import AuthContract
internal import AuthService
internal import Bytes
internal import Logging

/// Logs one line for each request with its outcome and time. It never logs a body, a signature, a proof or a device id.
struct RequestLog: Sendable {
    private let logger: Logger
    private let warnings = WarningPace()

    /// A log that writes with this logger.
    init(logger: Logger) { self.logger = logger }

    /// Logs that a trusted proxy names no client address.
    func writeUnnamed(_ proxy: ClientAddress) {
        logger.warning(
            "a trusted proxy names no client address: make it set X-Forwarded-For",
            metadata: ["address": .string(proxy.network)])
    }

    /// Logs, at most once a minute for each provider, that the certificate chain of an attestation ends at an unknown root.
    func write(_ root: UntrustedRoot, app: AppID?) {
        guard warnings.isDue(root.provider.rawValue, "untrusted_root") else { return }
        logger.warning(
            "an attestation leads to an unknown root",
            metadata: [
                "app": .string(app?.text ?? ""), "name": .string(root.name),
                "provider": .string(root.provider.rawValue), "sha256": .string(root.lastCertificate),
            ])
    }

    /// Logs a request.
    ///
    /// - Parameters:
    ///   - route: a path of the API, never one with an id in it; nil: unknown.
    ///   - tellsOfSetUp: whether the answer is a refusal that an operator's setting may cause. If so, the line is at least a
    ///     warning, at most once a minute for each route and outcome.
    ///   - app: the app that the request names. It may be unverified.
    ///   - device: the device that the request names. It may be unverified. The line has its hash.
    func write(
        requestID: String, method: String, route: String?, answer: APIResponse, reason: String?,
        tellsOfSetUp: Bool = false, took: Duration, app: AppID? = nil, device: DeviceID? = nil
    ) {
        let severity = answer.code?.severity ?? (answer.status >= 500 ? .error : .info)
        var level = Logger.Level(rawValue: severity.rawValue) ?? .error
        if tellsOfSetUp, warnings.isDue(route ?? "", answer.outcome) { level = max(level, .warning) }
        // Below the logger's level, skip hashing the id and building the line.
        guard level >= logger.logLevel else { return }
        let microseconds = took.components.seconds * 1_000_000 + took.components.attoseconds / 1_000_000_000_000
        logger.log(
            level: level, "request",
            metadata: [
                "app": .string(app?.text ?? ""), "device": .string(device?.logged ?? ""), "method": .string(method),
                "microseconds": .stringConvertible(microseconds), "outcome": .string(answer.outcome),
                "reason": .string(reason ?? ""), "request_id": .string(requestID),
                "route": .string(route ?? "unknown"), "status": .stringConvertible(answer.status),
            ])
    }
}

/// Allows one warning of each kind a minute, because clients can cause any number of refusals that may point to a wrong
/// set-up.
private final class WarningPace: Sendable {
    private struct Kind: Hashable {
        let route, outcome: String
    }

    private static let pause: Duration = .seconds(60)
    private let last = Locked<[Kind: ContinuousClock.Instant]>([:])

    /// Whether a warning about this route and outcome may be written now. If so, the next one must wait. Both texts come from
    /// fixed sets, so that `last` stays small.
    func isDue(_ route: String, _ outcome: String) -> Bool {
        let now = ContinuousClock.now
        return last.withLock { last in
            let kind = Kind(route: route, outcome: outcome)
            if let written = last[kind], written + Self.pause > now { return false }
            last[kind] = now
            return true
        }
    }
}
