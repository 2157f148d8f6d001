public import AuthContract

/// A stored app record: JSON whose secrets are sealed. `AppRegistry` reads and writes it.
public struct StoredApp: Sendable, Hashable {
    public let appID: AppID
    /// The record as JSON text, secrets sealed with the service's key.
    public let sealedJSON: String

    /// Memberwise initializer.
    public init(appID: AppID, sealedJSON: String) {
        self.appID = appID
        self.sealedJSON = sealedJSON
    }
}

/// Keeps app records.
///
/// Guarantees:
/// - Each change is atomic and durable when the call returns.
/// - A change and its audit event are one transaction. A call that returns false changes nothing and appends no event.
/// - `sealedJSON` is stored and compared byte for byte. Two texts that are only canonically equivalent are different.
public protocol AppStore: Sendable {
    /// The record of an app; nil if there is none.
    func app(_ id: AppID) async throws(StoreError) -> StoredApp?

    /// All records, ordered by the bytes of their ids.
    func apps() async throws(StoreError) -> [StoredApp]

    /// Adds a record. Returns false if the id is taken; an id is free again once its record was removed.
    func insert(_ app: StoredApp, recording event: AuditEvent) async throws(StoreError) -> Bool

    /// Replaces a record. Returns false if the stored record is no longer `current`, or is not there: of several callers
    /// that start from one record, one succeeds.
    func replace(
        _ current: StoredApp, with app: StoredApp, recording event: AuditEvent
    ) async throws(StoreError) -> Bool

    /// Removes a record. Returns false if the app still has devices, whatever their status, or is not there.
    func remove(_ id: AppID, recording event: AuditEvent) async throws(StoreError) -> Bool
}
