public import AuthContract

/// A stored app record: JSON whose secrets are sealed. `AppRegistry` reads and writes it.
public struct StoredApp: Sendable, Hashable {
    /// The id of the app, and the key of the row.
    public let appID: AppID
    /// The record as JSON text, secrets sealed with the service's key.
    public let sealedJSON: String

    /// Memberwise initializer.
    public init(appID: AppID, sealedJSON: String) {
        self.appID = appID
        self.sealedJSON = sealedJSON
    }
}

/// The outcome of replacing an app record.
public enum ReplaceOutcome: Sendable, Hashable {
    /// The new record is stored.
    case replaced
    /// The stored record is no longer the one that was read, or is not there.
    case conflict
    /// The app has devices, and the change needs an app without any.
    case hasDevices
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

    /// Replaces a record. Of several callers that start from one record, one succeeds.
    ///
    /// - Parameters:
    ///   - current: the record as it was read.
    ///   - app: the new record.
    ///   - needsNoDevices: whether the app must not have a device, whatever its status. This change and the insertion of a
    ///     device that was judged under `current` never both succeed.
    ///   - event: the audit event of the change.
    func replace(
        _ current: StoredApp, with app: StoredApp, needsNoDevices: Bool, recording event: AuditEvent
    ) async throws(StoreError) -> ReplaceOutcome

    /// Removes a record, and what belongs to the app: its recorded refusals and pending proofs are erased, and each credential
    /// that names it loses it (`Credential.losing`, with an event of its own). Returns false if the app still has devices,
    /// whatever their status, or is not there.
    func remove(_ id: AppID, recording event: AuditEvent) async throws(StoreError) -> Bool
}
