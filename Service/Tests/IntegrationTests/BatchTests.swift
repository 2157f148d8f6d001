import AttestationTestKit
import Foundation
import StrictJSON
import Testing

/// `synheart-auth attestation verify --batch`, as another process runs it.
@Suite struct BatchTests {
    private static let line = Data((#"{"format":"app-attest-receipt","object":"oA==","name":"one"}"# + "\n").utf8)

    @Test func `a line in a pipe is answered before the next one comes`() async throws {
        let process = Process()
        process.executableURL = Binary.url
        process.arguments = ["attestation", "verify", "--batch", "-"]
        let (input, output) = (Pipe(), Pipe())
        process.standardInput = input
        process.standardOutput = output
        try process.run()
        // If no answer arrives, the pipe ends and the test fails instead of hanging.
        let timeout = Task {
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
        timeout.cancel()
        #expect(process.terminationStatus == 0)
    }

    @Test func `an error names an unreadable input`() async throws {
        for (path, reason) in [("/nonexistent", "No such file or directory"), ("/", "Is a directory")] {
            let result = try await Binary.run(["attestation", "verify", "--batch", path])
            #expect(result.status == 2)
            #expect(result.output == "")
            #expect(result.errors == "synheart-auth: cannot read \(path): \(reason)\n")
        }
    }

    // MARK: Policies

    private let folder = FileManager.default.temporaryDirectory.appendingPathComponent("batch-\(UUID())")

    /// Runs a batch with one attestation from a test authority. `policy` is the text of the file for `--policy`.
    private func run(
        _ members: [(String, JSONValue)], policy: String, _ options: String...
    ) async throws -> (status: Int32, verdict: JSONObject?) {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let now = Date(timeIntervalSince1970: 1_790_000_000)
        let authority = try AppleAuthority(from: now - 86400)
        let device = AppleDevice(
            system: .iOS("27.0"), app: AppleApp(appID: "TEAMID1234.com.example.app"), authority: authority)
        let object = try device.attest(AppleAttestKey(), clientDataHash: [1], at: now)
        let line = JSONObject(
            [
                ("format", "app-attest-attestation"), ("object", .string(Data(object).base64EncodedString())),
                ("client_data_hash", "AQ=="), ("valid_at", "2026-09-21T14:13:20Z"),
            ] + members)
        let (roots, file) = (folder.appendingPathComponent("roots.pem"), folder.appendingPathComponent("policy.json"))
        try Data(authority.rootsPEM.utf8).write(to: roots)
        try Data(policy.utf8).write(to: file)
        let result = try await Binary.run(
            ["attestation", "verify", "--batch", "-", "--roots", roots.path, "--policy", file.path] + options,
            input: JSONValue.object(line).text() + "\n")
        return (result.status, try? JSONValue(parsing: result.output, limits: .init(bytes: 1 << 20)).object)
    }

    @Test func `the operator's policy wins over the line's own, unless --line-policies is given`() async throws {
        let strict = #"{"ios": {"categories": [2]}}"#
        let own: [(String, JSONValue)] = [("policy", ["categories": [4]])]
        let refused = try await run(own, policy: strict)
        #expect(refused.status == 0)
        #expect(refused.verdict?["code"] == "CATEGORY_NOT_ALLOWED")
        let allowed = try await run(own, policy: strict, "--line-policies")
        #expect(allowed.status == 0)
        #expect(allowed.verdict?["outcome"] == "verified")
    }

    @Test func `an unknown member of a policy fails its lines, and the run continues`() async throws {
        let result = try await run([], policy: #"{"ios": {"require_categry": true}}"#)
        #expect(result.status == 0)
        #expect(result.verdict?["outcome"] == "could-not-check")
        #expect(result.verdict?["code"] == "POLICY_UNREADABLE")
    }

    @Test func `options of the other form are refused`() async throws {
        let object = ["attestation", "verify", "/nonexistent", "--line-policies"]
        #expect(try await Binary.run(object).status == 64)
        let batch = ["attestation", "verify", "--batch", "-", "--attested-extensions"]
        #expect(try await Binary.run(batch).status == 64)
    }

    @Test func `an option file that is not JSON ends the run before the first line`() async throws {
        let result = try await run([], policy: "{")
        #expect(result.status == 2)
        #expect(result.verdict == nil)
    }

    @Test func `standard error says why a line cannot be read`() async throws {
        let folder = try TemporaryFolder()
        let file = folder.url.appendingPathComponent("lines.jsonl")
        try "{}\n{\"format\":\"app-attest-receipt\",\"valid_at\":\"x\"}\nnot JSON\n".write(
            to: file, atomically: true, encoding: .utf8)
        let result = try await Binary.run(["attestation", "verify", "--batch", file.path])
        #expect(result.status == 1 && result.output.split(separator: "\n").count == 3)
        for part in ["line 1: format is missing", "line 2: valid_at has the wrong type or range", "line 3: not JSON"] {
            #expect(result.errors.contains(part), "\(result.errors)")
        }
    }
}
