import Foundation
import Glibc

/// A replacement of a command's standard stream.
enum LostStream: String, CaseIterable, Sendable {
    /// The descriptor is not open.
    case closed
    /// Every write fails with ENOSPC.
    case full
    /// A pipe whose reader has closed it.
    case broken
}

extension Binary {
    /// Runs a command with closed, full or broken standard streams.
    ///
    /// - Returns: the exit code, or the negative number of the signal that killed the command; and what it wrote to streams that
    ///   were not replaced.
    static func run(
        _ arguments: [String], in folder: URL, closedInput: Bool = false, output: LostStream? = nil,
        errors: LostStream? = nil, environment: [String: String] = [:]
    ) async throws -> Result {
        let redirections =
            (closedInput ? "<&- " : "</dev/null ") + redirection(output, 1) + redirection(errors, 2)
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/bin/sh")
        process.arguments = ["-c", "exec \"$0\" \"$@\" \(redirections)", url.path] + arguments
        process.currentDirectoryURL = folder
        process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        // Uses files, because a pipe can become full.
        let files = [1, 2].map { folder.appendingPathComponent(".\(UUID().uuidString).\($0)") }
        let handles = try files.map { file in
            try Data().write(to: file)
            return try FileHandle(forUpdating: file)
        }
        defer {
            for (file, handle) in zip(files, handles) {
                try? handle.close()
                try? FileManager.default.removeItem(at: file)
            }
        }
        let broken = Pipe()
        try broken.fileHandleForReading.close()
        defer { try? broken.fileHandleForWriting.close() }
        process.standardOutput = output == .broken ? broken.fileHandleForWriting : handles[0]
        process.standardError = errors == .broken ? broken.fileHandleForWriting : handles[1]
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
            process.terminationHandler = { _ in continuation.resume() }
            do { try process.run() } catch { continuation.resume(throwing: error) }
        }
        let texts = try files.map { try String(contentsOf: $0, encoding: .utf8) }
        let status = process.terminationStatus
        return Result(
            status: process.terminationReason == .exit ? status : -status, output: texts[0], errors: texts[1])
    }

    private static func redirection(_ stream: LostStream?, _ number: Int) -> String {
        switch stream {
        case .closed: "\(number)>&- "
        case .full: "\(number)>/dev/full "
        case .broken, nil: ""
        }
    }
}

/// Every command of the binary, as its own help lists them.
struct CommandTree {
    struct Command: Sendable {
        /// The words of the command, such as `apps add`.
        let path: [String]
        let discussion: String
        let isGroup: Bool
        var name: String { path.joined(separator: " ") }
    }

    let commands: [Command]

    static func read() async throws -> CommandTree {
        struct Dump: Decodable {
            struct Node: Decodable {
                let commandName: String
                let discussion: String?
                let subcommands: [Node]?
            }
            let command: Node
        }
        let dump = try await Binary.run(["--experimental-dump-help"])
        let root = try JSONDecoder().decode(Dump.self, from: Data(dump.output.utf8)).command
        var commands: [Command] = []
        func collect(_ node: Dump.Node, _ path: [String]) {
            let below = (node.subcommands ?? []).filter { $0.commandName != "help" }
            commands.append(Command(path: path, discussion: node.discussion ?? "", isGroup: !below.isEmpty))
            for child in below { collect(child, path + [child.commandName]) }
        }
        collect(root, [])
        return CommandTree(commands: commands)
    }
}
