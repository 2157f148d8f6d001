import AuthContract
import AuthService
import Foundation
import GRDB
import Testing

@testable import SQLiteStores

/// Devices are found by the hashes of their ids, whichever way their rows came into the file.
struct DeviceHashTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private func found(_ id: DeviceID, in stores: SQLiteStores) async throws -> [DeviceID] {
        var query = DeviceQuery()
        query.deviceHash = DeviceHash(of: id)
        return try await stores.devices.devices(query).map(\.deviceID)
    }

    @Test func `the devices of a database of version 13 are found, and those that register later`() async throws {
        let stores = try SQLiteStores.open(folder)
        let devices = try (0..<20).map { _ in try sampleDevice() }
        for device in devices { try await stores.add(device) }
        await stores.close()
        let queue = try DatabaseQueue(path: folder.database)
        try await queue.write { database in
            try database.execute(sql: "DROP TABLE device_hashes; DELETE FROM grdb_migrations WHERE identifier = '14'")
        }
        try queue.close()
        let again = try SQLiteStores.open(folder)
        let new = try sampleDevice()
        try await again.add(new)
        for device in devices + [new] {
            #expect(try await found(device.deviceID, in: again) == [device.deviceID])
        }
        await again.close()
    }

    @Test func `the devices of a restored database are found`() async throws {
        let stores = try SQLiteStores.open(folder)
        let device = try sampleDevice()
        try await stores.add(device)
        let restored = folder.path("restored.sqlite")
        let now = FixedClock().now
        try await SQLiteStores.restore(
            restored, lastReading: now, at: now, from: { visit in try stores.export(visit) }, check: { _ in })
        await stores.close()
        let new = try SQLiteStores(path: restored, role: .administration, clock: FixedClock(), logger: silent)
        #expect(try await found(device.deviceID, in: new) == [device.deviceID])
        await new.close()
    }

    @Test func `the schema has no function of this program, so sqlite3 may write to the file`() async throws {
        await (try SQLiteStores.open(folder)).close()
        let queue = try DatabaseQueue(path: folder.database)
        let count = try await queue.write { database in
            try database.execute(
                sql: "UPDATE devices SET app_version = '1'; INSERT INTO device_hashes VALUES (x'00', 'id')")
            return try Int.fetchOne(database, sql: "SELECT count(*) FROM device_hashes")
        }
        try queue.close()
        #expect(count == 1)
    }

    @Test(arguments: [nil, "com.example.app"], [nil, .registered, .pending] as [DeviceStatus?])
    func `a search by id or hash reads the index of ids, whatever else it asks for`(
        _ app: String?, _ status: DeviceStatus?
    ) async throws {
        let stores = try SQLiteStores.open(folder)
        let id = DeviceID(from: SystemRandom())
        for scope in [CredentialScope.allApps, .apps([try AppID("com.example.app"), try AppID("com.example.other")])] {
            for isByHash in [false, true] {
                var query = DeviceQuery()
                (query.appID, query.status, query.scope) = (try app.map { try AppID($0) }, status, scope)
                if isByHash { query.deviceHash = DeviceHash(of: id) } else { query.deviceID = id }
                let (sql, arguments) = DeviceListing.statement(query)
                let plan = try await stores.database.read { database in
                    try Row.fetchAll(database, sql: "EXPLAIN QUERY PLAN " + sql, arguments: arguments)
                        .map { $0["detail"] as String }
                }
                let steps = plan.filter { $0.hasPrefix("SEARCH devices ") || $0.hasPrefix("SCAN devices") }
                #expect(steps == ["SEARCH devices USING INDEX sqlite_autoindex_devices_1 (device_id=?)"], "\(plan)")
                #expect(plan.contains("SEARCH device_hashes USING PRIMARY KEY (hash=?)") == isByHash, "\(plan)")
            }
        }
        await stores.close()
    }

    @Test func `a hash that is there already refuses neither a registration nor the filling of the table`() async throws
    {
        let stores = try SQLiteStores.open(folder)
        let device = try sampleDevice()
        try await stores.database.write { try DeviceHashTable.add(device.deviceID, to: $0) }
        try await stores.add(device)
        try await stores.database.write { try DeviceHashTable.fill($0) }
        #expect(try await found(device.deviceID, in: stores) == [device.deviceID])
        await stores.close()
    }
}
