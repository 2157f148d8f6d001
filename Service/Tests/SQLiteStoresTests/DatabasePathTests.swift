import AuthContract
import AuthService
import Foundation
import Testing

@testable import SQLiteStores

/// Every path to a database leads to one service, one key and one claim journal.
struct DatabasePathTests {
    private let folder: TemporaryFolder
    private let start = JournalBench.start

    init() throws { folder = try TemporaryFolder() }

    private func link(_ name: String, to target: String) throws -> String {
        let path = "\(folder.path)/\(name)"
        try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: target)
        return path
    }

    private func open(_ path: String) throws(StoreOpenError) -> SQLiteStores {
        try SQLiteStores(path: path, clock: FixedClock(), logger: silent)
    }

    @Test(arguments: ["auth.sqlite", "./auth.sqlite", "other", "folder/auth.sqlite"])
    func `a second service is refused through any name of the file`(_ target: String) async throws {
        let first = try SQLiteStores.open(folder)
        _ = try link("other", to: "auth.sqlite")
        _ = try link("folder", to: ".")
        let name = try link("name", to: target)
        let error = #expect(throws: StoreOpenError.self) { try open(name) }
        #expect(error?.code == .inUse)
        await first.close()
    }

    @Test func `claims taken under one name are taken under another`() async throws {
        let claim = ReplayClaim(high: 1, low: 2)
        func claimed(_ stores: SQLiteStores) async throws -> ClaimOutcome {
            try await stores.replay.claim(
                [claim], timestamp: start, expiresAt: start + 660, now: start, futureWindow: 60)
        }
        let name = try link("name", to: "auth.sqlite")
        let first = try SQLiteStores.open(folder)
        #expect(try await claimed(first) == .claimed)
        await first.close()
        let second = try open(name)
        #expect(try await claimed(second) == .taken(claim))
        await second.close()
        #expect(!FileManager.default.fileExists(atPath: name + "-claims"))
    }

    @Test func `a link to a missing file creates that file`() async throws {
        try FileManager.default.createDirectory(atPath: "\(folder.path)/data", withIntermediateDirectories: false)
        let name = try link("name", to: "second")
        _ = try link("second", to: "data/real.sqlite")
        await (try open(name)).close()
        #expect(FileManager.default.fileExists(atPath: "\(folder.path)/data/real.sqlite-claims"))
    }

    @Test func `a circle of links is refused`() throws {
        let name = try link("name", to: "second")
        _ = try link("second", to: "name")
        let error = #expect(throws: StoreOpenError.self) { try open(name) }
        #expect(error?.code == .notReadable)
    }

    @Test func `a file is no folder of another file`() throws {
        try Data().write(to: URL(fileURLWithPath: folder.database))
        let error = #expect(throws: StoreOpenError.self) { try SQLiteStores.resolvedPath("\(folder.database)/inner") }
        #expect(error?.code == .notReadable)
    }

    @Test(
        "a name without a folder is in the working directory, and in the root after a slash",
        arguments: ["", "./", "/"], ["d", "d.sqlite"])
    func noFolder(_ folder: String, _ name: String) throws {
        let working = FileManager.default.currentDirectoryPath
        let expected = folder == "/" || working == "/" ? "/" : working + "/"
        #expect(try SQLiteStores.resolvedPath(folder + name) == expected + name)
    }

    @Test(arguments: [(nil, false), (0, false), (1, true)] as [(Int?, Bool)])
    func `a file that is not empty is a database`(_ size: Int?, _ isOne: Bool) throws {
        if let size { try Data(count: size).write(to: URL(fileURLWithPath: folder.database)) }
        #expect(SQLiteStores.hasDatabase(at: folder.database) == isOne)
    }

    @Test(arguments: [39, 40]) func `fewer than forty links to a missing file are followed`(_ count: Int) throws {
        var name = "real.sqlite"
        for number in 1...count {
            _ = try link("link\(number)", to: name)
            name = "link\(number)"
        }
        let path = "\(folder.path)/\(name)"
        if count < 40 {
            #expect(try SQLiteStores.resolvedPath(path).hasSuffix("/real.sqlite"))
        } else {
            let error = #expect(throws: StoreOpenError.self) { try SQLiteStores.resolvedPath(path) }
            #expect(error?.code == .notReadable)
        }
    }

    @Test(arguments: [SQLiteStores.Role.service, .administration])
    func `a file with a second hard link is refused`(_ role: SQLiteStores.Role) async throws {
        await (try SQLiteStores.open(folder)).close()
        let second = "\(folder.path)/second.sqlite"
        try FileManager.default.linkItem(atPath: folder.database, toPath: second)
        for path in [folder.database, second] {
            let error = #expect(throws: StoreOpenError.self) {
                try SQLiteStores(path: path, role: role, clock: FixedClock(), logger: silent)
            }
            #expect(error?.code == .severalNames)
        }
        #expect(throws: StoreOpenError.self) { try DatabaseInspection.of(second) }
        try FileManager.default.removeItem(atPath: second)
        await (try SQLiteStores.open(folder, role: role)).close()
    }

    @Test func `a pipe is refused and does not hang`() throws {
        let pipe = "\(folder.path)/pipe"
        try #require(mkfifo(pipe, 0o600) == 0)
        let error = #expect(throws: StoreOpenError.self) { try open(pipe) }
        #expect(error?.code == .notADatabase)
        #expect(throws: StoreOpenError.self) { try DatabaseInspection.of(pipe) }
        #expect(throws: StoreOpenError.self) { try SQLiteStores.checkFile(pipe) }
    }

    @Test func `an inspection through a link sees a running service`() async throws {
        let name = try link("name", to: "auth.sqlite")
        let service = try SQLiteStores.open(folder)
        #expect(try DatabaseInspection.of(name).isServed)
        await service.close()
        #expect(try !DatabaseInspection.of(name).isServed)
    }
}
