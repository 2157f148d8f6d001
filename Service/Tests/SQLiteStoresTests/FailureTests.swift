import AuthContract
import AuthService
import Foundation
import GRDB
import Testing

@testable import SQLiteStores

struct FailureTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private func change(_ sql: String) throws {
        let queue = try DatabaseQueue(path: folder.database)
        try queue.write { database in
            // A damaged file may break CHECK constraints, so do not enforce them.
            try database.execute(sql: "PRAGMA ignore_check_constraints = ON")
            try database.execute(sql: sql)
        }
        try queue.close()
    }

    /// A connection that can leave a transaction open, like another process.
    private func foreignConnection() throws -> DatabaseQueue {
        var configuration = Configuration()
        configuration.allowsUnsafeTransactions = true
        return try DatabaseQueue(path: folder.database, configuration: configuration)
    }

    @Test(arguments: [
        "key = x'04'", "key = zeroblob(91)", "key = zeroblob(0)", "status = 'unheard of'", "platform = ''",
        "app_id = 'com.example.app', assurance = '{'", "assurance = '{\"app\":\"none\"}'", "highest_scheme = 3",
        "highest_scheme = -9223372036854775808", "previous_key = x'00'", "attested_key_id = x'00'",
        "device_id = 'not a device id'",
    ])
    func `a damaged row is unreadable, and does not trap`(_ damage: String) async throws {
        let stores = try SQLiteStores.open(folder)
        let device = try sampleDevice()
        try await stores.add(device)
        if damage.hasPrefix("device_id") { try change("DELETE FROM keys") }
        try change("UPDATE devices SET \(damage)")
        let error = await #expect(throws: StoreError.self) { try await stores.devices.devices(DeviceQuery()) }
        #expect(error?.code == .unreadable)
        await stores.close()
    }

    @Test func `a damaged device does not hold up the receipts of the others`() async throws {
        let stores = try SQLiteStores.open(folder)
        let (damaged, sound) = (try sampleDevice(withReceiptDueAt: 1), try sampleDevice(withReceiptDueAt: 2))
        for device in [damaged, sound] { try await stores.add(device) }
        try change("UPDATE devices SET assurance = '{' WHERE device_id = '\(damaged.deviceID.text)'")
        let error = await #expect(throws: StoreError.self) { try await stores.takeDueReceipt() }
        #expect(error?.code == .unreadable)
        #expect(try await stores.takeDueReceipt()?.deviceID == sound.deviceID)
        #expect(try await stores.takeDueReceipt() == nil)
        await stores.close()
    }

    @Test(arguments: ["", " ", "x", "KEY ", " KEY", "KEY  KEY", "KEY KEY", "KEYKEY"])
    func `damaged check values of the service key are unreadable, and not none`(_ text: String) async throws {
        let stores = try SQLiteStores.open(folder)
        let key = try #require(ServiceKey([UInt8](repeating: 1, count: 32)))
        #expect(try await stores.serviceKeys.keyChecks() == [])
        #expect(try await stores.serviceKeys.replaceKeyChecks([], with: key.checks, recording: nil))
        let damaged = text.replacing("KEY", with: key.checks[0].text)
        try change("UPDATE facts SET value = '\(damaged)' WHERE name = 'service_key_checks'")
        if text == "KEY KEY" {
            #expect(try await stores.serviceKeys.keyChecks() == key.checks + key.checks)
        } else {
            let error = await #expect(throws: StoreError.self) { try await stores.serviceKeys.keyChecks() }
            #expect(error?.code == .unreadable)
        }
        await stores.close()
    }

    @Test func `a database locked by another process is unavailable, and works again afterwards`() async throws {
        var options = SQLiteStores.Options()
        options.busyTimeout = .milliseconds(10)
        let stores = try SQLiteStores.open(folder, options: options)
        let other = try foreignConnection()
        try await other.writeWithoutTransaction { try $0.execute(sql: "BEGIN IMMEDIATE") }
        let error = await #expect(throws: StoreError.self) { try await stores.audit.append(sampleEvent()) }
        #expect(error?.code == .unavailable)
        #expect(try await stores.apps.apps() == [], "reading goes on")
        // If nothing is due, these calls write nothing, so the lock has no effect.
        let now = FixedClock().now
        #expect(try await stores.recordings.eraseRecordings(expiredAt: now, limit: 10) == 0)
        #expect(try await stores.takeDueReceipt() == nil)
        try await stores.devices.writeLastSeen([:])
        try await other.writeWithoutTransaction { try $0.execute(sql: "ROLLBACK") }
        try await stores.audit.append(sampleEvent())
        try other.close()
        await stores.close()
    }

    @Test func `a file that was moved, or replaced by a copy, takes no changes until it is back`() async throws {
        let (files, aside) = (FileManager.default, folder.path("aside"))
        let stores = try SQLiteStores.open(folder)
        try await stores.audit.append(sampleEvent())
        func isRefused() async -> Bool {
            let error = await #expect(throws: StoreError.self) { try await stores.audit.append(sampleEvent()) }
            return error?.code == .unavailable && error?.reason.contains("put that file back") == true
        }
        try files.moveItem(atPath: folder.database, toPath: aside)
        #expect(await isRefused())
        // While the service uses the moved file, no process creates a new one in its place.
        for role in [SQLiteStores.Role.administration, .service] {
            #expect(throws: StoreOpenError.self) { try SQLiteStores.open(folder, role: role) }
        }
        let error = #expect(throws: StoreOpenError.self) { try SQLiteStores.requireNew(folder.database) }
        #expect(error?.description.contains("Stop it first") == true)
        #expect(!files.fileExists(atPath: folder.database))
        try Data().write(to: URL(fileURLWithPath: folder.database))
        #expect(throws: StoreOpenError.self) { try SQLiteStores.open(folder, role: .administration) }
        try files.removeItem(atPath: folder.database)
        // Another service could use the moved file, with a journal of its own. So this service refuses claims.
        await #expect(throws: StoreError.self) { try await claim(stores) }
        try files.copyItem(atPath: aside, toPath: folder.database)
        #expect(await isRefused())
        await #expect(throws: StoreError.self) { try await stores.probeWrite() }
        try files.removeItem(atPath: folder.database)
        try files.moveItem(atPath: aside, toPath: folder.database)
        try await stores.audit.append(sampleEvent())
        #expect(try await stores.audit.link(at: nil)?.sequence == 2)
        await #expect(throws: StoreError.self) { try await claim(stores) }
        await stores.close()
        let again = try SQLiteStores.open(folder)
        #expect(try await claim(again) == .claimed)
        await again.close()
    }

    private func claim(_ stores: SQLiteStores) async throws -> ClaimOutcome {
        let (now, device) = (FixedClock().now, DeviceID(from: SystemRandom()))
        return try await stores.replay.claim(
            [.nonce(RequestNonce(from: SystemRandom()), of: device)], timestamp: now, expiresAt: now + 660, now: now,
            futureWindow: 60)
    }

    @Test func `a call ends at its deadline, and work that had not begun never happens`() async throws {
        var options = SQLiteStores.Options()
        options.deadline = .milliseconds(20)
        options.busyTimeout = .seconds(10)
        let stores = try SQLiteStores.open(folder, options: options)
        let other = try foreignConnection()
        try await other.writeWithoutTransaction { try $0.execute(sql: "BEGIN IMMEDIATE") }
        let codes = await withTaskGroup(of: StoreError.Code?.self) { group in
            for _ in 0..<3 {
                group.addTask {
                    do throws(StoreError) {
                        try await stores.audit.append(sampleEvent())
                        return nil
                    } catch { return error.code }
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(codes == [.tooSlow, .tooSlow, .tooSlow])
        try await other.writeWithoutTransaction { try $0.execute(sql: "ROLLBACK") }
        try other.close()
        await stores.close()
        let again = try SQLiteStores.open(folder)
        #expect(try await again.audit.events(app: nil, device: nil, before: nil, limit: 10).count <= 1)
        await again.close()
    }

    @Test(.timeLimit(.minutes(15)))
    func `a write that completes after its deadline is signalled as a change`() async throws {
        var options = SQLiteStores.Options()
        options.deadline = .milliseconds(20)
        options.pollInterval = .seconds(3600)
        let stores = try SQLiteStores.open(folder, options: options)
        var changes = stores.devices.externalChanges().makeAsyncIterator()
        let gate = DispatchSemaphore(value: 0)
        let error = await #expect(throws: StoreError.self) {
            try await stores.database.write { _ in gate.wait() }
        }
        #expect(error?.code == .tooSlow)
        gate.signal()
        #expect(await changes.next() != nil)
        await stores.close()
    }

    @Test(.timeLimit(.minutes(15)))
    func `a long read is interrupted at its deadline, and the next one is answered`() async throws {
        var options = SQLiteStores.Options()
        options.deadline = .milliseconds(20)
        let stores = try SQLiteStores.open(folder, options: options)
        let error = await #expect(throws: StoreError.self) {
            try await stores.database.readUntilDeadline { database in
                let endless =
                    "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers) SELECT max(n) FROM numbers"
                return try Int.fetchOne(database, sql: endless)
            }
        }
        #expect(error?.code == .tooSlow)
        await stores.close()
    }

    @Test(.timeLimit(.minutes(15)))
    func `a search of the audit log by code is interrupted at its deadline`() async throws {
        var options = SQLiteStores.Options()
        options.deadline = .milliseconds(20)
        let stores = try SQLiteStores.open(folder, options: options)
        // Replaces the log by an endless one.
        try change(
            """
            DROP TABLE audit;
            CREATE VIEW audit AS
              WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers)
              SELECT n AS sequence, CASE WHEN n < 0 THEN '' ELSE 'app.added' END AS code FROM numbers
            """)
        let error = await #expect(throws: StoreError.self) {
            try await stores.audit.events(
                app: nil, device: nil, codes: [.deviceRevoked], after: 0, before: nil, limit: 1)
        }
        #expect(error?.code == .tooSlow)
        // Waits until all statements have ended, so the search must have been interrupted.
        await stores.close()
    }

    @Test func `changes by another process are signalled, own changes are not`() async throws {
        var options = SQLiteStores.Options()
        options.pollInterval = .milliseconds(2)
        let service = try SQLiteStores.open(folder, options: options)
        let tool = try SQLiteStores.open(folder, role: .administration)
        var changes = service.devices.externalChanges().makeAsyncIterator()
        let device = try sampleDevice()
        try await service.addApp(of: device)
        try await tool.add(device)
        #expect(await changes.next() != nil)
        #expect(try await service.devices.device(device.deviceID, of: device.appID) == device)

        let version = try await service.database.dataVersion()
        try await service.audit.append(sampleEvent())
        #expect(try await service.database.dataVersion() == version)
        try await tool.audit.append(sampleEvent())
        #expect(try await service.database.dataVersion() != version)
        #expect(await changes.next() != nil)
        await tool.close()
        await service.close()
        #expect(await changes.next() == nil, "the stream ends with the stores")
        var late = service.devices.externalChanges().makeAsyncIterator()
        #expect(await late.next() == nil)
    }

    @Test func `a listener that leaves takes no signal from another`() async throws {
        var options = SQLiteStores.Options()
        options.pollInterval = .milliseconds(2)
        let service = try SQLiteStores.open(folder, options: options)
        let tool = try SQLiteStores.open(folder, role: .administration)
        var changes = service.devices.externalChanges().makeAsyncIterator()
        _ = service.devices.externalChanges()
        for _ in 0..<3 {
            try await tool.audit.append(sampleEvent())
            #expect(await changes.next() != nil)
        }
        await tool.close()
        await service.close()
    }

    @Test func `a full disk refuses, and with free space everything works again`() async throws {
        guard let disk = TinyDisk(kilobytes: 32 << 10) else { return }
        let stores = try SQLiteStores(path: "\(disk.path)/auth.sqlite", clock: FixedClock(), logger: silent)
        try disk.fill()
        let error = await #expect(throws: StoreError.self) {
            while true { try await stores.audit.append(sampleEvent()) }
        }
        #expect(error?.code == .unavailable)
        try disk.makeRoom()
        try await stores.audit.append(sampleEvent())
        #expect(try await stores.audit.firstBrokenLink() == nil)
        await stores.close()
    }
}
