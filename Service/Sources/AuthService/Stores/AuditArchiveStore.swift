/// An event as a log stores it, with its hash.
public struct StoredAuditEntry: Sendable, Hashable {
    /// The event's members.
    public let entry: AuditChain.Entry
    /// The hash of the event, 32 bytes.
    public let hash: [UInt8]

    /// Memberwise initializer.
    public init(entry: AuditChain.Entry, hash: [UInt8]) { (self.entry, self.hash) = (entry, hash) }
}

/// The description of one archive of the log's oldest events: its range, its last hash and its seal. The archive's file has the events.
public struct StoredAuditArchive: Sendable, Hashable {
    /// The number of the archive's first event.
    public let first: Int64
    /// The number of the archive's last event.
    public let last: Int64
    /// The hash of the archive's last event, 32 bytes. The chain continues from it.
    public let hash: [UInt8]
    /// The signed head: `AuditHead` of an archive, as text.
    public let seal: String

    /// Memberwise initializer.
    public init(first: Int64, last: Int64, hash: [UInt8], seal: String) {
        (self.first, self.last, self.hash, self.seal) = (first, last, hash, seal)
    }

    package init(row: some StoredColumns) throws(StoreError) {
        self.init(
            first: try row.integer("first"), last: try row.integer("last"), hash: try row.bytes("hash"),
            seal: try row.text("seal"))
    }
}

/// The archives of an audit log: files to which its oldest events are moved.
///
/// Guarantees:
/// - Archives follow each other without a gap from the first event on. They are never changed or removed.
/// - Only events of an archive can be removed from the log. The log's last event is never removed.
/// - `AuditLog.firstBrokenLink()` begins after the last archive, or with the first event that is still in the log if that is earlier.
public protocol AuditArchiveStore: Sendable {
    /// All archives, the oldest first.
    func auditArchives() async throws(StoreError) -> [StoredAuditArchive]

    /// Events after a number, the oldest first, as they are stored. The limit is 1 to 1000.
    func auditEntries(after sequence: Int64, limit: Int) async throws(StoreError) -> [StoredAuditEntry]

    /// Adds an archive. The caller must already have written its file completely and durably.
    ///
    /// - Returns: false if its first event does not follow the last archive, because another node added an archive first.
    func add(_ archive: StoredAuditArchive) async throws(StoreError) -> Bool

    /// Removes events of archives, the oldest first, but never the last event of the log.
    ///
    /// - Parameter limit: the most events, 1 to 1000.
    /// - Returns: the number of removed events.
    func removeArchivedEvents(limit: Int) async throws(StoreError) -> Int
}

extension StoredAuditEntry {
    package init(row: some StoredColumns) throws(StoreError) {
        self.init(entry: try AuditChain.Entry(row: row), hash: try row.bytes("hash"))
    }
}
