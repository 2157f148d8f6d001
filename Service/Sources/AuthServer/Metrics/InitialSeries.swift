internal import AuthContract
internal import AuthService

/// The label values that metrics can have, where possible from the tables that also route and describe the API. Prometheus'
/// `increase()` counts the first event of a series only if the series existed before, with 0.
enum InitialSeries {
    /// One outcome of a request to the public API: the labels of its series.
    struct Outcome: Hashable, Sendable {
        let route: Route?
        let status: Int
        let outcome: String
    }

    /// Every outcome of every route, and of unknown paths.
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
            Outcome(route: route, status: route?.httpStatus(of: $0) ?? $0.httpStatus, outcome: $0.rawValue)
        }
    }

    private static func successes(of route: Route) -> [String] {
        switch route {
        case .register: RegistrationStatus.allCases.map(\.rawValue)
        case .verify, .forward: verdicts.filter { ErrorCode(rawValue: $0) == nil } + observed
        case .challenge, .status, .rotateKey, .device, .token, .keySet, .wellKnownKeySet, .openIDConfiguration,
            .authorizationServer:
            ["ok"]
        }
    }

    private static let judged = OpenAPIOperation(.verify).errors.subtracting([
        .unauthorized, .forbidden, .payloadTooLarge, .unsupportedMediaType,
    ]).union([.invalidRequest])

    /// The verdicts of `/verify` in mode `enforce`. An error in the caller's own request is not a verdict.
    static let verdicts = [APIResponse.verified] + judged.map(\.rawValue).sorted()

    /// The further verdicts of `/verify` in mode `observe`, which lets requests pass that mode `enforce` would refuse.
    ///
    /// Failures of the service (5xx) refuse a request in both modes.
    private static let observed = judged.filter { $0.httpStatus < 500 }.map(APIResponse.observed)

    /// Platform and result of registrations.
    static let registrations: [(platform: String, result: String)] = Platform.allCases.flatMap { platform in
        (RegistrationStatus.allCases.map(\.rawValue) + OpenAPIOperation(.register).errors.map(\.rawValue)).map {
            (platform.rawValue, $0)
        }
    }

    /// The providers of a registration, and their results.
    static let attestations: [(provider: String, result: String)] = [
        "app_attest", "play_integrity", "key_attestation", "play_integrity_and_key_attestation", "development",
    ].flatMap { provider in ["accepted", "refused", "unavailable"].map { (provider, $0) } }

    /// The outcomes of a request with the development header.
    static let development = Set(
        outcomes.filter { $0.route != .verify && $0.route != .forward && $0.route != .keySet }.map(\.outcome)
    ).sorted()

    /// The values of the label `area`, one for each kind of path of the operations listener, with the statuses of its answers.
    static let operations: [(area: String, status: Int)] =
        ["healthz", "metrics", "openapi"].flatMap { area in [200, 400, 405].map { (area, $0) } }
        + [200, 303, 400, 401, 403, 404, 405, 409, 412, 413, 415, 429, 500, 503].map { ("console", $0) }
        + [200, 400, 405, 503].map { ("readyz", $0) } + [400, 404, 500].map { ("unknown", $0) }
        + Set(
            OpenAPIDocument.operations.filter { $0.tag == "Administration" }.flatMap { operation in
                [operation.successStatus] + operation.errors.map(\.httpStatus)
            } + [400, 405, 500]
        ).sorted().map { ("admin", $0) }

    static let listeners = ["public", "operations", "metrics"]
}

/// The events that `synheart_security_events_total` counts. They point to an attack or a wrong configuration.
enum SecurityEvent: String, CaseIterable, Sendable {
    case developmentModeRefused = "development_mode_refused"
    case serviceCredentialRefused = "service_credential_refused"
    case adminCredentialRefused = "admin_credential_refused"
    case auditLogTampered = "audit_log_tampered"
    case proxyNamesNoClient = "proxy_names_no_client"
}
