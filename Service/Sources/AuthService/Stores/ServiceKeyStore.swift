/// Something that the service key sealed, as a store keeps it.
public struct SealedRow: Sendable, Hashable {
    /// What it is.
    public enum Kind: String, Sendable, Hashable, CaseIterable {
        /// An app record: the whole text of it, of which a member is sealed.
        case app
        case signingKey
        case pendingProof
        case evidence
    }

    public let kind: Kind
    /// Names it among its kind.
    public let id: String
    /// The app of evidence; empty for the other kinds.
    public let scope: String
    public let value: [UInt8]

    /// A row of its parts.
    public init(kind: Kind, id: String, scope: String = "", value: [UInt8]) {
        self.kind = kind
        self.id = id
        self.scope = scope
        self.value = value
    }
}

/// Keeps what the service key must be recognised by, and gives access to all that it sealed.
///
/// What it guarantees: check values change as one, only from what the caller knows; a row is replaced only where it is still
/// what the caller read.
public protocol ServiceKeyStore: Sendable {
    /// The check values of the keys that are needed, the one that seals first; empty: none is known yet.
    func keyChecks() async throws(StoreError) -> [ServiceKeyCheck]

    /// Replaces the check values where they are still `current`; false where they are not.
    func replaceKeyChecks(
        _ current: [ServiceKeyCheck], with checks: [ServiceKeyCheck], recording event: AuditEvent?
    ) async throws(StoreError) -> Bool

    /// At most `limit` rows of a kind, by id, after the one named `id`.
    func sealedRows(_ kind: SealedRow.Kind, after id: String, limit: Int) async throws(StoreError) -> [SealedRow]

    /// Gives rows that are still what they were another value, in one change; returns how many.
    func reseal(_ rows: [(row: SealedRow, value: [UInt8])]) async throws(StoreError) -> Int
}
