import AuthService
import Foundation
import GRDB
import Testing

@testable import SQLiteStores

/// If a first start is killed, the next start opens the files that it left.
struct FirstStartTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private func expectOpens() async throws {
        let stores = try SQLiteStores.open(folder)
        try await stores.audit.append(sampleEvent())
        await stores.close()
    }

    @Test func `an empty file becomes a database`() async throws {
        try Data().write(to: URL(fileURLWithPath: folder.database))
        try await expectOpens()
    }

    @Test(arguments: [false, true])
    func `a file with nothing but the migrator's table is completed`(_ isWAL: Bool) async throws {
        let queue = try DatabaseQueue(path: folder.database)
        try await queue.writeWithoutTransaction { database in
            if isWAL { try database.execute(sql: "PRAGMA journal_mode = WAL") }
            try database.execute(sql: "CREATE TABLE grdb_migrations (identifier TEXT NOT NULL PRIMARY KEY)")
        }
        try queue.close()
        #expect(try DatabaseInspection.of(folder.database).isOlder)
        try await expectOpens()
    }

    @Test func `unknown migrations belong to another version`() throws {
        let queue = try DatabaseQueue(path: folder.database)
        try queue.write { database in
            try database.execute(sql: "CREATE TABLE grdb_migrations (identifier TEXT NOT NULL PRIMARY KEY)")
            try database.execute(sql: "INSERT INTO grdb_migrations VALUES ('of another program')")
        }
        try queue.close()
        let error = #expect(throws: StoreOpenError.self) { try SQLiteStores.open(folder) }
        #expect(error?.code == .newerVersion)
    }

    @Test func `a database with other tables besides the migrator's belongs to another program`() throws {
        let queue = try DatabaseQueue(path: folder.database)
        try queue.write { database in
            try database.execute(sql: "CREATE TABLE grdb_migrations (identifier TEXT NOT NULL PRIMARY KEY)")
            try database.execute(sql: "CREATE TABLE recipes (title TEXT)")
        }
        try queue.close()
        let error = #expect(throws: StoreOpenError.self) { try SQLiteStores.open(folder) }
        #expect(error?.code == .notADatabase)
    }

    @Test func `the file is marked as ours before its first migration`() async throws {
        let ours = try DatabaseQueue(path: folder.database)
        try await ours.writeWithoutTransaction {
            try $0.execute(sql: "PRAGMA application_id = \(Schema.applicationID)")
        }
        try ours.close()
        try await expectOpens()
    }

    /// Copies the file and its journal in the middle of a transaction, as they are after a kill.
    private func leaveHalf(_ begin: String) async throws {
        let source = "\(folder.path)/source.sqlite"
        var configuration = Configuration()
        configuration.allowsUnsafeTransactions = true
        let queue = try DatabaseQueue(path: source, configuration: configuration)
        try await queue.writeWithoutTransaction { [folder] database in
            try database.execute(sql: begin)
            try database.execute(sql: "PRAGMA cache_size = 1")
            try database.execute(sql: "BEGIN IMMEDIATE")
            try database.execute(sql: "CREATE TABLE half (text TEXT)")
            for _ in 0..<200 { try database.execute(sql: "INSERT INTO half VALUES (hex(zeroblob(2000)))") }
            for suffix in ["", "-journal"] {
                try FileManager.default.copyItem(atPath: source + suffix, toPath: folder.database + suffix)
            }
            try database.execute(sql: "ROLLBACK")
        }
        try queue.close()
        try #require(try Data(contentsOf: URL(fileURLWithPath: folder.database + "-journal")).count > 512)
    }

    @Test func `a rollback journal that a killed process left is rolled back`() async throws {
        try await leaveHalf("PRAGMA application_id = \(Schema.applicationID)")
        try await expectOpens()
        let stores = try SQLiteStores.open(folder)
        let isHalf = try await stores.database.read { try $0.tableExists("half") }
        #expect(!isHalf)
        await stores.close()
    }

    @Test func `a rollback journal of another program leaves its database that program's`() async throws {
        try await leaveHalf("CREATE TABLE recipes (title TEXT)")
        let error = #expect(throws: StoreOpenError.self) { try SQLiteStores.open(folder) }
        #expect(error?.code == .notADatabase)
        let application = try await DatabaseQueue(path: folder.database).read {
            try Int.fetchOne($0, sql: "PRAGMA application_id")
        }
        #expect(application == 0)
    }

    @Test func `a database in another journal mode is switched to the write-ahead log`() async throws {
        try await expectOpens()
        let queue = try DatabaseQueue(path: folder.database)
        try await queue.writeWithoutTransaction { try $0.execute(sql: "PRAGMA journal_mode = DELETE") }
        try queue.close()
        try await expectOpens()
        let isWAL = try await DatabaseQueue(path: folder.database).read {
            try String.fetchOne($0, sql: "PRAGMA journal_mode")
        }
        #expect(isWAL == "wal")
    }

    @Test func `many simultaneous openings create one database`() async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<24 {
                group.addTask { [folder] in
                    let stores = try SQLiteStores.open(folder, role: .administration)
                    try await stores.audit.append(sampleEvent())
                    await stores.close()
                }
            }
            try await group.waitForAll()
        }
        let stores = try SQLiteStores.open(folder, role: .administration)
        #expect(try await stores.audit.events(app: nil, device: nil, before: nil, limit: 100).count == 24)
        await stores.close()
    }

    @Test func `the opening lock ends with the opening, and one that is held too long is reported`() throws {
        let lock = try OpeningLock(folder.path)
        let error = withExtendedLifetime(lock) {
            #expect(throws: StoreOpenError.self) { _ = try OpeningLock(folder.path, timeout: .milliseconds(20)) }
        }
        #expect(error?.code == .inUse)
    }
}
