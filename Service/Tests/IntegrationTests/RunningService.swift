import Foundation
import Testing

/// The built `synheart-auth` binary, run as a user runs it.
enum Binary {
    /// The binary is in the folder of the test bundle.
    static let url = beside("synheart-auth")
    /// The SDK in a process that kills itself at a chosen point.
    static let crashingDevice = beside("CrashingDevice")

    private static func beside(_ name: String) -> URL {
        URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent().appendingPathComponent(name)
    }

    struct Result: Sendable {
        let status: Int32
        let output: String
        let errors: String
    }

    /// Runs a command to its end.
    static func run(
        _ arguments: [String], in folder: URL? = nil, input: String? = nil, environment: [String: String] = [:],
        of executable: URL = url
    ) async throws -> Result {
        let process = Process()
        process.executableURL = executable
        process.arguments = arguments
        process.currentDirectoryURL = folder
        process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        let (output, errors, given) = (try OutputFile(), try OutputFile(), try OutputFile())
        try given.handle.write(contentsOf: Data((input ?? "").utf8))
        try given.handle.seek(toOffset: 0)
        // Foundation never frees a `Process`, so it would keep these descriptors open. With about 1,360 open descriptors,
        // `run()` reads past the end of a page of /proc/self/fd and crashes.
        defer { for file in [output, errors, given] { file.close() } }
        process.standardOutput = output.handle
        process.standardError = errors.handle
        process.standardInput = given.handle
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
            process.terminationHandler = { _ in continuation.resume() }
            do { try process.run() } catch { continuation.resume(throwing: error) }
        }
        return Result(status: process.terminationStatus, output: output.text, errors: errors.text)
    }
}

/// A file that a process reads or writes. Unlike a pipe, it is never full.
private final class OutputFile: Sendable {
    let url: URL
    let handle: FileHandle

    init() throws {
        url = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try Data().write(to: url)
        handle = try FileHandle(forUpdating: url)
    }

    func close() { try? handle.close() }

    deinit { try? FileManager.default.removeItem(at: url) }

    var text: String { (try? String(contentsOf: url, encoding: .utf8)) ?? "" }
}

/// A service in its own process, on its own ports.
final class RunningService: Sendable {
    let publicURL: String
    let operationsURL: String
    /// The URL of the metrics listener; nil without the setting `metrics.port`.
    let metricsURL: String?
    private let process: Process

    /// Starts `serve` and waits for its ready line.
    ///
    /// - Parameter errors: receives standard error; nil: discarded.
    convenience init(
        database: String, port: Int = 0, arguments: [String] = [], environment: [String: String] = [:],
        errors: FileHandle? = nil
    ) async throws {
        try await self.init(
            stores: ["--database", database], port: port, arguments: arguments, environment: environment,
            errors: errors)
    }

    /// Starts `serve` with these flags for the stores, such as `--postgresql` and its URL.
    init(
        stores: [String], port: Int = 0, arguments: [String] = [], environment: [String: String] = [:],
        errors: FileHandle? = nil
    ) async throws {
        process = Process()
        process.arguments =
            ["serve"] + stores + ["--port", String(port), "--operations-port", "0"] + arguments
        if environment["LD_PRELOAD"] == nil {
            process.executableURL = Binary.url
        } else {
            // Starts the binary through `env`. libfaketime adds environment variables when it is loaded. Swift then no longer finds
            // the arguments. If `env` executes the binary, the variables already exist.
            process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
            process.arguments?.insert(Binary.url.path, at: 0)
        }
        process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        let output = Pipe()
        process.standardOutput = output
        process.standardError = errors ?? FileHandle.nullDevice
        process.standardInput = FileHandle.nullDevice
        try process.run()
        let line = await Self.firstLine(of: output.fileHandleForReading)
        let words = line.split(separator: " ").map(String.init)
        try #require([3, 4].contains(words.count) && words[0] == "ready", "the service did not start: \(line)")
        publicURL = String(try #require(words[1].firstRange(of: "public=").map { words[1][$0.upperBound...] }))
        metricsURL =
            words.count == 4
            ? String(try #require(words[3].firstRange(of: "metrics=").map { words[3][$0.upperBound...] })) : nil
        operationsURL = String(try #require(words[2].firstRange(of: "operations=").map { words[2][$0.upperBound...] }))
    }

    /// The first line that a process writes, or all its output if it ends without a newline. A separate thread waits for it.
    private static func firstLine(of handle: FileHandle) async -> String {
        await withCheckedContinuation { continuation in
            DispatchQueue.global().async {
                var bytes: [UInt8] = []
                while !bytes.contains(UInt8(ascii: "\n")) {
                    let more = handle.availableData
                    if more.isEmpty { break }
                    bytes += more
                }
                continuation.resume(
                    returning: String(decoding: bytes.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self))
            }
        }
    }

    var port: Int { publicURL.split(separator: ":").last.flatMap { Int($0) } ?? 0 }

    var isRunning: Bool { process.isRunning }

    var processID: Int32 { process.processIdentifier }

    /// Sends a signal.
    func signal(_ number: Int32) { _ = Glibc.kill(process.processIdentifier, number) }

    /// Waits for the exit code. Kills the process and returns nil if it still runs after `limit`.
    func exitCode(within limit: Duration = .seconds(20)) async -> Int32? {
        await withTaskGroup(of: Int32?.self) { group in
            group.addTask {
                await withCheckedContinuation { continuation in
                    Thread.detachNewThread {
                        self.process.waitUntilExit()
                        continuation.resume(returning: self.process.terminationStatus)
                    }
                }
            }
            group.addTask {
                guard (try? await Task.sleep(for: limit)) != nil else { return nil }
                // The other task ignores cancellation. It returns only when the process ends.
                self.signal(SIGKILL)
                return nil
            }
            defer { group.cancelAll() }
            return await group.next() ?? nil
        }
    }

    /// Sends SIGKILL, so that the process cannot save anything.
    func kill() {
        Glibc.kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
    }

    /// Sends SIGTERM and waits. Returns the exit code.
    @discardableResult
    func stop() -> Int32 {
        process.terminate()
        process.waitUntilExit()
        return process.terminationStatus
    }

    deinit { if process.isRunning { Glibc.kill(process.processIdentifier, SIGKILL) } }
}
