public import AuthContract
internal import StrictJSON

/// The rights of a credential's bearer.
public enum CredentialRole: String, Sendable, Hashable, CaseIterable {
    /// Asks `/verify` about the requests of some apps.
    case service
    /// Reads through the admin API.
    case viewer
    /// Reads, and decides about devices.
    case `operator`
    /// Everything.
    case admin
}

/// The apps that a credential is for.
public enum CredentialScope: Sendable, Hashable {
    /// Every app, including those that are added later. Only roles of the admin API may have it.
    case allApps
    /// These apps, at least one.
    case apps(Set<AppID>)

    /// Whether the credential is for this app.
    public func covers(_ app: AppID) -> Bool {
        switch self {
        case .allApps: true
        case .apps(let apps): apps.contains(app)
        }
    }

    /// The apps by name; none if it is for every app.
    public var named: Set<AppID> {
        switch self {
        case .allApps: []
        case .apps(let apps): apps
        }
    }
}

extension CredentialScope {
    /// The stored form: the ids as a JSON list. An empty list means every app.
    package var storedText: String { JSONValue.strings(named.map(\.text).sorted()).text() }

    /// Nil if the text is no list of ids.
    package init?(storedText text: String) {
        let limits = JSONValue.Limits(bytes: 1 << 20, depth: 2)
        guard let list = (try? JSONValue(parsing: text, limits: limits))?.array else { return nil }
        let apps = list.compactMap { $0.string.flatMap { try? AppID($0) } }
        guard apps.count == list.count else { return nil }
        self = apps.isEmpty ? .allApps : .apps(Set(apps))
    }
}

/// A stored credential. It has the hash of the secret, never the secret.
public struct Credential: Sendable, Hashable {
    /// The public part, by which it is found, listed and revoked.
    public let id: String
    /// The operator's name for it. It need not be unique.
    public let name: String
    /// What the bearer may do.
    public let role: CredentialRole
    /// The apps that it is for. Narrower once one of them is removed.
    public var scope: CredentialScope
    /// SHA-256 of the secret, 32 bytes. The secret has 256 random bits, so that no slower hash is needed.
    public let secretHash: [UInt8]
    /// When it was created.
    public let createdAt: UnixTime
    /// The time from which it is refused.
    public let expiresAt: UnixTime
    /// When it was revoked; nil: it was not.
    public var revokedAt: UnixTime?

    /// Memberwise initializer.
    public init(
        id: String, name: String, role: CredentialRole, scope: CredentialScope, secretHash: [UInt8],
        createdAt: UnixTime,
        expiresAt: UnixTime, revokedAt: UnixTime? = nil
    ) {
        self.id = id
        self.name = name
        self.role = role
        self.scope = scope
        self.secretHash = secretHash
        self.createdAt = createdAt
        self.expiresAt = expiresAt
        self.revokedAt = revokedAt
    }
}

extension Credential {
    /// This credential after the removal of an app, with its audit event. A credential for only that app ends with it, because
    /// a later app with the same id is a different app.
    ///
    /// - Parameter event: the event of the removal.
    /// - Returns: nil if the credential does not name the app, or has ended.
    package func losing(_ app: AppID, by event: AuditEvent) -> (credential: Credential, event: AuditEvent)? {
        guard case .apps(let apps) = scope, apps.contains(app), revokedAt == nil else { return nil }
        var changed = self
        let rest = apps.subtracting([app])
        if rest.isEmpty { changed.revokedAt = event.at } else { changed.scope = .apps(rest) }
        let detail = JSONObject([
            ("id", .string(id)), ("reason", "app_removed"), ("app_id", .string(app.text)),
            ("apps", .strings(rest.map(\.text).sorted())),
        ])
        let code: AuditEvent.Code = rest.isEmpty ? .credentialRevoked : .credentialNarrowed
        return (changed, AuditEvent(code, at: event.at, actor: event.actor, appID: event.appID, detail: detail))
    }
}

/// Keeps credentials.
///
/// A change and its audit event are one transaction. A call that throws or returns false changes nothing and appends no
/// event.
public protocol CredentialStore: Sendable {
    /// Adds a credential. If its id exists, throws and keeps the existing credential. Returns false if an app that it names
    /// does not exist: the removal of an app and the insertion of a credential for it never both succeed.
    func insert(_ credential: Credential, recording event: AuditEvent) async throws(StoreError) -> Bool

    /// The credential with this id, even if it is revoked or expired; nil if there is none.
    func credential(_ id: String) async throws(StoreError) -> Credential?

    /// All credentials, the latest `createdAt` first, in whatever order they were added.
    func credentials() async throws(StoreError) -> [Credential]

    /// Revokes a credential. Returns false if it does not exist or was revoked before: the first revocation stays.
    func revoke(_ id: String, at: UnixTime, recording event: AuditEvent) async throws(StoreError) -> Bool

    /// Removes the credentials that expired or were revoked before a time. Returns their number.
    ///
    /// The newest credential always stays. A database without any credential is a fresh one, for which the service would create
    /// a first admin credential.
    func remove(endedBefore time: UnixTime) async throws(StoreError) -> Int
}
