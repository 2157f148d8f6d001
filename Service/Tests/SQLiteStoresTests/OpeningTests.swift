import AuthContract
import AuthService
import Foundation
import GRDB
import Testing

@testable import SQLiteStores

struct OpeningTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private func refusal(_ path: String? = nil) throws -> StoreOpenError? {
        #expect(throws: StoreOpenError.self) {
            try SQLiteStores(path: path ?? folder.database, clock: FixedClock(), logger: silent)
        }
    }

    @Test func `a missing file is created for its owner only`() async throws {
        let stores = try SQLiteStores.open(folder)
        try await stores.audit.append(sampleEvent())
        for suffix in ["", "-wal", "-shm"] {
            let attributes = try FileManager.default.attributesOfItem(atPath: folder.database + suffix)
            #expect(attributes[.posixPermissions] as? Int == 0o600, "\(suffix)")
        }
        await stores.close()
    }

    @Test func `stored values are there after reopening`() async throws {
        let device = try sampleDevice()
        let first = try SQLiteStores.open(folder)
        try await first.add(device)
        await first.close()
        let second = try SQLiteStores.open(folder)
        #expect(try await second.devices.device(device.deviceID, of: device.appID) == device)
        await second.close()
    }

    @Test func `an error names a missing folder`() throws {
        let error = try refusal("\(folder.path)/missing/auth.sqlite")
        #expect(error?.code == .noSuchFolder)
        #expect(error?.description.contains("\(folder.path)/missing") == true)
    }

    @Test func `a folder is no database`() throws {
        #expect(try refusal(folder.path)?.code == .notADatabase)
    }

    @Test func `an error names a file that cannot be created`() throws {
        #expect(try refusal("/proc/auth.sqlite")?.code == .notWritable)
    }

    @Test(.enabled(if: geteuid() != 0, "root may read and write everything"), arguments: [0o444, 0o000])
    func `a file without permissions says so`(_ mode: Int) throws {
        try Data().write(to: URL(fileURLWithPath: folder.database))
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: folder.database)
        #expect(try refusal()?.code == (mode == 0 ? .notReadable : .notWritable))
    }

    @Test func `an error names a full disk, also for an existing database`() async throws {
        guard let disk = TinyDisk(kilobytes: 32 << 10) else { return }
        let path = "\(disk.path)/auth.sqlite"
        for isNew in [true, false] {
            if !isNew { await (try SQLiteStores(path: path, clock: FixedClock(), logger: silent)).close() }
            try disk.fill()
            let error = #expect(throws: StoreOpenError.self) {
                try SQLiteStores(path: path, clock: FixedClock(), logger: silent)
            }
            #expect(error?.code == .unavailable)
            #expect(error?.description.contains("the disk is full") == true, "\(error?.description ?? "")")
            try disk.makeRoom()
        }
    }

    @Test func `another file is refused and left unchanged`() throws {
        let text = Data(String(repeating: "This is no database. ", count: 100).utf8)
        try text.write(to: URL(fileURLWithPath: folder.database))
        #expect(try refusal()?.code == .notADatabase)
        #expect(try Data(contentsOf: URL(fileURLWithPath: folder.database)) == text)
    }

    @Test func `the database of another program is refused and left unchanged`() throws {
        let queue = try DatabaseQueue(path: folder.database)
        try queue.write { try $0.execute(sql: "CREATE TABLE recipes (title TEXT)") }
        try queue.close()
        let before = try Data(contentsOf: URL(fileURLWithPath: folder.database))
        #expect(try refusal()?.code == .notADatabase)
        #expect(try Data(contentsOf: URL(fileURLWithPath: folder.database)) == before)
    }

    @Test func `pending devices are counted by an index alone`() async throws {
        let stores = try SQLiteStores.open(folder)
        let plan = try await stores.database.read { database in
            try Row.fetchAll(
                database, sql: "EXPLAIN QUERY PLAN " + SQLiteDeviceStore.countOfPending,
                arguments: ["com.example.app", Assurance.unproven.storedText, true]
            ).map { $0["detail"] as String }
        }
        #expect(plan.contains { $0.contains("COVERING INDEX devices_pending") }, "\(plan)")
        await stores.close()
    }

    @Test func `a database of a newer version is refused, not opened`() async throws {
        await (try SQLiteStores.open(folder)).close()
        let queue = try DatabaseQueue(path: folder.database)
        try await queue.write {
            try $0.execute(sql: "INSERT INTO grdb_migrations (identifier) VALUES ('of a later version')")
        }
        try queue.close()
        let error = try refusal()
        #expect(error?.code == .newerVersion)
        #expect(error?.description.contains("newer version") == true)
    }

    @Test func `a truncated database is refused`() async throws {
        let first = try SQLiteStores.open(folder)
        for _ in 0..<50 { try await first.audit.append(sampleEvent()) }
        await first.close()
        let whole = try Data(contentsOf: URL(fileURLWithPath: folder.database))
        try whole.prefix(5000).write(to: URL(fileURLWithPath: folder.database))
        let code = try refusal()?.code
        #expect(code == .damaged || code == .notADatabase)
    }

    @Test func `a second service is refused while the first one runs`() async throws {
        let first = try SQLiteStores.open(folder)
        let error = try refusal()
        #expect(error?.code == .inUse)
        await first.close()
        await (try SQLiteStores.open(folder)).close()
    }

    @Test func `a tool works beside the service, without challenges and claims`() async throws {
        let service = try SQLiteStores.open(folder)
        let tool = try SQLiteStores.open(folder, role: .administration)
        try await tool.audit.append(sampleEvent())
        #expect(try await service.audit.events(app: nil, device: nil, before: nil, limit: 10).count == 1)
        let challenge = try sampleChallenge(1)
        await #expect(throws: StoreError.self) { try await tool.challenges.put(challenge, source: "") }
        await #expect(throws: StoreError.self) { try await tool.challenges.take(challenge.bytes) }
        let (now, expiry) = (FixedClock().now, FixedClock().now + 660)
        await #expect(throws: StoreError.self) {
            try await tool.replay.claim([], timestamp: now, expiresAt: expiry, now: now, futureWindow: 60)
        }
        await tool.close()
        await service.close()
    }

    @Test func `a closed store refuses, and does not hang`() async throws {
        let stores = try SQLiteStores.open(folder)
        await stores.close()
        await #expect(throws: StoreError.self) { try await stores.apps.apps() }
        await #expect(throws: StoreError.self) { try await stores.audit.append(sampleEvent()) }
    }

    @Test func `a complete database is opened while another process makes one in its folder`() async throws {
        await (try SQLiteStores.open(folder)).close()
        let lock = try OpeningLock(folder.path)
        let stores = try SQLiteStores.open(folder)
        try await stores.audit.append(sampleEvent())
        await stores.close()
        withExtendedLifetime(lock) {}
    }

    @Test func `the journal is on record as soon as the service is open`() async throws {
        let stores = try SQLiteStores.open(folder)
        #expect(try stores.database.journalExpectation().note?.sequence == 1)
        await stores.close()
    }

    @Test func `devices rotate elsewhere for a tool, and not for the service`() async throws {
        let device = try sampleDevice()
        for role in [SQLiteStores.Role.service, .administration] {
            let stores = try SQLiteStores.open(folder, role: role)
            #expect(try await stores.devices.mayHaveRotatedElsewhere(device) == (role == .administration))
            await stores.close()
        }
    }

    @Test(
        arguments: [
            (.nanoseconds(1), 1), (.seconds(2) + .nanoseconds(3), 2_000_000_003),
            (.milliseconds(-1500), -1_500_000_000),
            (.seconds(9_223_372_036), 9_223_372_036_000_000_000), (.seconds(Int64.max), .max),
        ] as [(Duration, Int64)])
    func `a duration is counted in nanoseconds`(_ duration: Duration, _ count: Int64) {
        #expect(duration.nanoseconds == count)
    }

    @Test func `the file is recognised by the letters in its header`() async throws {
        await (try SQLiteStores.open(folder)).close()
        let header = try Data(contentsOf: URL(fileURLWithPath: folder.database)).prefix(100)
        #expect(Array(header[68..<72]) == Array("SyAu".utf8))
    }

    @Test func `the probe of the disk replaces one row of several pages`() async throws {
        let stores = try SQLiteStores.open(folder)
        var seen: Set<String> = []
        for _ in 0..<3 {
            try await stores.probeWrite()
            let rows = try await stores.database.read {
                try String.fetchAll($0, sql: "SELECT value FROM facts WHERE name = 'write_probe'")
            }
            #expect(rows.count == 1 && rows.allSatisfy { $0.utf8.count > 12_000 })
            seen.formUnion(rows)
        }
        #expect(seen.count == 3)
        await stores.close()
    }

    @Test func `a missing file system has no free bytes`() {
        #expect(SQLiteStores.freeBytes(at: "\(folder.path)/missing") == nil)
        #expect(SQLiteStores.freeBytes(at: folder.path).map { $0 > 0 } == true)
    }
}
