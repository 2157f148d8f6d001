import AuthService
import Dispatch
import Foundation
import Testing

@testable import SQLiteStores

/// A command runs while a service starts at the same moment.
@Suite struct `The lock of a database's service` {
    private let folder: TemporaryFolder
    private var claims: String { folder.database + "-claims" }
    private var lock: SQLiteServiceLock { SQLiteServiceLock(database: folder.database) }

    init() throws { folder = try TemporaryFolder() }

    @Test func `is not given to a command while a service has the database open`() async throws {
        let service = try SQLiteStores.open(folder)
        let isUnserved = try await lock.withoutService { Issue.record("a service has the database open") }
        #expect(!isUnserved)
        await service.close()
        #expect(try await lock.withoutService {})
    }

    @Test func `keeps a service from starting while a command has it, and the command is no service`() async throws {
        await (try SQLiteStores.open(folder)).close()
        let (database, claims) = (folder.database, claims)
        let isUnserved = try await lock.withoutService { () async throws in
            #expect(try JournalFile.locked(claims + "/lock") == nil)
            #expect(try !DatabaseInspection.of(database).isServed)
        }
        #expect(isUnserved)
        await (try SQLiteStores.open(folder)).close()
    }

    @Test func `makes a service that starts meanwhile wait, and read what the command recorded`() async throws {
        let old = try #require(ServiceKey([UInt8](repeating: 1, count: 32)))
        let both = try #require(ServiceKey([[UInt8](repeating: 2, count: 32), [UInt8](repeating: 1, count: 32)]))
        let command = try SQLiteStores.open(folder, role: .administration)
        try await ServiceKeyRules(store: command.serviceKeys, key: old).admit(writing: true)

        let (starts, started) = AsyncStream.makeStream(of: [ServiceKeyCheck].self)
        let folder = folder
        let isUnserved = try await lock.withoutService {
            DispatchQueue.global().async {
                let service = try? SQLiteStores.open(folder)
                Task {
                    started.yield(try await service?.serviceKeys.keyChecks() ?? [])
                    started.finish()
                    await service?.close()
                }
            }
            // Meanwhile the service tries to get the lock.
            for _ in 0..<10 { await letMaintenanceWork() }
            let isRecorded = try await command.serviceKeys.replaceKeyChecks(
                old.checks, with: both.checks, recording: nil)
            #expect(isRecorded)
        }
        #expect(isUnserved)
        var seen: [[ServiceKeyCheck]] = []
        for await checks in starts { seen.append(checks) }
        #expect(seen == [both.checks])
        await command.close()
    }

    @Test func `is not needed by a command that was admitted before a rotation: it changes nothing after it`()
        async throws
    {
        let old = try #require(ServiceKey([UInt8](repeating: 1, count: 32)))
        let both = try #require(ServiceKey([[UInt8](repeating: 2, count: 32), [UInt8](repeating: 1, count: 32)]))
        let command = try SQLiteStores.open(folder, role: .administration)
        let signingKeys = AuthService(stores: command.all, key: old, clock: FixedClock()).signingKeys
        try await ServiceKeyRules(store: command.serviceKeys, key: old).admit(writing: true)
        command.allowWrites(whileSealing: old.checks[0])
        _ = try await signingKeys.rotate(actor: "test")

        let other = try SQLiteStores.open(folder, role: .administration)
        let rules = ServiceKeyRules(store: other.serviceKeys, key: both)
        #expect(try await rules.rotate(actor: "test", lock: lock) > 0)
        await #expect(throws: Refusal.self) { try await signingKeys.rotate(actor: "test") }
        command.allowWrites(whileSealing: both.checks[0])
        try await command.audit.append(sampleEvent())
        #expect(try await rules.rotate(actor: "test", lock: lock) == 0, "a row was sealed with the old key")
        await command.close()
        await other.close()
    }

    @Test func `is made where no service was ever started, for the owner of the database alone`() async throws {
        let command = try SQLiteStores.open(folder, role: .administration)
        #expect(try await lock.withoutService {})
        for (path, mode) in [(claims, 0o700), (claims + "/lock", 0o600)] {
            let attributes = try FileManager.default.attributesOfItem(atPath: path)
            let database = try FileManager.default.attributesOfItem(atPath: folder.database)
            #expect(attributes[.posixPermissions] as? Int == mode)
            #expect(attributes[.ownerAccountID] as? Int == database[.ownerAccountID] as? Int)
        }
        await command.close()
        await (try SQLiteStores.open(folder)).close()
    }

    @Test(.enabled(if: geteuid() == 0, "only root may give files away"))
    func `made by root belongs to the owner of the database`() async throws {
        await (try SQLiteStores.open(folder, role: .administration)).close()
        try #require(chown(folder.database, 12_345, 12_346) == 0)
        #expect(try await lock.withoutService {})
        for path in [claims, claims + "/lock"] {
            let attributes = try FileManager.default.attributesOfItem(atPath: path)
            #expect(attributes[.ownerAccountID] as? Int == 12_345)
            #expect(attributes[.groupOwnerAccountID] as? Int == 12_346)
        }
    }

    @Test func `that cannot be asked for is an error, and nothing is changed`() async throws {
        await (try SQLiteStores.open(folder, role: .administration)).close()
        // Puts a file in place of the folder.
        try Data().write(to: URL(fileURLWithPath: claims))
        await #expect(throws: StoreOpenError.self) {
            try await lock.withoutService { Issue.record("the lock is not held") }
        }
    }

    @Test func `cannot be taken where there is no folder for it`() async throws {
        let lock = SQLiteServiceLock(database: "\(folder.path)/missing/auth.sqlite")
        let error = await #expect(throws: StoreOpenError.self) {
            _ = try await lock.withoutService { Issue.record("the lock was not taken") }
        }
        #expect(error?.code == .notWritable)
    }
}
