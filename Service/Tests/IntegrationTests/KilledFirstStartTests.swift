import Foundation
import Testing

/// The first use of a database, killed at any of its system calls, or run by many processes at once. The next use must succeed
/// with the remaining database.
@Suite struct KilledFirstStart {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private static let isThorough = ProcessInfo.processInfo.environment["KILLED_AT_EVERY_CALL"] != nil
    /// The calls that create, lock and write files and make them durable.
    private static let calls = [
        "openat", "pwrite64", "write", "fdatasync", "fsync", "link", "unlink", "ftruncate", "flock",
    ]
    private static let canTrace = FileManager.default.isExecutableFile(atPath: "/usr/bin/strace") && Tracer.canAttach

    private static func app(_ name: String) -> String {
        DevelopmentDevice.app.replacingOccurrences(of: DevelopmentDevice.appID, with: name)
    }

    private func add(_ name: String, to database: String) async throws -> Binary.Result {
        try await Binary.run(["apps", "add", "--file", "-", "--database", database], input: Self.app(name))
    }

    /// Runs a command that strace kills at a thread's n-th call of `call`. Returns false if no thread makes so many calls.
    private func isKilled(_ arguments: [String], at call: String, _ occurrence: Int, input: String) async throws -> Bool
    {
        let result = try await Binary.run(
            [
                "-f", "-o", "/dev/null", "-e", "trace=\(call)", "-e", "inject=\(call):signal=KILL:when=\(occurrence)",
                Binary.url.path,
            ] + arguments, input: input, of: URL(fileURLWithPath: "/usr/bin/strace"))
        return result.status != 0
    }

    @Test(.enabled(if: canTrace, "scripts/prepare strace, and the right to trace"), arguments: calls)
    func `a killed first use leaves a usable state`(_ call: String) async throws {
        // The dynamic loader makes the first `openat` calls, so the kills begin at call 20.
        let occurrences =
            call == "openat"
            ? Array(stride(from: 20, through: 90, by: Self.isThorough ? 1 : 6))
            : Self.isThorough ? Array(1...40) : [1, 2, 3, 5, 8, 12, 20]
        for occurrence in occurrences {
            let database = folder.path("\(call)-\(occurrence).sqlite")
            let arguments = ["apps", "add", "--file", "-", "--database", database]
            let wasKilled = try await isKilled(arguments, at: call, occurrence, input: Self.app("com.example.first"))
            let next = try await add("com.example.second", to: database)
            #expect(next.status == 0, "after \(call) \(occurrence): \(next.errors)")
            let list = try await Binary.run(["apps", "list", "--database", database])
            #expect(list.status == 0 && list.output.contains("com.example.second"), "\(list.errors)")
            if !wasKilled { break }
        }
    }

    @Test func `simultaneous first uses all work`() async throws {
        let database = folder.path("db.sqlite")
        let count = Self.isThorough ? 150 : 40
        let failures = try await withThrowingTaskGroup(of: String?.self) { group in
            for number in 0..<count {
                group.addTask {
                    let result = try await add("com.example.app\(number)", to: database)
                    return result.status == 0 ? nil : result.errors
                }
            }
            return try await group.reduce(into: [String]()) { if let failure = $1 { $0.append(failure) } }
        }
        #expect(failures == [])
        let list = try await Binary.run(["apps", "list", "--database", database, "--json"])
        #expect(list.output.components(separatedBy: "com.example.app").count - 1 >= count)
    }
}
