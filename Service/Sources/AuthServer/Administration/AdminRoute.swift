package import AuthContract
package import AuthService

/// The operations of the admin API in one table: method, path and required role.
package enum AdminRoute: String, CaseIterable, Sendable {
    case listApps, addApp, showApp, changeApp, removeApp
    case listDevices, showDevice, revokeDevice, approveDevice, rejectDevice, forceRotation, liftRotation, lowerScheme
    case decideDevices, whatIf
    case listRecordings, exportRecording, eraseRecording, eraseRecordings
    case queryAudit, followAudit, verifyAudit, showAuditHead
    case showStatistics, showHistory
    case listCredentials, createCredential, revokeCredential
    case listSigningKeys, rotateSigningKeys, revokeSigningKey
    case listWebhooks, addWebhook, showWebhook, changeWebhook, removeWebhook, resendWebhook, listDeliveries

    /// The prefix of every path.
    package static let base = "/admin/v1"

    private typealias Row = (method: String, path: String, role: CredentialRole, summary: String)

    private var row: Row {
        switch self {
        case .listApps: ("GET", "/apps", .viewer, "List apps")
        case .addApp: ("POST", "/apps", .admin, "Add an app")
        case .showApp: ("GET", "/apps/{app_id}", .viewer, "Show an app's record")
        case .changeApp: ("PUT", "/apps/{app_id}", .admin, "Replace an app's record")
        case .removeApp: ("DELETE", "/apps/{app_id}", .admin, "Remove an app that has no devices")
        case .listDevices: ("GET", "/devices", .viewer, "Search devices, newest first")
        case .showDevice: ("GET", Self.device, .viewer, "Show a device")
        case .revokeDevice: ("POST", Self.device + "/revoke", .operator, "Revoke a device for good")
        case .approveDevice: ("POST", Self.device + "/approve", .operator, "Let a pending device in")
        case .rejectDevice: ("POST", Self.device + "/reject", .operator, "Turn a pending device away")
        case .forceRotation: ("POST", Self.device + "/force-rotation", .operator, "Make a device rotate its key")
        case .liftRotation:
            ("POST", Self.device + "/lift-rotation", .operator, "Take back a demand to rotate")
        case .lowerScheme:
            ("POST", Self.device + "/lower-scheme", .operator, "Let a device sign under an older scheme again")
        case .decideDevices:
            ("POST", "/apps/{app_id}/decisions", .operator, "Decide about up to 100 devices of an app")
        case .whatIf: ("POST", "/apps/{app_id}/what-if", .viewer, "Judge devices under another record of the app")
        case .listRecordings: ("GET", "/recordings", .operator, "List refusals that were recorded, newest first")
        case .exportRecording: ("GET", Self.recordings + "/{recording_id}", .operator, "Export one, to be replayed")
        case .eraseRecording: ("DELETE", Self.recordings + "/{recording_id}", .admin, "Erase one")
        case .eraseRecordings: ("DELETE", Self.recordings, .admin, "Erase all that was recorded of an app")
        case .queryAudit: ("GET", "/audit", .viewer, "Search the audit log, newest first")
        case .followAudit: ("GET", "/audit/follow", .viewer, "Wait for events of the audit log, oldest first")
        case .verifyAudit: ("GET", "/audit/verify", .viewer, "Check the audit log, and that it contains a head")
        case .showAuditHead: ("GET", "/audit/head", .viewer, "Sign where the audit log ends")
        case .showStatistics: ("GET", "/statistics", .viewer, "Count devices by app and status")
        case .showHistory: ("GET", "/history", .viewer, "Count verdicts by time, for charts")
        case .listCredentials: ("GET", "/credentials", .admin, "List credentials")
        case .createCredential: ("POST", "/credentials", .admin, "Create a credential; its text is shown once")
        case .revokeCredential: ("DELETE", "/credentials/{credential_id}", .admin, "Revoke a credential")
        case .listSigningKeys: ("GET", "/signing-keys", .viewer, "List the keys that sign device tokens")
        case .rotateSigningKeys:
            ("POST", "/signing-keys/rotate", .admin, "Sign with the standby key, and make a new one")
        case .revokeSigningKey:
            ("DELETE", "/signing-keys/{kid}", .admin, "Revoke a signing key and the tokens that it signed, at once")
        case .listWebhooks: ("GET", "/webhooks", .admin, "List webhooks")
        case .addWebhook: ("POST", "/webhooks", .admin, "Add a webhook; its secret is shown once")
        case .showWebhook: ("GET", Self.webhook, .admin, "Show a webhook")
        case .changeWebhook: ("PUT", Self.webhook, .admin, "Change a webhook")
        case .removeWebhook: ("DELETE", Self.webhook, .admin, "Remove a webhook")
        case .resendWebhook: ("POST", Self.webhook + "/resend", .admin, "Deliver again from an event on")
        case .listDeliveries:
            ("GET", Self.webhook + "/deliveries", .admin, "List the last deliveries of a webhook, newest first")
        }
    }

    private static let recordings = "/apps/{app_id}/recordings"
    private static let webhook = "/webhooks/{webhook_id}"
    private static let device = "/apps/{app_id}/devices/{device_id}"

    /// The HTTP method.
    package var method: String { row.method }
    /// The whole path, with parameters in braces.
    package var template: String { Self.base + row.path }
    /// The path under the former name of recordings, which also works in 1.x; nil: the route has only one path.
    package var formerTemplate: String? {
        template.contains("/recordings") ? template.replacing("/recordings", with: "/evidence") : nil
    }
    /// The lowest role that may use the route.
    package var role: CredentialRole { row.role }
    /// The operation, in a few words.
    package var summary: String { row.summary }
    /// Whether the route needs a credential for all apps.
    package var concernsAllApps: Bool {
        switch self {
        case .addApp, .verifyAudit, .showAuditHead, .listCredentials, .createCredential, .revokeCredential,
            .rotateSigningKeys, .revokeSigningKey, .addWebhook:
            true
        default: false
        }
    }

    /// The route of a path, and the values of its parameters.
    struct Match: Sendable {
        let route: AdminRoute
        /// The route's `template`, or its `formerTemplate`.
        let template: String
        let parameters: [String: String]
    }

    /// The route of a method and a path. HEAD is treated as GET.
    ///
    /// - Throws: `MethodRefusal` if the path has other methods; `NOT_FOUND` if the path is unknown.
    static func find(method: String, path: String) throws -> Match {
        let method = method == "HEAD" ? "GET" : method
        let matches = allCases.compactMap { match(path, $0) }
        if let match = matches.first(where: { $0.route.method == method }) { return match }
        guard matches.isEmpty else { throw MethodRefusal(allowed: matches.map(\.route.method)) }
        throw Refusal(.notFound, "no such path")
    }

    /// A path for the log: the template of its route, which has parameter names in place of values, and the ids of the app and the device
    /// in the path. The route is nil if the path is unknown. An id is nil if it is absent or malformed.
    static func logged(_ path: String?) -> (route: String?, app: AppID?, device: DeviceID?) {
        let path = String((path ?? "").prefix { $0 != "?" })
        for route in allCases {
            guard let match = match(path, route) else { continue }
            let device = match.parameters["device_id"].flatMap { try? DeviceID($0) }
            let app = match.parameters["app_id"].flatMap { try? AppID($0) }
            return (match.template, app, device)
        }
        return (nil, nil, nil)
    }

    private static func match(_ path: String, _ route: AdminRoute) -> Match? {
        for template in [route.template, route.formerTemplate].compactMap(\.self) {
            guard let parameters = parameters(of: path, as: template) else { continue }
            return Match(route: route, template: template, parameters: parameters)
        }
        return nil
    }

    private static func parameters(of path: String, as template: String) -> [String: String]? {
        let actual = path.split(separator: "/", omittingEmptySubsequences: false)
        let expected = template.split(separator: "/", omittingEmptySubsequences: false)
        guard actual.count == expected.count else { return nil }
        var parameters: [String: String] = [:]
        for (part, expected) in zip(actual, expected) {
            if expected.hasPrefix("{"), expected.hasSuffix("}") {
                guard !part.isEmpty else { return nil }
                parameters[String(expected.dropFirst().dropLast())] = String(part)
            } else if part != expected {
                return nil
            }
        }
        return parameters
    }
}

extension CredentialRole {
    /// The rank of the role in the admin API; nil: it has no access.
    private var rank: Int? {
        switch self {
        case .service: nil
        case .viewer: 1
        case .operator: 2
        case .admin: 3
        }
    }

    /// Whether the role has at least the rights of `least`.
    func includes(_ least: CredentialRole) -> Bool {
        guard let mine = rank, let needed = least.rank else { return false }
        return mine >= needed
    }
}

extension Credential {
    /// Whether the admin API lets the credential use a route.
    ///
    /// - Parameter app: the app that the call names; nil: none.
    package func mayUse(_ route: AdminRoute, of app: AppID? = nil) -> Bool {
        role.includes(route.role) && (!route.concernsAllApps || scope == .allApps) && (app.map(scope.covers) ?? true)
    }
}
