import AuthContract
import AuthService
import GRDB
import Testing

@testable import SQLiteStores

/// A move to another engine exports all permanent data of the service.
@Suite struct ExportTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    @Test func `every table and column of the schema is moved, or named here as one that stays`() async throws {
        let stays = [
            "saved_challenges", "facts", "verdict_batches", "device_counts", "device_hashes", "webhook_deliveries",
            "grdb_migrations", "sqlite_sequence", "sqlite_stat1",
        ]
        /// Columns that the other engine fills in itself.
        let made = ["signing_keys": ["number"], "evidence": ["number", "size"]]
        let stores = try SQLiteStores.open(folder)
        let columns = try await stores.database.read { database in
            var columns: [String: Set<String>] = [:]
            for table in try String.fetchAll(database, sql: "SELECT name FROM sqlite_master WHERE type = 'table'") {
                columns[table] = Set(try database.columns(in: table).map(\.name))
            }
            return columns
        }
        let moved = StoredTable.allCases.filter { $0 != .keyChecks }
        #expect(Set(columns.keys).subtracting(stays) == Set(moved.map(\.rawValue)))
        for table in moved {
            let all = Set(table.columns.map(\.name)).union(made[table.rawValue] ?? [])
            #expect(columns[table.rawValue] == all, "\(table)")
        }
        await stores.close()
    }

    @Test func `the rows come with their values, the audit log last and in order`() async throws {
        let stores = try SQLiteStores.open(folder)
        let device = try sampleDevice()
        try await stores.add(device)
        var rows: [(table: StoredTable, cells: [StoredTable.Cell])] = []
        try stores.export { rows.append(($0, $1)) }
        #expect(rows.map(\.table) == [.apps, .devices, .keys, .audit, .audit])
        let columns = StoredTable.devices.columns.map(\.name)
        let values = Dictionary(uniqueKeysWithValues: zip(columns, rows[1].cells))
        #expect(values["device_id"] == .text(device.deviceID.text))
        #expect(values["registered_at"] == .integer(device.registeredAt.seconds))
        #expect(values["key"] == .bytes(device.key.spki))
        #expect(values["last_seen"] == .null)
        #expect(rows.suffix(2).map(\.cells[0]) == [.integer(1), .integer(2)])
        await stores.close()
    }

    @Test func `nothing is written while rows are read`() async throws {
        let stores = try SQLiteStores.open(folder)
        try await stores.add(try sampleDevice())
        var options = SQLiteStores.Options()
        options.busyTimeout = .milliseconds(1)
        let other = try SQLiteStores.open(folder, role: .administration, options: options)
        var refusals = 0
        try stores.export { _, _ in
            do throws(StoreOpenError) {
                try other.database.writeNow { try $0.execute(sql: "DELETE FROM keys") }
            } catch { refusals += 1 }
        }
        #expect(refusals == 5)
        await other.close()
        await stores.close()
    }
}
