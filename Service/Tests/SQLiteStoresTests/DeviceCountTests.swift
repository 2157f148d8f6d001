import AuthContract
import AuthService
import Foundation
import GRDB
import Testing

@testable import SQLiteStores

/// After any change of rows, the counts of devices equal a recount, and lists of one status use an index.
struct DeviceCountTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    /// The rows of `device_counts` that are not 0, and those of a recount.
    private static func counts(_ database: Database) throws -> (kept: [Row], recounted: [Row]) {
        (
            try Row.fetchAll(
                database,
                sql: "SELECT app_id, status, devices FROM device_counts WHERE devices <> 0 ORDER BY app_id, status"),
            try Row.fetchAll(
                database,
                sql: "SELECT app_id, status, count(*) FROM devices GROUP BY app_id, status ORDER BY app_id, status")
        )
    }

    private func expectExact(_ stores: SQLiteStores, _ after: String) async throws {
        let counts = try await stores.database.read { database in
            let (kept, recounted) = try Self.counts(database)
            return (kept.map { Array($0.databaseValues) }, recounted.map { Array($0.databaseValues) })
        }
        #expect(counts.0 == counts.1, "\(after)")
    }

    private func filled(_ stores: SQLiteStores) async throws -> [DeviceRecord] {
        var devices: [DeviceRecord] = []
        for app in ["com.example.app", "com.example.other"] {
            for status in DeviceStatus.allCases {
                let sample = try sampleDevice(app)
                let device = DeviceRecord(
                    appID: sample.appID, deviceID: sample.deviceID, platform: .ios, status: status, key: sample.key,
                    assurance: sample.assurance, registeredAt: sample.registeredAt)
                try await stores.add(device)
                devices.append(device)
            }
        }
        return devices
    }

    @Test func `random statements keep the counts, also those that are rolled back`() async throws {
        struct Rollback: Error {}
        let stores = try SQLiteStores.open(folder)
        _ = try await filled(stores)
        var numbers = SeededNumbers(seed: 12)
        for round in 0..<200 {
            let status = DeviceStatus.allCases.randomElement(using: &numbers)?.rawValue ?? ""
            let share = Int.random(in: 1...4, using: &numbers)
            let sql =
                switch Int.random(in: 0..<5, using: &numbers) {
                case 0: "UPDATE devices SET status = '\(status)' WHERE abs(random()) % \(share) = 0"
                case 1: "UPDATE devices SET app_id = 'com.example.app' WHERE abs(random()) % \(share) = 0"
                case 2: "UPDATE devices SET forgotten = 1, version = version + 1 WHERE status = '\(status)'"
                case 3: "DELETE FROM keys; DELETE FROM devices WHERE abs(random()) % \(share + 2) = 0"
                default:
                    """
                    INSERT INTO devices (device_id, app_id, platform, status, key, key_thumbprint, assurance, registered_at,
                                         highest_scheme, admitted_under_observation)
                    SELECT lower(hex(randomblob(16))), 'com.example.other', 'ios', '\(status)', x'', '', '', 1, 1, 0
                    FROM json_each('[1, 2, 3]')
                    """
                }
            let isUndone = numbers.oneIn(4)
            do {
                try await stores.database.write { database in
                    try database.execute(sql: sql)
                    if isUndone { throw Rollback() }
                }
                #expect(!isUndone)
            } catch { #expect(isUndone, "\(error)") }
            try await expectExact(stores, "round \(round): \(sql)")
        }
        await stores.close()
    }

    @Test func `changes, refusals and forgotten devices keep the counts`() async throws {
        let stores = try SQLiteStores.open(folder)
        let devices = try await filled(stores)
        try await expectExact(stores, "insertions")
        let app = devices[0].appID
        #expect(
            try await stores.devices.count(of: app)
                == Dictionary(uniqueKeysWithValues: DeviceStatus.allCases.map { ($0, 1) }))
        for device in devices where device.status == .registered {
            try await stores.change(device) { $0.status = .deregistered }
        }
        #expect(try await stores.devices.count(of: app)[.registered] == nil)
        #expect(try await stores.devices.count(of: app)[.deregistered] == 2)
        let later = FixedClock().now + 86_400
        let forgotten = try await stores.endedDevices.forgetDevices(
            endedBefore: later, now: FixedClock().now, limit: 1000, recording: sampleEvent(.devicesForgotten))
        #expect(forgotten > 0)
        try await expectExact(stores, "forgotten devices")
        await stores.close()
    }

    @Test func `a restored database counts its devices`() async throws {
        let stores = try SQLiteStores.open(folder)
        _ = try await filled(stores)
        let restored = folder.path("restored.sqlite")
        let now = FixedClock().now
        try await SQLiteStores.restore(
            restored, lastReading: now, at: now, from: { visit in try stores.export(visit) }, check: { _ in })
        await stores.close()
        let new = try SQLiteStores(path: restored, role: .administration, clock: FixedClock(), logger: silent)
        try await expectExact(new, "a restore")
        #expect(try await new.devices.count(of: try AppID("com.example.app")).count == DeviceStatus.allCases.count)
        await new.close()
    }

    @Test func `the devices of a database of version 11 are counted when it is opened`() async throws {
        let stores = try SQLiteStores.open(folder)
        let devices = try await filled(stores)
        await stores.close()
        let queue = try DatabaseQueue(path: folder.database)
        try await queue.write { database in
            try database.execute(
                sql: """
                    DROP INDEX audit_of_no_device;
                    DROP TRIGGER new_devices_are_counted;
                    DROP TRIGGER changed_devices_are_counted;
                    DROP TRIGGER deleted_devices_are_counted;
                    DROP TABLE device_counts;
                    DROP INDEX devices_not_registered;
                    UPDATE devices SET status = 'revoked' WHERE status = 'pending';
                    DELETE FROM grdb_migrations WHERE identifier = '12';
                    """)
        }
        try queue.close()
        let again = try SQLiteStores.open(folder)
        try await expectExact(again, "the migration")
        let app = devices[0].appID
        #expect(try await again.devices.count(of: app)[.revoked] == 2)
        #expect(try await again.devices.count(of: app)[.pending] == nil)
        try await again.add(try sampleDevice())
        try await expectExact(again, "an insertion after the migration")
        await again.close()
    }

    @Test(
        arguments: [
            (app: nil, status: nil, "devices_newest (registered_at>?"),
            (nil, .pending, "devices_not_registered (status=? AND registered_at>?"),
            (nil, .revoked, "devices_not_registered (status=? AND registered_at>?"),
            (nil, .registered, "devices_newest (registered_at>?"),
            ("com.example.app", nil, "devices_of_app (app_id=? AND registered_at>?"),
            ("com.example.app", .pending, "devices_of_status (app_id=? AND status=? AND registered_at>?"),
        ] as [(app: String?, status: DeviceStatus?, index: String)])
    func `a page of devices reads one index in its order, and no forgotten device`(
        _ app: String?, _ status: DeviceStatus?, _ index: String
    ) async throws {
        let stores = try SQLiteStores.open(folder)
        var query = DeviceQuery(limit: 50)
        query.appID = try app.map { try AppID($0) }
        query.status = status
        for (order, isNext) in DeviceQuery.Order.allCases.flatMap({ [($0, false), ($0, true)] }) {
            query.order = order
            query.after = isNext ? DeviceQuery.PageToken(try sampleDevice()) : nil
            let (sql, arguments) = DeviceListing.statement(query)
            let plan = try await stores.database.read { database in
                try Row.fetchAll(database, sql: "EXPLAIN QUERY PLAN " + sql, arguments: arguments)
                    .map { $0["detail"] as String }
            }
            #expect(plan.count == 1, "a sorting has a line of its own: \(plan)")
            #expect(plan.first?.contains("USING INDEX \(index)") == true, "\(plan)")
        }
        await stores.close()
    }

    @Test func `devices are counted without reading them`() async throws {
        let stores = try SQLiteStores.open(folder)
        let plan = try await stores.database.read { database in
            try Row.fetchAll(
                database, sql: "EXPLAIN QUERY PLAN " + SQLiteDeviceStore.counts, arguments: ["com.example.app"]
            ).map { $0["detail"] as String }
        }
        #expect(plan == ["SEARCH device_counts USING PRIMARY KEY (app_id=?)"])
        await stores.close()
    }
}
