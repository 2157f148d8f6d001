internal import AuthContract
internal import AuthService
internal import Bytes
internal import Foundation
internal import GRDB

/// The hashes of the devices' ids. SQLite has no SHA-256, and an index over a function of this program would keep `sqlite3` from
/// writing to `devices`. A column of `devices` would make the migration rewrite every row with its receipt.
enum DeviceHashTable {
    static let schema = """
        CREATE TABLE device_hashes (
          hash BLOB NOT NULL,
          device_id TEXT NOT NULL,
          PRIMARY KEY (hash, device_id)
        ) STRICT, WITHOUT ROWID;
        """

    /// Adds a new device. An existing row, such as one that another program wrote, does not make the registration fail.
    static func add(_ id: DeviceID, to database: Database) throws {
        try database.cachedStatement(sql: "INSERT OR IGNORE INTO device_hashes (hash, device_id) VALUES (?, ?)")
            .execute(arguments: [DeviceHash(of: id).bytes.data, id.text])
    }

    /// Adds all devices, which takes some seconds for a million. The rows are sorted, so that each page of the table is written
    /// once.
    static func fill(_ database: Database) throws {
        let function = DatabaseFunction("device_hash", argumentCount: 1, pure: true) { values in
            values.first.flatMap { String.fromDatabaseValue($0) }.map { DeviceHash(ofText: $0).bytes.data }
        }
        database.add(function: function)
        defer { database.remove(function: function) }
        try database.execute(
            sql: """
                INSERT OR IGNORE INTO device_hashes (hash, device_id)
                SELECT device_hash(device_id), device_id FROM devices ORDER BY 1
                """)
    }
}
