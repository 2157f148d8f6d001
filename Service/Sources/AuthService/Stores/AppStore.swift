public import AuthContract

/// An app's record as it is kept: JSON whose secrets are sealed. `AppRegistry` reads and writes it.
public struct StoredApp: Sendable, Hashable {
    public let appID: AppID
    /// The record as JSON text, secrets sealed with the service's key.
    public let sealedJSON: String

    /// A stored app of its parts.
    public init(appID: AppID, sealedJSON: String) {
        self.appID = appID
        self.sealedJSON = sealedJSON
    }
}

/// Keeps app records.
public protocol AppStore: Sendable {
    /// The record of an app.
    func app(_ id: AppID) async throws(StoreError) -> StoredApp?

    /// All records, by id.
    func apps() async throws(StoreError) -> [StoredApp]

    /// Adds a record; false where the id is taken.
    func insert(_ app: StoredApp, recording event: AuditEvent) async throws(StoreError) -> Bool

    /// Replaces a record that is still `current`; false where it has changed since, or is not there.
    func replace(
        _ current: StoredApp, with app: StoredApp, recording event: AuditEvent
    ) async throws(StoreError) -> Bool

    /// Removes a record that has no devices; false where it has some, or is not there.
    func remove(_ id: AppID, recording event: AuditEvent) async throws(StoreError) -> Bool
}
