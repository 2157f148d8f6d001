import Bytes
import Foundation
import Glibc

/// One start of the client's command.
struct ClientProcess {
    let command: [String]
    let environment: [String: String]
    /// The folder for the files with the command's output.
    let folder: String
    /// The longest time that one start of the command may take.
    let limit: Duration

    struct Ending: Sendable {
        /// The exit code; nil if a signal ended the process.
        let code: Int32?
        let isTooLate: Bool
        let output: String
        /// The last 400 characters that were read from standard error.
        let errors: String
    }

    /// The largest number of bytes that are read from standard output, and from standard error.
    private static let maximumOutput = 256 * 1024

    /// Starts the command, and waits for its end. Kills it after `limit`.
    ///
    /// - Parameter started: gets a function that kills the process.
    func run(_ started: (@escaping @Sendable () -> Void) -> Void) async throws -> Ending {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = command
        process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        let files = try ["output", "errors"].map { name in
            let path = "\(folder)/\(name)"
            try Data().write(to: URL(fileURLWithPath: path))
            return try FileHandle(forUpdating: URL(fileURLWithPath: path))
        }
        defer { for file in files { try? file.close() } }
        (process.standardOutput, process.standardError) = (files[0], files[1])
        process.standardInput = FileHandle.nullDevice
        let (ended, end) = AsyncStream.makeStream(of: Void.self)
        process.terminationHandler = { _ in end.finish() }
        do { try process.run() } catch {
            throw CommandFailure(.impossible, "\(command[0]) cannot be started: \(error.localizedDescription)")
        }
        let number = process.processIdentifier
        // Kill the whole process group, because the command may be a script that started other processes. Foundation starts
        // each process in its own group.
        let kill = { @Sendable () -> Void in if Glibc.kill(-number, SIGKILL) != 0 { Glibc.kill(number, SIGKILL) } }
        started(kill)
        let isTooLate = Locked(false)
        let limit = limit
        let watch = Task {
            try await Task.sleep(for: limit)
            isTooLate.withLock { $0 = true }
            kill()
        }
        await withTaskCancellationHandler {
            // Wait in a new task: a cancelled task stops reading the stream at once, but the process must have ended before its
            // folder is removed.
            await Task { for await _ in ended {} }.value
        } onCancel: {
            kill()
        }
        watch.cancel()
        let texts = try files.map { file in
            try file.seek(toOffset: 0)
            return String(decoding: try file.read(upToCount: Self.maximumOutput) ?? Data(), as: UTF8.self)
        }
        return Ending(
            code: process.terminationReason == .exit ? process.terminationStatus : nil,
            isTooLate: isTooLate.withLock { $0 }, output: texts[0], errors: String(texts[1].suffix(400)))
    }
}
