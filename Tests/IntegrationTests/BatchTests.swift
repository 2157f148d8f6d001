import Foundation
import StrictJSON
import Testing

/// `synheart-auth attestation verify --batch`, as another process runs it.
@Suite struct BatchTests {
    private static let line = Data((#"{"format":"app-attest-receipt","object":"oA==","name":"one"}"# + "\n").utf8)

    @Test func `A line in a pipe is answered before the next one comes`() async throws {
        let process = Process()
        process.executableURL = Binary.url
        process.arguments = ["attestation", "verify", "--batch", "-"]
        let (input, output) = (Pipe(), Pipe())
        process.standardInput = input
        process.standardOutput = output
        try process.run()
        // Should no answer come, the pipe's end lets the test fail and not hang.
        let patience = Task {
            try await Task.sleep(for: .seconds(20))
            process.terminate()
        }
        for _ in 0..<3 {
            try input.fileHandleForWriting.write(contentsOf: Self.line)
            let answer = output.fileHandleForReading.availableData
            let verdict = try JSONValue(parsing: answer).object
            #expect(verdict?["name"] == "one")
            #expect(verdict?["outcome"] == "refused")
        }
        try input.fileHandleForWriting.close()
        #expect(output.fileHandleForReading.availableData.isEmpty)
        process.waitUntilExit()
        patience.cancel()
        #expect(process.terminationStatus == 0)
    }

    @Test func `What cannot be read is named in a sentence`() async throws {
        for (path, reason) in [("/nonexistent", "No such file or directory"), ("/", "Is a directory")] {
            let result = try await Binary.run(["attestation", "verify", "--batch", path])
            #expect(result.status == 2)
            #expect(result.output == "")
            #expect(result.errors == "synheart-auth: cannot read \(path): \(reason)\n")
        }
    }
}
