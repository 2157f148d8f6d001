public import AuthService
internal import Foundation
internal import GRDB

extension SQLiteStores {
    /// Checks that the database accepts writes: replaces a row of several pages, as durably as a registration is written.
    public func probeWrite() async throws(StoreError) { try await database.probeWrite() }

    /// The free bytes of the file system with the database or of the one with the replay claims, whichever has fewer; nil
    /// if the system reports neither.
    ///
    /// - Throws: `StoreError` if a file system does not answer within the deadline.
    public func freeBytes() async throws(StoreError) -> Int64? { try await freeSpace.bytes() }

    /// The bytes that an unprivileged user can still write; nil if the system does not report them.
    static func freeBytes(at path: String) -> Int64? {
        var statistics = statvfs()
        guard statvfs(path, &statistics) == 0 else { return nil }
        let (bytes, overflow) = UInt64(statistics.f_bavail).multipliedReportingOverflow(by: UInt64(statistics.f_frsize))
        return overflow ? .max : Int64(clamping: bytes)
    }
}

extension StoreDatabase {
    private static let probe = "write_probe"
    /// About as much as a registration writes: a device, its keys and its audit event.
    private static let probeBytes = 12 * 1024

    fileprivate func probeWrite() async throws(StoreError) {
        // A different text each time, so that SQLite has a change to write.
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
