public import AuthService
internal import Foundation
internal import GRDB

extension SQLiteStores {
    /// Writes a row of several pages as durably as a registration is written, in the place of the one before.
    public func probeWrite() async throws(StoreError) { try await database.probeWrite() }

    /// The bytes that are free for the database and for the replay claims, of the file system that has fewer; nil where the
    /// system does not say.
    ///
    /// - Throws: `StoreError` where a file system does not answer within the deadline.
    public func freeBytes() async throws(StoreError) -> Int64? { try await freeSpace.bytes() }

    /// What is left for a user without privileges.
    static func freeBytes(at path: String) -> Int64? {
        var statistics = statvfs()
        guard statvfs(path, &statistics) == 0 else { return nil }
        let (bytes, overflow) = UInt64(statistics.f_bavail).multipliedReportingOverflow(by: UInt64(statistics.f_frsize))
        return overflow ? .max : Int64(clamping: bytes)
    }
}

extension StoreDatabase {
    private static let probe = "write_probe"
    /// About what a registration writes: its device, its keys and its audit event.
    private static let probeBytes = 12 * 1024

    fileprivate func probeWrite() async throws(StoreError) {
        // Another text each time, or SQLite would have nothing to write.
        let text = String(repeating: UUID().uuidString, count: Self.probeBytes / 36)
        try await write { database in
            try database.execute(
                sql: """
                    INSERT INTO facts (name, value) VALUES (?, ?)
                    ON CONFLICT (name) DO UPDATE SET value = excluded.value
                    """, arguments: [Self.probe, text])
        }
    }
}
