import Foundation
import ServiceTestHelpers
import Testing

/// A redis-server for one test, in a temporary folder, controlled with redis-cli.
///
/// `@unchecked`: one task uses it at a time.
final class RedisProcess: @unchecked Sendable {
    let port: Int
    private let folder: TemporaryFolder
    private let arguments: [String]
    private var process: Process?

    /// - Parameters:
    ///   - port: a free port.
    ///   - arguments: more arguments of redis-server.
    init(port: Int, arguments: [String] = []) async throws {
        self.port = port
        folder = try TemporaryFolder()
        self.arguments =
            [
                "--port", String(port), "--bind", "127.0.0.1", "--dir", folder.url.path, "--save", "", "--appendonly",
                "yes", "--appendfsync", "always", "--repl-diskless-sync-delay", "0",
            ] + arguments
        try await start()
    }

    /// Starts a Sentinel that watches `master` under the name `main`, with a quorum of two.
    init(port: Int, watching master: RedisProcess) async throws {
        self.port = port
        folder = try TemporaryFolder()
        let file = folder.path("sentinel.conf")
        try """
        port \(port)
        bind 127.0.0.1
        dir \(folder.url.path)
        sentinel monitor main 127.0.0.1 \(master.port) 2
        sentinel down-after-milliseconds main 500
        sentinel failover-timeout main 5000
        """.write(toFile: file, atomically: true, encoding: .utf8)
        arguments = [file, "--sentinel"]
        try await start()
    }

    deinit { kill() }

    var url: String { "redis://127.0.0.1:\(port)" }

    /// Starts the server, which loads the data that an earlier run left on disk.
    func start() async throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/redis-server")
        process.arguments = arguments
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try process.run()
        self.process = process
        while try await command("PING") != "PONG" { try await Task.sleep(for: .milliseconds(10)) }
    }

    func signal(_ number: Int32) { if let process { Glibc.kill(process.processIdentifier, number) } }

    func kill() {
        signal(SIGCONT)
        signal(SIGKILL)
        process?.waitUntilExit()
        process = nil
    }

    /// Removes the server's data from the disk.
    func erase() throws {
        for name in try FileManager.default.contentsOfDirectory(atPath: folder.url.path) {
            try FileManager.default.removeItem(atPath: folder.path(name))
        }
    }

    /// Runs redis-cli. Returns its output.
    @discardableResult
    func command(_ words: String...) async throws -> String {
        let result = try await Binary.run(
            ["-p", String(port)] + words, of: URL(fileURLWithPath: "/usr/bin/redis-cli"))
        return result.output.trimmingCharacters(in: .whitespacesAndNewlines)
    }
}

/// A master, its replica, and three Sentinels that watch both.
struct Sentinels: Sendable {
    let master: RedisProcess
    let replica: RedisProcess
    private let watchers: [RedisProcess]

    init() async throws {
        master = try await RedisProcess(port: LoopbackPort.reserve())
        replica = try await RedisProcess(
            port: LoopbackPort.reserve(), arguments: ["--replicaof", "127.0.0.1", String(master.port)])
        var watchers: [RedisProcess] = []
        for _ in 0..<3 {
            watchers.append(try await RedisProcess(port: LoopbackPort.reserve(), watching: master))
        }
        self.watchers = watchers
        while try await !areReady() { try await Task.sleep(for: .milliseconds(50)) }
    }

    var url: String {
        "redis+sentinel://" + watchers.map { "127.0.0.1:\($0.port)" }.joined(separator: ",") + "/main"
    }

    private func areReady() async throws -> Bool {
        for watcher in watchers {
            let words = try await watcher.command("SENTINEL", "MASTER", "main").split(separator: "\n")
            func field(_ name: Substring) -> Substring? {
                words.firstIndex(of: name).flatMap { $0 + 1 < words.count ? words[$0 + 1] : nil }
            }
            guard field("num-other-sentinels") == "2", field("num-slaves") == "1" else { return false }
        }
        return try await replica.command("INFO", "replication").contains("master_link_status:up")
    }
}
