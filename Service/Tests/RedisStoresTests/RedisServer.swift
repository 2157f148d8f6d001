import AuthContract
import AuthService
import Bytes
import Foundation
import Logging
import NIOCore
import NIOPosix
import NIOSSL
import RESP
import ServiceTestHelpers
import Testing

@testable import RedisStores

/// The installed redis-server. Without one, the tests that need it are skipped. In CI, its absence is a failure.
enum RedisInstallation {
    static let server = ["/usr/bin/redis-server", "/usr/local/bin/redis-server", "/opt/homebrew/bin/redis-server"]
        .first { FileManager.default.isExecutableFile(atPath: $0) }

    static var isHere: Bool { server != nil }

    static var isRequired: Bool { ProcessInfo.processInfo.environment["SYNHEART_AUTH_STRICT"] != nil }
}

@Suite("The installation")
struct RedisInstallationTests {
    @Test("redis-server is installed where the tests are strict: apt-get install redis-server redis-tools")
    func installed() {
        #expect(RedisInstallation.isHere || !RedisInstallation.isRequired)
    }
}

struct TestFailure: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}

/// A redis-server process of one test.
final class RedisServer: Sendable {
    let port: Int
    let folder: TemporaryFolder
    /// The connection settings for the test's own commands.
    let settings: ConnectionSettings
    private let arguments: [String]
    /// Additional environment variables.
    private let environment: [String: String]
    private let process: Locked<UncheckedProcess?>

    private struct UncheckedProcess: @unchecked Sendable {
        // Unchecked: only the test's task uses it.
        let process: Process
    }

    /// Starts a server. Waits until it answers if `answers`.
    static func start(
        _ arguments: [String] = [], port: Int? = nil, settings: ConnectionSettings = ConnectionSettings(),
        environment: [String: String] = [:], answers: Bool = true
    ) async throws -> RedisServer {
        let server = try RedisServer(
            port: port ?? LoopbackPort.reserve(hasClusterBus: true), arguments, settings, environment)
        try await server.launch(waiting: answers)
        return server
    }

    private init(
        port: Int, _ arguments: [String], _ settings: ConnectionSettings, _ environment: [String: String]
    ) throws {
        self.port = port
        self.environment = environment
        self.arguments = arguments
        self.settings = settings
        folder = try TemporaryFolder()
        process = Locked(nil)
    }

    deinit { kill() }

    var endpoint: RedisURL.Endpoint { RedisURL.Endpoint(host: "127.0.0.1", port: port) }
    var url: String { "redis://127.0.0.1:\(port)" }

    /// Starts the process, with the data that an earlier run left on its disk. Waits until the server answers if `waiting`.
    func launch(waiting: Bool = true) async throws {
        guard let path = RedisInstallation.server else { throw TestFailure("redis-server is not installed") }
        let process = Process()
        process.executableURL = URL(fileURLWithPath: path)
        let hasPort = arguments.contains("--port") || arguments.contains("--sentinel")
        process.arguments =
            arguments + (hasPort ? [] : ["--port", "\(port)"])
            + (arguments.contains("--sentinel")
                ? []
                : [
                    "--bind", "127.0.0.1", "--dir", folder.path, "--enable-debug-command", "yes",
                    "--repl-diskless-sync-delay", "0",
                ])
            + (arguments.contains("--save") || arguments.contains("--sentinel") ? [] : ["--save", ""])
        if !environment.isEmpty {
            process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        }
        let log = folder.path + ".log"
        try Data().write(to: URL(fileURLWithPath: log))
        defer { try? FileManager.default.removeItem(atPath: log) }
        process.standardOutput = FileHandle(forWritingAtPath: log)
        process.standardError = process.standardOutput
        try process.run()
        self.process.withLock { $0 = UncheckedProcess(process: process) }
        guard waiting else { return }
        try await eventually("redis-server on port \(port) answers") {
            guard process.isRunning else {
                let text = (try? String(contentsOfFile: log, encoding: .utf8)) ?? ""
                throw TestFailure("redis-server on port \(self.port) ended: \(text)")
            }
            guard let connection = try? await RedisConnection.open(self.endpoint, self.settings) else { return false }
            defer { connection.close(because: StoreError(.unavailable, "done")) }
            if self.arguments.contains("--sentinel") {
                return (try? await connection.require(RESPCommand("PING"))) != nil
            }
            guard let serverInfo = try? await ServerInfo(of: connection) else { return false }
            return !serverInfo.isLoading
        }
    }

    private var identifier: Int32? { process.withLock { $0?.process.processIdentifier } }

    func signal(_ signal: Int32) {
        if let identifier { Foundation.kill(identifier, signal) }
    }

    /// Kills the process, so that it cannot save anything.
    func kill() {
        process.withLock { running in
            guard let process = running?.process else { return }
            Foundation.kill(process.processIdentifier, SIGCONT)
            Foundation.kill(process.processIdentifier, SIGKILL)
            process.waitUntilExit()
            running = nil
        }
    }

    /// Runs a command on a new connection.
    @discardableResult
    func command(_ words: String...) async throws -> RESPValue { try await command(words) }

    @discardableResult
    func command(_ words: [String]) async throws -> RESPValue {
        let connection = try await RedisConnection.open(endpoint, settings)
        defer { connection.close(because: StoreError(.unavailable, "done")) }
        return try await connection.require(RESPCommand(words))
    }

    /// Runs redis-cli to its end.
    static func cli(_ arguments: [String]) async throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["redis-cli"] + arguments
        process.standardOutput = FileHandle(forWritingAtPath: "/dev/null")
        process.standardError = FileHandle(forWritingAtPath: "/dev/null")
        process.standardInput = FileHandle(forReadingAtPath: "/dev/null")
        let status = try await withCheckedThrowingContinuation { continuation in
            process.terminationHandler = { continuation.resume(returning: $0.terminationStatus) }
            do { try process.run() } catch { continuation.resume(throwing: error) }
        }
        guard status == 0 else { throw TestFailure("redis-cli ended with \(status)") }
    }
}

/// Polls until a condition holds.
func eventually(
    _ what: String, within limit: Duration = .seconds(20), _ condition: () async throws -> Bool
) async throws {
    let end = ContinuousClock.now + limit
    while try await !condition() {
        guard ContinuousClock.now < end else { throw TestFailure("not within \(limit): \(what)") }
        try await Task.sleep(for: .milliseconds(10))
    }
}

let silent = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

extension RedisStores {
    /// Connects. If Redis has no epoch, the stores assume that no request was accepted before.
    static func forTest(
        _ url: String, clock: any ServiceClock = SystemClock(), _ change: (inout Options) -> Void = { _ in }
    ) async throws -> RedisStores {
        var options = Options()
        options.mayHaveHistory = { false }
        change(&options)
        return try await connect(url, options: options, clock: clock, logger: silent)
    }
}
