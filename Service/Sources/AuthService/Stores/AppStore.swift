public import AuthContract

/// A stored app record: JSON whose secrets are sealed. `AppRegistry` reads and writes it.
public struct StoredApp: Sendable, Hashable {
    /// The id of the app, and the key of the row.
    public let appID: AppID
    /// The record as JSON text, secrets sealed with the service's key.
    public let sealedJSON: String

    /// A record as it is stored.
    public init(appID: AppID, sealedJSON: String) {
        self.appID = appID
        self.sealedJSON = sealedJSON
    }
}

/// A decision about an app: the record before and after it.
public struct AppChange: Sendable, Hashable {
    /// The record as it was read. The stored one must still be identical, byte for byte.
    public let before: StoredApp
    /// The record after the change. Nil if the app is removed, which also erases its recorded refusals and pending proofs.
    public let after: StoredApp?
    /// Whether the change may be saved only if the app has no devices, of whatever status.
    public let needsNoDevices: Bool
    /// If the app is removed, the changes of the credentials that name it; otherwise empty.
    public let credentials: [CredentialChange]
    /// The audit event of the change. The events of the credentials follow it.
    public let event: AuditEvent

    /// A change that replaces the record's text.
    public init(from before: StoredApp, to sealedJSON: String, needsNoDevices: Bool, recording event: AuditEvent) {
        (self.before, self.needsNoDevices, self.event) = (before, needsNoDevices, event)
        after = StoredApp(appID: before.appID, sealedJSON: sealedJSON)
        credentials = []
    }

    /// A change that removes an app. The app must not have a device.
    public init(removing before: StoredApp, changing credentials: [CredentialChange], recording event: AuditEvent) {
        (self.before, self.credentials, self.event) = (before, credentials, event)
        (after, needsNoDevices) = (nil, true)
    }

    /// Whether this removal changes exactly the credentials in `stored` that name the app and are not revoked. If not, a
    /// credential has changed since the removal was decided.
    public func isDecided(from stored: [Credential]) -> Bool {
        let named = stored.filter { $0.loses(before.appID) }
        return Set(named) == Set(credentials.map(\.before))
    }

    /// The error of a store whose transaction finds that a credential changed after `isDecided(from:)` compared it.
    package var halfDecided: StoreError {
        StoreError(.unavailable, "a credential of \(before.appID) changed while the app was removed")
    }
}

/// The outcome of saving a change of an app.
public enum AppSaveOutcome: Sendable, Hashable {
    /// The change is stored.
    case saved
    /// The stored record or a credential has changed since it was read, or is absent.
    case conflict
    /// The app has devices, and the change needs an app without any.
    case hasDevices
}

/// Keeps app records. A store has no rules about them: it saves a decision if the record has not changed since it was read.
///
/// Guarantees:
/// - Each change is atomic and durable when the call returns.
/// - A change and its audit events are one transaction. A call that saves nothing changes nothing and appends no event.
/// - `sealedJSON` is stored and compared byte for byte. Two texts that are only canonically equivalent are different.
public protocol AppStore: Sendable {
    /// The record of an app; nil if there is none.
    func app(_ id: AppID) async throws(StoreError) -> StoredApp?

    /// All records, ordered by the bytes of their ids.
    func apps() async throws(StoreError) -> [StoredApp]

    /// Adds a record. Returns false if the id is taken; an id is free again once its record was removed.
    func insert(_ app: StoredApp, recording event: AuditEvent) async throws(StoreError) -> Bool

    /// Saves a change if the stored record is still `AppChange.before`. If several callers start from the same record,
    /// only one succeeds.
    ///
    /// A change with `needsNoDevices` and the insertion of a device that was judged under the record `before` never both
    /// succeed. A removal conflicts unless `AppChange.isDecided(from:)` is true for the stored credentials, so the
    /// removal of an app and the insertion of a credential for it never both succeed. The record is compared before
    /// devices are checked.
    func save(_ change: AppChange) async throws(StoreError) -> AppSaveOutcome
}
