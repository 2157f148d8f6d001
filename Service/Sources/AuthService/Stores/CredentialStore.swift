public import AuthContract
internal import StrictJSON

/// The rights of a credential's bearer.
public enum CredentialRole: String, Sendable, Hashable, CaseIterable {
    /// May have the service verify requests of devices of some apps: with `/verify`, or by forward authentication.
    case service
    /// May read everything in the admin API except recorded refusals, credentials and webhooks.
    case viewer
    /// May read what `viewer` reads, and recorded refusals. May decide about devices, such as to approve or revoke one.
    case `operator`
    /// May do everything in the admin API.
    case admin
}

/// The request bodies that a gateway forwards (*Forward authentication* in the protocol).
public enum ForwardedBodies: String, Sendable, Hashable, CaseIterable {
    /// Whole bodies.
    case whole
    /// No bodies. Only requests without a body are accepted.
    case headers
    /// No bodies. The backend checks `Content-Digest` itself.
    case digest
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

    /// The apps that the scope names; empty if it covers every app.
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

    /// Reads the stored form. Nil if the text is no list of ids.
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
    /// The public part. It identifies the credential, also in lists and for revocation.
    public let id: String
    /// The operator's name for it. It need not be unique.
    public let name: String
    /// The bearer's rights.
    public let role: CredentialRole
    /// The apps that it is for. A removed app is also removed from the scope.
    public var scope: CredentialScope
    /// SHA-256 of the secret, 32 bytes. The secret has 256 random bits, so that no slower hash is needed.
    public let secretHash: [UInt8]
    /// When it was created.
    public let createdAt: UnixTime
    /// The time from which it is refused.
    public let expiresAt: UnixTime
    /// When it was revoked; nil: it was not.
    public var revokedAt: UnixTime?
    /// The bodies that the credential's gateway forwards. Only forward authentication reads it.
    public let bodies: ForwardedBodies

    /// A credential as it is stored.
    public init(
        id: String, name: String, role: CredentialRole, scope: CredentialScope, secretHash: [UInt8],
        createdAt: UnixTime, expiresAt: UnixTime, revokedAt: UnixTime? = nil, bodies: ForwardedBodies = .headers
    ) {
        self.id = id
        self.name = name
        self.role = role
        self.scope = scope
        self.secretHash = secretHash
        self.createdAt = createdAt
        self.expiresAt = expiresAt
        self.revokedAt = revokedAt
        self.bodies = bodies
    }
}

extension Credential {
    /// Whether the removal of this app changes the credential: it names the app, and is not revoked.
    package func loses(_ app: AppID) -> Bool { revokedAt == nil && scope.named.contains(app) }
}

extension ForwardedBodies {
    /// The stored form. `headers` is stored as null, because rows of older versions have null there.
    package var storedText: String? { self == .headers ? nil : rawValue }
}

/// A decision about a credential: the credential before and after it.
public struct CredentialChange: Sendable, Hashable {
    /// The credential as it was read. It must still be the stored one.
    public let before: Credential
    /// The credential after the change, with the same id; only `scope` and `revokedAt` may differ. Nil: the credential is
    /// removed.
    public let after: Credential?
    /// The audit event of the change; nil: the change has none.
    public let event: AuditEvent?

    /// A change of this credential.
    public init(from before: Credential, to after: Credential?, recording event: AuditEvent?) {
        (self.before, self.after, self.event) = (before, after, event)
    }
}

/// Keeps credentials. A store has no rules about them: it saves a decision if the credential has not changed since it was read.
///
/// A change and its audit event are one transaction. A call that throws or returns false changes nothing and appends no
/// event.
public protocol CredentialStore: Sendable {
    /// The credential with this id, even if it is revoked or expired; nil if there is none.
    func credential(_ id: String) async throws(StoreError) -> Credential?

    /// All credentials, the latest `createdAt` first. The order of insertion has no effect.
    func credentials() async throws(StoreError) -> [Credential]

    /// Adds a credential. If its id exists, throws and keeps the existing credential. Returns false if an app that it names
    /// does not exist: the removal of an app and the insertion of a credential for it never both succeed.
    func insert(_ credential: Credential, recording event: AuditEvent) async throws(StoreError) -> Bool

    /// Saves a change. If several callers start from the same credential, one succeeds.
    ///
    /// - Returns: false if the stored credential is not exactly `CredentialChange.before`, or is absent.
    func save(_ change: CredentialChange) async throws(StoreError) -> Bool
}
