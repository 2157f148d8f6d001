internal import AuthContract
internal import StrictJSON

/// The commands on an existing credential. `Credential.applying(_:at:by:)` decides each of them.
enum CredentialCommand: Sendable {
    /// An operator revokes the credential.
    case revoke
    /// An app is removed, so the credential no longer lists it. A credential for only that app is revoked, because a later app
    /// with the same id is a different app.
    case lose(AppID)
    /// The credential is removed if it expired or was revoked before this time.
    case remove(endedBefore: UnixTime)
}

/// Decides commands from the credential alone. Stores do not check these rules.
extension Credential {
    private static let maximumNameBytes = 128
    private static let maximumLife: Int64 = 10 * 366 * 86_400

    /// A new credential, with its audit event.
    ///
    /// - Parameter life: seconds until it expires.
    static func created(
        id: String, name: String, role: CredentialRole, scope: CredentialScope, bodies: ForwardedBodies?,
        secretHash: [UInt8], life: Int64, at now: UnixTime, by actor: String
    ) throws(ContractError) -> (credential: Credential, event: AuditEvent) {
        switch scope {
        case .allApps where role == .service:
            throw ContractError("a service credential is for some apps: name them")
        case .apps(let apps) where apps.isEmpty:
            throw ContractError("a credential is for at least one app, or for all of them")
        case .apps, .allApps: break
        }
        guard bodies == nil || role == .service else {
            throw ContractError("body is for role service: it says what a gateway forwards")
        }
        // PostgreSQL cannot store U+0000.
        guard !name.utf8.contains(0) else { throw ContractError("the name of a credential cannot contain U+0000") }
        guard (1...maximumNameBytes).contains(name.utf8.count), (1...maximumLife).contains(life) else {
            throw ContractError(
                "a credential needs a name of 1 to \(maximumNameBytes) bytes and a life of at most ten years")
        }
        let credential = Credential(
            id: id, name: name, role: role, scope: scope, secretHash: secretHash, createdAt: now, expiresAt: now + life,
            bodies: bodies ?? .headers)
        var detail = JSONObject([
            ("id", .string(id)), ("name", .string(name)), ("role", .string(role.rawValue)),
            ("apps", .strings(scope.named.map(\.text).sorted())), ("all_apps", .bool(scope == .allApps)),
            ("expires_at", .string(credential.expiresAt.iso8601)),
        ])
        if role == .service { detail["body"] = .string(credential.bodies.rawValue) }
        return (credential, AuditEvent(.credentialCreated, at: now, actor: actor, detail: detail))
    }

    /// The change that a command makes; nil: the command does not change this credential.
    func applying(_ command: CredentialCommand, at now: UnixTime, by actor: String) -> CredentialChange? {
        var after = self
        switch command {
        case .revoke:
            // Keep the time of the first revocation.
            guard revokedAt == nil else { return nil }
            after.revokedAt = now
            let detail = JSONObject([("id", .string(id))])
            return CredentialChange(
                from: self, to: after,
                recording: AuditEvent(.credentialRevoked, at: now, actor: actor, detail: detail))
        case .lose(let app):
            guard loses(app) else { return nil }
            let rest = scope.named.subtracting([app])
            if rest.isEmpty { after.revokedAt = now } else { after.scope = .apps(rest) }
            let detail = JSONObject([
                ("id", .string(id)), ("reason", "app_removed"), ("app_id", .string(app.text)),
                ("apps", .strings(rest.map(\.text).sorted())),
            ])
            let code: AuditEvent.Code = rest.isEmpty ? .credentialRevoked : .credentialNarrowed
            return CredentialChange(
                from: self, to: after, recording: AuditEvent(code, at: now, actor: actor, appID: app, detail: detail))
        case .remove(let time):
            guard expiresAt < time || revokedAt.map({ $0 < time }) ?? false else { return nil }
            return CredentialChange(from: self, to: nil, recording: nil)
        }
    }
}
