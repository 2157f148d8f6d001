import AuthContract
import Bytes
import Foundation
import GRDB
import StrictJSON
import Testing

@testable import AuthService
@testable import SQLiteStores

/// A database whose oldest audit events are in archive files can be backed up and restored.
@Suite struct ArchivedRestoreTests {
    private let folder: TemporaryFolder
    private let stores: SQLiteStores
    private let files: AuditArchiveFolder
    private let key: ServiceKey
    private let trail: AuditTrail

    init() async throws {
        folder = try TemporaryFolder()
        stores = try SQLiteStores.open(folder)
        files = AuditArchiveFolder(folder.path("archive"))
        try FileManager.default.createDirectory(atPath: files.path, withIntermediateDirectories: false)
        key = try #require(ServiceKey([UInt8](repeating: 7, count: 32)))
        trail = AuthService(stores: stores.all, key: key, clock: FixedClock()).auditTrail
        for _ in 0..<20 { try await stores.audit.append(sampleEvent()) }
    }

    /// Archives events, and removes none.
    private func archive(_ first: Int64, _ last: Int64, seal: AuditHead? = nil) async throws {
        let store = try #require(stores.all.auditArchives)
        let entries = try await store.auditEntries(after: first - 1, limit: Int(last - first) + 1)
        let hash = try #require(entries.last).hash
        let seal = try seal ?? trail.sign(.archive, AuditLink(sequence: last, hash: hash))
        _ = try await files.add(entries, sealedBy: seal)
        #expect(try await store.add(.init(first: first, last: last, hash: hash, seal: seal.description)))
    }

    private func backup(_ key: ServiceKey, _ head: AuditHead) async throws -> [UInt8] {
        let bytes = Locked<[UInt8]>([])
        try await stores.snapshot { _, export in
            let contents = BackupContents(takenAt: FixedClock().now, version: "1.0.0", head: head)
            var writer = try BackupWriter(key: key, contents: contents) { more in bytes.withLock { $0 += more } }
            try export { table, cells in try writer.add(cells, of: table) }
            try writer.finish()
        }
        return bytes.withLock { $0 }
    }

    private static func read(
        _ backup: [UInt8], _ key: ServiceKey,
        _ visit: (StoredTable, [StoredTable.Cell]) throws -> Void = { _, _ in }
    ) throws {
        var left = backup[...]
        _ = try BackupReader.read(
            key: key,
            from: { count in
                let piece = left.prefix(count)
                left = left.dropFirst(piece.count)
                return Array(piece)
            }, visit)
    }

    @Test(arguments: [0, 4, 10, 12, 1000])
    func `archives come back, also while their events are not removed yet, and webhooks come back switched off`(
        _ removed: Int
    ) async throws {
        let webhook = Webhook(
            id: "0123456789abcdef", url: "https://hooks.example.com/", scope: .allApps, sealedSecret: [1],
            createdAt: FixedClock().now, position: 3)
        #expect(try await stores.all.webhooks?.insert(webhook, recording: sampleEvent()) == true)
        try await archive(1, 10)
        try await archive(11, 15)
        if removed > 0 { _ = try await stores.all.auditArchives?.removeArchivedEvents(limit: removed) }
        let head = try await trail.head()
        let (bytes, key) = (try await backup(key, head), key)
        try await SQLiteStores.restore(
            folder.path("restored.sqlite"), lastReading: FixedClock().now, at: FixedClock().now,
            from: { visit in try Self.read(bytes, key) { try visit($0, $0.restored($1)) } },
            check: { new in
                var trail = AuthService(stores: new.all, key: key, clock: FixedClock()).auditTrail
                let names = ["audit-000000000001-000000000010.jsonl", "audit-000000000011-000000000015.jsonl"]
                #expect(try await trail.missingArchives() == names)
                #expect(try await trail.verify(against: head, skipsMissing: true) == .intact)
                trail.folder = files
                #expect(try await trail.missingArchives() == [])
                #expect(try await trail.verify(against: head) == .intact)
                try await new.audit.append(sampleEvent())
                #expect(try await trail.verify(against: head) == .intact)
                let guards = try await new.database.read {
                    try Int.fetchOne($0, sql: "SELECT count(*) FROM sqlite_master WHERE name = 'audit_has_no_gaps'")
                }
                #expect(guards == 1)
                #expect(try await new.all.webhooks?.webhooks().map(\.isEnabled) == [false])
            })
        await stores.close()
    }

    @Test(arguments: [0, 4, 10, 12])
    func `an archived event that is still in the log, or again, must be the archived one`(_ removed: Int64) async throws
    {
        try await archive(1, 10)
        try await archive(11, 15)
        if removed > 0 { _ = try await stores.all.auditArchives?.removeArchivedEvents(limit: Int(removed)) }
        var trail = trail
        trail.folder = files
        let head = try await trail.head()
        #expect(try await trail.verify(against: head) == .intact)
        let triggers = try await stores.database.read {
            try Row.fetchAll($0, sql: "SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'audit'")
                .map { $0["name"] as String }
        }
        try await stores.database.write { database in
            for trigger in triggers { try database.execute(sql: "DROP TRIGGER \(trigger)") }
        }
        /// Changes the log, checks it, and undoes the change.
        func verdict(_ sql: String) async throws -> AuditCheckResult {
            try await stores.database.write { try $0.execute(sql: "CREATE TABLE kept AS SELECT * FROM audit; \(sql)") }
            let result = try await trail.verify(against: head)
            try await stores.database.write {
                try $0.execute(sql: "DELETE FROM audit; INSERT INTO audit SELECT * FROM kept; DROP TABLE kept")
            }
            return result
        }
        let first = removed + 1
        for sequence in [first, first + 1] where sequence <= 15 {
            let change = "UPDATE audit SET actor = 'forged' WHERE sequence = \(sequence)"
            #expect(try await verdict(change) == .brokenLink(sequence))
        }
        // Inserts a forged event before the log's first event, as a copy of another event.
        for sequence in [first - 1, 5, 0, -5] where sequence < first {
            let insertion = """
                INSERT INTO audit (sequence, code, at, actor, app_id, device_id, detail, hash)
                SELECT \(sequence), code, at, 'forged', app_id, device_id, detail, hash FROM audit WHERE sequence = 15
                """
            #expect(try await verdict(insertion) != .intact, "\(sequence)")
        }
        #expect(try await verdict("DELETE FROM audit WHERE sequence > 13") != .intact)
        #expect(try await trail.verify(against: head) == .intact)
        await stores.close()
    }

    @Test func `an archive that this service did not seal is found`() async throws {
        let other = try #require(ServiceKey([UInt8](repeating: 8, count: 32)))
        let link = try #require(try await stores.audit.link(at: 10))
        let foreign = AuthService(stores: stores.all, key: other, clock: FixedClock()).auditTrail
        try await archive(1, 10, seal: foreign.sign(.archive, link))
        let bytes = try await backup(key, try await trail.head())
        let error = #expect(throws: BackupError.self) { try Self.read(bytes, key) }
        #expect(error?.code == .brokenAudit)
        await stores.close()
    }

    @Test func `an archive stays genuine after a rotation of the service key`() async throws {
        try await archive(1, 10)
        let (new, old) = ([UInt8](repeating: 9, count: 32), [UInt8](repeating: 7, count: 32))
        let (both, alone) = (try #require(ServiceKey([new, old])), try #require(ServiceKey(new)))
        let detail = JSONObject([("audit_keys", try AuditTrail.succession(of: both))])
        try await stores.audit.append(
            AuditEvent(.serviceKeyRotated, at: FixedClock().now, actor: "test", detail: detail))
        let head = try await AuthService(stores: stores.all, key: alone, clock: FixedClock()).auditTrail.head()
        try Self.read(try await backup(alone, head), alone)
        await stores.close()
    }
}
