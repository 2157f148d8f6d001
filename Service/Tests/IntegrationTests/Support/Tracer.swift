import Foundation

/// strace on a running process, which it kills as the process enters a system call.
final class Tracer: Sendable {
    private let process: Process
    private let errors = Pipe()

    /// Whether this machine has strace and lets it attach.
    static let canAttach: Bool = {
        guard let sleeper = try? Process.run(URL(fileURLWithPath: "/bin/sleep"), arguments: ["30"]) else {
            return false
        }
        defer { sleeper.terminate() }
        return Tracer(of: sleeper.processIdentifier, killingAt: "getpid", occurrence: 1) != nil
    }()

    /// Attaches; nil if that fails. From then on any thread's so-manyeth call of this name is its process's last.
    init?(of processID: Int32, killingAt call: String, occurrence: Int) {
        process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/strace")
        process.arguments = [
            "-f", "-p", String(processID), "-o", "/dev/null", "-e", "trace=\(call)", "-e",
            "inject=\(call):signal=KILL:when=\(occurrence)",
        ]
        process.standardError = errors
        process.standardInput = FileHandle.nullDevice
        guard (try? process.run()) != nil else { return nil }
        // It says so of each thread, the last ones together.
        var said = ""
        while !said.contains(" attached") {
            let more = errors.fileHandleForReading.availableData
            guard !more.isEmpty else { return nil }
            said += String(decoding: more, as: UTF8.self)
        }
        // Of what it says later a pipe has room for far more than there is.
    }

    /// It ends with the process that it traces.
    func waitUntilItEnds() { process.waitUntilExit() }

    deinit { if process.isRunning { kill(process.processIdentifier, SIGKILL) } }
}
