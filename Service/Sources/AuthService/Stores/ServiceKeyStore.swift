/// A stored value that the service key sealed.
public struct SealedRow: Sendable, Hashable {
    /// The kind of secret in the row.
    public enum Kind: String, Sendable, Hashable, CaseIterable {
        /// An app record: its whole text in UTF-8. Only some of its members are sealed.
        case app
        /// A private key that signs device tokens.
        case signingKey
        /// The proof of a device that waits for its attestation provider.
        case pendingProof
        /// The document of a recorded refusal.
        case evidence
        /// The key that signs a webhook's deliveries.
        case webhook
    }

    /// The kind of secret, which determines the table.
    public let kind: Kind
    /// The app id, key id, device id, recording id or webhook id.
    public let id: String
    /// The app of a recorded refusal; empty for the other kinds.
    public let scope: String
    /// The sealed bytes.
    public let value: [UInt8]

    /// Memberwise initializer.
    public init(kind: Kind, id: String, scope: String = "", value: [UInt8]) {
        self.kind = kind
        self.id = id
        self.scope = scope
        self.value = value
    }
}

/// Keeps the check values of the service key, and gives access to everything that the key sealed.
///
/// Guarantees: check values change together, and only if they have not changed since the caller read them. A row changes only if
/// it has not changed since the caller read it.
public protocol ServiceKeyStore: Sendable {
    /// The check values of the service keys that every node needs, in the stored order. The first is that of the key that seals
    /// new values. Empty: the database has none yet.
    func keyChecks() async throws(StoreError) -> [ServiceKeyCheck]

    /// Replaces the check values. Returns false, changes nothing and appends no event unless the stored values are exactly
    /// `current`, in the same order.
    ///
    /// - Parameters:
    ///   - current: the values that the caller read.
    ///   - checks: the new values.
    ///   - event: appended in the same transaction; nil: no event.
    func replaceKeyChecks(
        _ current: [ServiceKeyCheck], with checks: [ServiceKeyCheck], recording event: AuditEvent?
    ) async throws(StoreError) -> Bool

    /// Rows of a kind, ordered by the bytes of their ids.
    ///
    /// - Parameters:
    ///   - kind: the kind.
    ///   - id: only rows after this id; empty: from the first on.
    ///   - limit: 1 to 1000.
    func sealedRows(_ kind: SealedRow.Kind, after id: String, limit: Int) async throws(StoreError) -> [SealedRow]

    /// Replaces the values of rows, in one transaction. Skips rows that changed since the caller read them. Returns the number
    /// of replaced rows. Afterwards, the other stores return the new values.
    func reseal(_ rows: [(row: SealedRow, value: [UInt8])]) async throws(StoreError) -> Int
}

extension SealedRow.Kind {
    /// The table of these rows in a SQL store, and the columns of the id, of the app (nil: none) and of the sealed value.
    package var columns: (table: String, id: String, scope: String?, value: String) {
        switch self {
        case .app: ("apps", "app_id", nil, "record")
        case .signingKey: ("signing_keys", "id", nil, "sealed_key")
        case .pendingProof: ("pending_proofs", "device_id", nil, "sealed_request")
        case .evidence: ("evidence", "id", "app_id", "sealed")
        case .webhook: ("webhooks", "id", nil, "sealed_secret")
        }
    }
}

extension ServiceKeyCheck {
    /// The name under which SQL stores keep the check values.
    package static let fact = "service_key_checks"

    /// The error of a write by a command whose service key no longer seals new values.
    package static let rotatedMeanwhile = StoreError(
        .unavailable, "the service key was rotated meanwhile; list the new one first and run the command again")
}

extension [ServiceKeyCheck] {
    /// The stored form: the values, separated by spaces.
    package var storedText: String { map(\.text).joined(separator: " ") }

    /// Reads the stored form; nil: there are no values yet.
    package init(storedText text: String?) throws(StoreError) {
        self = []
        for word in text?.split(separator: " ", omittingEmptySubsequences: false) ?? [] {
            // Do not skip a damaged value: with an empty list, the service would adopt any key.
            guard let check = ServiceKeyCheck(String(word)) else {
                throw StoreError(.unreadable, "the check value of the service key is damaged")
            }
            append(check)
        }
    }
}
