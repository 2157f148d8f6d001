import Foundation

/// strace, attached to a running process. It kills the process as it enters a chosen system call.
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

    /// Attaches strace to a process; nil if that fails. From then on, strace kills the process at any thread's n-th call
    /// of this system call.
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
        // strace prints this line for each thread, and one read may return several lines.
        var said = ""
        while !said.contains(" attached") {
            let more = errors.fileHandleForReading.availableData
            guard !more.isEmpty else { return nil }
            said += String(decoding: more, as: UTF8.self)
        }
        // The pipe is not read any more. It has room for all later output of strace.
    }

    /// Waits until strace ends, which it does with the traced process.
    func waitUntilItEnds() { process.waitUntilExit() }

    deinit { if process.isRunning { kill(process.processIdentifier, SIGKILL) } }
}
