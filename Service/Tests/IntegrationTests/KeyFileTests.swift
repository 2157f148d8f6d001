import Foundation
import GRDB
import Testing

/// The service key file while it is created, and while an operator replaces it.
@Suite struct `The key file` {
    private let folder: TemporaryFolder
    private let database: String
    private var keyFile: URL { URL(fileURLWithPath: database + ".key") }

    init() throws {
        folder = try TemporaryFolder()
        database = folder.path("db.sqlite")
    }

    private static let canTrace = FileManager.default.isExecutableFile(atPath: "/usr/bin/strace") && Tracer.canAttach

    private func add(_ name: String) async throws -> Binary.Result {
        try await Binary.run(
            ["apps", "add", "--file", "-", "--database", database],
            input: DevelopmentDevice.app.replacingOccurrences(of: DevelopmentDevice.appID, with: name))
    }

    /// Adds an app as on a file system without hard links: strace makes each link fail. `fault` is another fault to inject.
    private func addWithoutLinks(_ name: String, fault: [String] = []) async throws -> Binary.Result {
        try await Binary.run(
            [
                "-f", "-o", "/dev/null", "-e", "trace=link,linkat,rename,write,fsync", "-e",
                "inject=link,linkat:error=EPERM",
            ] + fault + [Binary.url.path, "apps", "add", "--file", "-", "--database", database],
            input: DevelopmentDevice.app.replacingOccurrences(of: DevelopmentDevice.appID, with: name),
            of: URL(fileURLWithPath: "/usr/bin/strace"))
    }

    private func expectWholeKey() throws {
        let attributes = try FileManager.default.attributesOfItem(atPath: keyFile.path)
        #expect(attributes[.size] as? Int == 45)
        #expect(attributes[.posixPermissions] as? Int == 0o600)
    }

    @Test(.enabled(if: canTrace, "scripts/prepare strace, and the right to trace"))
    func `is whole and made once where the file system has no hard links`() async throws {
        let failures = try await withThrowingTaskGroup(of: String?.self) { group in
            for number in 0..<8 {
                group.addTask {
                    let result = try await addWithoutLinks("com.example.app\(number)")
                    return result.status == 0 ? nil : result.errors
                }
            }
            return try await group.reduce(into: [String]()) { if let failure = $1 { $0.append(failure) } }
        }
        #expect(failures == [])
        try expectWholeKey()
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.url.path)
        #expect(names.filter { $0.contains(".key") } == ["db.sqlite.key"])
        // All apps were sealed with the same key.
        #expect(try await Binary.run(["apps", "list", "--database", database]).status == 0)
    }

    @Test(
        .enabled(if: canTrace, "scripts/prepare strace, and the right to trace"),
        arguments: ["write", "fsync", "rename"])
    func `without hard links, a killed process leaves a whole key file or none`(
        _ call: String
    ) async throws {
        let killed = try await addWithoutLinks(
            "com.example.first", fault: ["-e", "inject=\(call):signal=KILL:when=1"])
        #expect(killed.status != 0)
        if FileManager.default.fileExists(atPath: keyFile.path) { try expectWholeKey() }
        let next = try await add("com.example.second")
        #expect(next.status == 0, "after \(call): \(next.errors)")
        try expectWholeKey()
    }

    @Test func `may be replaced while commands run: each works with the old list or with the new one`() async throws {
        try #require(try await add(DevelopmentDevice.appID).status == 0)
        let old = try String(contentsOf: keyFile, encoding: .utf8)
        let lists = [old + Data(repeating: 7, count: 32).base64EncodedString() + "\n", old]
        let sealed = try sealedRecords()
        let results = try await withThrowingTaskGroup(of: [Binary.Result].self) { group in
            // Of these commands, only the rotation stores a sealed value. It runs once, because one of two concurrent rotations may
            // be refused.
            for sealing in [["signing-keys", "rotate"], ["devices", "list"], ["credentials", "list"]] {
                group.addTask {
                    var results: [Binary.Result] = []
                    for command in [["apps", "list"], sealing, ["audit", "verify"]] {
                        results.append(try await Binary.run(command + ["--database", database]))
                    }
                    return results
                }
            }
            var results: [Binary.Result] = []
            let replacing = Task {
                var number = 0
                while !Task.isCancelled {
                    // Replaces the file atomically, as `mv` does.
                    try Data(lists[number % 2].utf8).write(to: keyFile, options: .atomic)
                    number += 1
                    try await Task.sleep(for: .milliseconds(1))
                }
            }
            for try await some in group { results += some }
            replacing.cancel()
            return results
        }
        for result in results { #expect(result.status == 0, "\(result)") }
        #expect(try sealedRecords() == sealed)
    }

    @Test func `that is empty for a moment refuses commands, and no key is made in its place`() async throws {
        try #require(try await add(DevelopmentDevice.appID).status == 0)
        let old = try Data(contentsOf: keyFile)
        // Overwrites the file as an editor or `cp` does: truncates it, then writes.
        try Data().write(to: keyFile)
        let refused = try await Binary.run(["signing-keys", "rotate", "--database", database])
        #expect(refused.status == 2 && refused.errors.contains(keyFile.path), "\(refused)")
        #expect(try Data(contentsOf: keyFile).isEmpty)
        try old.write(to: keyFile)
        #expect(try await Binary.run(["signing-keys", "rotate", "--database", database]).status == 0)
        #expect(try Data(contentsOf: keyFile) == old)
    }

    private func sealedRecords() throws -> [String] {
        try DatabaseQueue(path: database).read { try String.fetchAll($0, sql: "SELECT record FROM apps") }
    }
}
