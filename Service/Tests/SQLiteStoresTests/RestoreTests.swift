import AuthContract
import AuthService
import Bytes
import Foundation
import GRDB
import Testing

@testable import SQLiteStores

/// A snapshot captures the file at one moment, and a restore creates a new file from the snapshot.
@Suite struct RestoreTests {
    private let folder: TemporaryFolder
    private let clock = FixedClock()
    /// Seconds since `clock`'s time.
    private let monotonic = Locked<Int64>(0)
    /// Seconds by which the clock was behind until it was set right.
    private let behind = Locked<Int64>(0)

    init() throws { folder = try TemporaryFolder() }

    private var restored: String { folder.path("restored.sqlite") }

    /// A database with rows in most tables.
    private func filled() async throws -> SQLiteStores {
        let stores = try SQLiteStores.open(folder)
        let device = try sampleDevice()
        try await stores.add(device)
        let moved = try await stores.serviceKeys.replaceKeyChecks(
            [], with: try #require(ServiceKey([UInt8](repeating: 1, count: 32))).checks, recording: nil)
        try #require(moved)
        try await stores.database.write { database in
            try database.execute(
                sql: """
                    INSERT INTO evidence (id, app_id, recorded_at, expires_at, format, code, step, size, sealed)
                      VALUES ('e', 'com.example.app', 1, 2, 'f', 'c', 's', 3, x'010203');
                    INSERT INTO signing_keys (id, sealed_key, created_at) VALUES ('z', x'00', 1), ('a', x'', 2);
                    INSERT INTO saved_challenges VALUES (x'00', 'com.example.app', 'register', 1, 's');
                    """)
        }
        return stores
    }

    private func rows(_ stores: SQLiteStores) async throws -> [[StoredTable.Cell]] {
        let found = Locked<[[StoredTable.Cell]]>([])
        try await stores.snapshot { _, export in
            try export { table, cells in found.withLock { $0.append([.text(table.rawValue)] + cells) } }
        }
        return found.withLock { $0 }
    }

    private func restore(
        _ stores: SQLiteStores, to path: String, check: (SQLiteStores) async throws -> Void = { _ in }
    ) async throws {
        try await SQLiteStores.restore(
            path, lastReading: clock.now, at: clock.now, from: { visit in try stores.export(visit) }, check: check)
    }

    @Test func `every row comes back, and nothing but the new file remains`() async throws {
        let stores = try await filled()
        let before = try await rows(stores)
        try await restore(stores, to: restored) { new in
            #expect(try await new.audit.firstBrokenLink() == nil)
            try await new.audit.append(sampleEvent())
        }
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: folder.path).filter { $0.hasPrefix("res") }.count == 1)
        let new = try SQLiteStores(path: restored, role: .administration, clock: clock, logger: silent)
        let after = try await rows(new)
        #expect(Array(after.dropLast()) == before)
        let sizes = try await new.database.read { try Int64.fetchAll($0, sql: "SELECT size FROM evidence") }
        #expect(sizes == [3])
        await new.close()
        await stores.close()
    }

    @Test func `closed stores leave nothing in the log, so that a copy of the file has every change`() async throws {
        let stores = try SQLiteStores.open(folder)
        let device = try sampleDevice()
        try await stores.addApp(of: device)
        for _ in 0..<3 { _ = try await stores.devices.device(device.deviceID, of: device.appID) }
        try await stores.add(device)
        await stores.close()
        #expect(!DatabasePath.hasContent(folder.database + "-wal"))
    }

    @Test func `a stopped service leaves nothing in the log, also beside a command that has the file open`()
        async throws
    {
        let stores = try SQLiteStores.open(folder)
        let other = try SQLiteStores.open(folder, role: .administration)
        try await stores.audit.append(sampleEvent())
        await stores.close()
        #expect(!DatabasePath.hasContent(folder.database + "-wal"))
        #expect(try await other.audit.link(at: nil)?.sequence == 1)
        await other.close()
    }

    /// A read connection cannot empty the write-ahead log. If it closes last, changes stay in the log. So `close` must
    /// not return while a read connection is still closing.
    @Test func `stores that are closed right after reads leave nothing in the log`() async throws {
        for _ in 0..<100 {
            let stores = try SQLiteStores.open(folder, role: .administration)
            try await stores.audit.append(sampleEvent())
            for _ in 0..<2 { _ = try await stores.audit.link(at: nil) }
            await stores.close()
            guard !DatabasePath.hasContent(folder.database + "-wal") else {
                Issue.record("the log has changes")
                return
            }
        }
    }

    @Test func `a snapshot does not change while others write, and does not stop them`() async throws {
        let stores = try await filled()
        let device = try sampleDevice()
        let other = try SQLiteStores.open(folder, role: .administration)
        let (count, end) = (Locked(0), Locked<AuditLink?>(nil))
        try await stores.snapshot { link, export in
            try other.database.writeNow { database in
                try database.execute(sql: "DELETE FROM evidence")
                try database.append(sampleEvent(device: device))
            }
            try export { table, _ in if table == .audit || table == .evidence { count.withLock { $0 += 1 } } }
            end.withLock { $0 = link }
        }
        #expect(count.withLock { $0 } == 3)
        #expect(end.withLock { $0?.sequence } == 2)
        #expect(try await stores.audit.link(at: nil)?.sequence == 3)
        await other.close()
        await stores.close()
    }

    @Test(arguments: [false, true])
    func `claims of before are unknown, even with their journal beside the new file`(_ keepsJournal: Bool) async throws
    {
        let stores = try await filled()
        try await restore(stores, to: restored)
        await stores.close()
        if keepsJournal {
            try FileManager.default.copyItem(atPath: folder.database + "-claims", toPath: restored + "-claims")
        }
        let now = clock.now + 400
        let new = try opened(at: now)
        for date in [clock.now - 600, clock.now, now, now + 60] { #expect(try await isLost(date, new, now)) }
        #expect(try await !isLost(now + 61, new, now + 61))
        await new.close()
        // The loss stays recorded.
        let again = try opened(at: now + 70)
        #expect(try await isLost(now, again, now + 70))
        await again.close()
    }

    /// The future window may have been wider while requests were accepted after the backup.
    @Test func `the refusal covers the widest future window after the restore, with any window of the app`()
        async throws
    {
        let stores = try await filled()
        try await restore(stores, to: restored)
        await stores.close()
        let new = try opened(at: clock.now + 10)
        for ahead: Int64 in [0, 71, 290, 300] { #expect(try await isLost(clock.now + ahead, new, clock.now + 240)) }
        #expect(try await !isLost(clock.now + 301, new, clock.now + 301))
        await new.close()
    }

    /// The clock of the new machine is behind, and is set right while the service runs, or while it is down.
    @Test(arguments: [false, true])
    func `if the clock steps ahead soon after a restore, requests dated now are refused too`(
        _ restarts: Bool
    ) async throws {
        let stores = try await filled()
        try await restore(stores, to: restored)
        await stores.close()
        var new = try opened(at: clock.now)
        #expect(try await !isLost(clock.now + 301, new, clock.now + 301))
        behind.withLock { $0 = 3699 }
        let right = clock.now + 4000
        if restarts {
            await new.close()
            new = try opened(at: right)
        }
        for date in [right - 600, right, right + 60] { #expect(try await isLost(date, new, right)) }
        await new.close()
        new = try opened(at: right + 1)
        #expect(try await isLost(right + 300, new, right + 270))
        #expect(try await !isLost(right + 301, new, right + 301))
        await new.close()
    }

    /// Opens the restored file as the service.
    private func opened(at now: UnixTime) throws -> SQLiteStores {
        pass(to: now)
        return try SQLiteStores(
            path: restored, role: .service, options: .init(), clock: FixedClock(now: now), logger: silent,
            boot: BootIdentity("boot"), monotonic: { [monotonic] in monotonic.withLock { $0 } })
    }

    private func pass(to now: UnixTime) {
        let seconds = now.seconds - clock.now.seconds - behind.withLock { $0 }
        monotonic.withLock { $0 = seconds }
    }

    private func isLost(_ date: UnixTime, _ stores: SQLiteStores, _ now: UnixTime) async throws -> Bool {
        pass(to: now)
        let device = DeviceID(from: SystemRandom())
        let outcome = try await stores.replay.claim(
            [.nonce(RequestNonce(from: SystemRandom()), of: device)], timestamp: date, expiresAt: date + 660, now: now,
            futureWindow: 60)
        return if case .historyLost = outcome { true } else { false }
    }

    @Test(arguments: ["", "-wal", "-shm", "-journal"])
    func `a file of that name or of its log is refused and not touched`(_ suffix: String) async throws {
        let stores = try await filled()
        try Data("x".utf8).write(to: URL(fileURLWithPath: restored + suffix))
        await #expect(throws: StoreOpenError.self) { try await restore(stores, to: restored) }
        #expect(try String(contentsOfFile: restored + suffix, encoding: .utf8) == "x")
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: folder.path).filter { $0.hasPrefix("res") }.count == 1)
        await stores.close()
    }

    @Test func `a restore that fails leaves no file`() async throws {
        struct Failure: Error {}
        let stores = try await filled()
        await #expect(throws: Failure.self) { try await restore(stores, to: restored) { _ in throw Failure() } }
        await #expect(throws: Failure.self) {
            try await SQLiteStores.restore(
                restored, lastReading: clock.now, at: clock.now,
                from: { visit in
                    try visit(.apps, [.text("a"), .text("b")])
                    throw Failure()
                }, check: { _ in })
        }
        // SQLite refuses a value of the wrong type.
        await #expect(throws: StoreOpenError.self) {
            try await SQLiteStores.restore(
                restored, lastReading: clock.now, at: clock.now,
                from: { visit in try visit(.apps, [.bytes([1]), .null]) }, check: { _ in })
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).filter { $0.hasPrefix("res") } == [])
        await stores.close()
    }
}
