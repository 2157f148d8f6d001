import Foundation
import Glibc
import Testing

/// An interrupted command removes its private keys.
@Suite(.serialized) struct `Interrupts` {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private var left: [String] {
        get throws { try FileManager.default.contentsOfDirectory(atPath: folder.url.path) }
    }

    /// Starts a command with temporary files in the folder. Waits until its output satisfies `isReady`.
    private func start(_ arguments: [String], until isReady: (String) -> Bool) throws -> Process {
        let process = Process()
        process.executableURL = Binary.url
        process.arguments = arguments
        process.environment = ProcessInfo.processInfo.environment.merging(["TMPDIR": folder.url.path]) { $1 }
        let output = Pipe()
        process.standardOutput = output
        process.standardError = output
        process.standardInput = FileHandle.nullDevice
        try process.run()
        var text = ""
        while !isReady(text) {
            let piece = output.fileHandleForReading.availableData
            try #require(!piece.isEmpty, "the command ended: \(text)")
            text += String(decoding: piece, as: UTF8.self)
        }
        try #require(try left.count == 1)
        // Later output is read and discarded, so that it does not fill the pipe.
        output.fileHandleForReading.readabilityHandler = { if $0.availableData.isEmpty { $0.readabilityHandler = nil } }
        return process
    }

    private func startDemo(until mark: String = "device id") throws -> Process {
        try start(["demo"]) { $0.contains(mark) }
    }

    /// Whether SIGHUP is ignored, as in a process started by `nohup` and in its children.
    private static var isHangUpIgnored: Bool {
        var action = sigaction()
        guard sigaction(SIGHUP, nil, &action) == 0 else { return false }
        return unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self)
            == unsafeBitCast(SIG_IGN, to: Int.self)
    }

    @Test(arguments: [SIGINT, SIGTERM] + (isHangUpIgnored ? [] : [SIGHUP]))
    func `an interrupted demo leaves nothing`(signal: Int32) async throws {
        let demo = try startDemo()
        kill(demo.processIdentifier, signal)
        demo.waitUntilExit()
        #expect(demo.terminationReason == .uncaughtSignal && demo.terminationStatus == signal)
        #expect(try left == [])
    }

    /// The SDK's work continues after its caller is cancelled, and connections may arrive while the service stops.
    @Test(arguments: ["1. Register", "3. Replay", "4. Rotate", "6. An Android phone", "As it must be."])
    func `a demo that is interrupted in the middle of its work leaves nothing`(mark: String) async throws {
        for _ in 0..<3 {
            let demo = try startDemo(until: mark)
            kill(demo.processIdentifier, SIGINT)
            demo.waitUntilExit()
            // The demo may have finished before the signal.
            let isDone = demo.terminationReason == .exit && demo.terminationStatus == 0
            #expect(isDone || demo.terminationReason == .uncaughtSignal && demo.terminationStatus == SIGINT)
            #expect(try left == [])
        }
    }

    @Test func `the next demo removes what a killed one left`() async throws {
        let demo = try startDemo()
        kill(demo.processIdentifier, SIGKILL)
        demo.waitUntilExit()
        #expect(try left.count == 1)
        let next = try await Binary.run(["demo"], environment: ["TMPDIR": folder.url.path])
        #expect(next.status == 0, "\(next.errors)")
        #expect(try left == [])
    }

    @Test func `a demo removes neither another demo's folder nor a folder of others`() async throws {
        let other = try startDemo()
        kill(other.processIdentifier, SIGSTOP)
        let inUse = try left
        try FileManager.default.createDirectory(atPath: folder.path("elsewhere"), withIntermediateDirectories: true)
        try Data().write(to: folder.url.appendingPathComponent("elsewhere/file"))
        try FileManager.default.createSymbolicLink(
            atPath: folder.path("synheart-auth-demo-link"), withDestinationPath: folder.path("elsewhere"))
        let next = try await Binary.run(["demo"], environment: ["TMPDIR": folder.url.path])
        #expect(next.status == 0, "\(next.errors)")
        #expect(try Set(left) == Set(inUse + ["elsewhere", "synheart-auth-demo-link"]))
        #expect(FileManager.default.fileExists(atPath: folder.path("elsewhere/file")))
        kill(other.processIdentifier, SIGKILL)
        other.waitUntilExit()
    }

    @Test func `a simulation ends in order at the first signal, and leaves nothing`() async throws {
        let simulation = try start(["simulate", "--devices", "2", "--duration", "600"]) { $0.contains("requesting") }
        kill(simulation.processIdentifier, SIGTERM)
        simulation.waitUntilExit()
        #expect(simulation.terminationReason == .exit && simulation.terminationStatus == 0)
        #expect(try left == [])
    }

    @Test func `the second signal leaves nothing either`() async throws {
        let simulation = try start(["simulate", "--devices", "2", "--duration", "600"]) { $0.contains("requesting") }
        kill(simulation.processIdentifier, SIGINT)
        kill(simulation.processIdentifier, SIGTERM)
        simulation.waitUntilExit()
        #expect(try left == [])
    }
}
