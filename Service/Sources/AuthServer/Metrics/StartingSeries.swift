internal import AuthContract
internal import AuthService

/// The label values that metrics can have, from the tables that also route and describe the API. Prometheus' `increase()`
/// sees the first event of a series only where the series was there before, with 0.
enum StartingSeries {
    /// What a request to the public API can become.
    struct Outcome: Hashable, Sendable {
        let route: Route?
        let status: Int
        let outcome: String
    }

    /// Every outcome of every route, and of paths that are none.
    static let outcomes: [Outcome] =
        refusals(of: nil, [.notFound])
        + Route.allCases.flatMap { route in
            let operation = OpenAPIOperation(route)
            return successes(of: route).map {
                Outcome(route: route, status: operation.successStatus, outcome: $0)
            } + refusals(of: route, operation.errors.union([.methodNotAllowed]))
        }

    private static func refusals(of route: Route?, _ codes: Set<ErrorCode>) -> [Outcome] {
        codes.union([.invalidRequest, .internalError]).map {
            Outcome(route: route, status: $0.httpStatus, outcome: $0.rawValue)
        }
    }

    private static func successes(of route: Route) -> [String] {
        switch route {
        case .register: RegistrationStatus.allCases.map(\.rawValue)
        case .verify: verdicts.filter { ErrorCode(rawValue: $0) == nil } + observed
        case .challenge, .status, .rotateKey, .device, .token, .keySet: ["ok"]
        }
    }

    private static let judged = OpenAPIOperation(.verify).errors.subtracting([
        .unauthorized, .forbidden, .payloadTooLarge, .unsupportedMediaType,
    ]).union([.invalidRequest])

    /// What `/verify` can answer for an app in mode enforce.
    static let verdicts = ["verified"] + judged.map(\.rawValue).sorted()

    /// And in mode observe, where nothing is refused that is not our own failure.
    private static let observed = judged.filter { $0.httpStatus < 500 }.map { "observed_\($0.rawValue)" }

    /// Platform and result of registrations.
    static let registrations: [(platform: String, result: String)] = Platform.allCases.flatMap { platform in
        (RegistrationStatus.allCases.map(\.rawValue) + OpenAPIOperation(.register).errors.map(\.rawValue)).map {
            (platform.rawValue, $0)
        }
    }

    /// Who vouches for a registration, and what came of it.
    static let attestations: [(provider: String, result: String)] = [
        "app_attest", "play_integrity", "key_attestation", "play_integrity_and_key_attestation", "development",
    ].flatMap { provider in ["accepted", "refused", "unavailable"].map { (provider, $0) } }

    /// What a request with the development header can become.
    static let development = Set(outcomes.filter { $0.route != .verify && $0.route != .keySet }.map(\.outcome)).sorted()

    /// Area and status of the operations listener.
    static let operations: [(area: String, status: Int)] =
        ["healthz", "metrics", "openapi"].flatMap { area in [200, 400, 405].map { (area, $0) } }
        + [200, 400, 405, 503].map { ("readyz", $0) } + [400, 404, 500].map { ("unknown", $0) }
        + Set(
            OpenAPIDocument.operations.filter { $0.tag == "Administration" }.flatMap { operation in
                [operation.successStatus] + operation.errors.map(\.httpStatus)
            } + [400, 405, 500]
        ).sorted().map { ("admin", $0) }

    static let listeners = ["public", "operations"]
}

/// What an honest client does not do.
enum SecurityEvent: String, CaseIterable, Sendable {
    case developmentModeRefused = "development_mode_refused"
    case serviceCredentialRefused = "service_credential_refused"
    case adminCredentialRefused = "admin_credential_refused"
    case auditLogTampered = "audit_log_tampered"
}
