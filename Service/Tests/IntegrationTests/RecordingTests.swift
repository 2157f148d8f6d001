import AttestationTestKit
import AuthContract
import Foundation
import SoftwareDevice
import StrictJSON
import Testing

/// The service or `attestation verify` records a refusal in a file. `attestation replay` comes to the same refusal.
@Suite struct Recordings {
    let folder: TemporaryFolder
    private let app = "com.example.app"

    init() throws { folder = try TemporaryFolder() }

    private func run(_ arguments: String...) async throws -> Binary.Result { try await Binary.run(arguments) }

    @Test func `a refused registration is exported and replayed`() async throws {
        let database = folder.path("db.sqlite")
        var record = try #require(
            try JSONValue(parsing: try await run("apps", "example", "--authority", folder.path("a.pem")).output).object)
        record["evidence"] = ["record": true]
        let added = try await Binary.run(
            ["apps", "add", "--file", "-", "--database", database], input: JSONValue.object(record).text())
        #expect(added.status == 0, "\(added.errors)")
        let service = try await RunningService(database: database)
        let refused = try await run(
            "device", "register", "--url", service.publicURL, "--app", app, "--dir", folder.path("device"),
            "--authority", folder.path("another.pem"))
        #expect(refused.status == 1)

        let listed = try await run("recordings", "list", "--app", app, "--database", database, "--json")
        let recordings = try #require(try JSONValue(parsing: listed.output).array)
        #expect(recordings.count == 1)
        let summary = try #require(recordings.first?.object)
        #expect(summary["code"] == "UNTRUSTED_CHAIN" && summary["step"] == "certificate-chain")
        let id = try #require(summary["id"]?.string)
        // `evidence`, the former name of the command group, works too.
        let former = try await run("evidence", "list", "--app", app, "--database", database, "--json")
        #expect(former.status == 0 && former.output == listed.output, "\(former.errors)")
        let file = folder.path("refusal.json")
        let exported = try await run("recordings", "export", "--app", app, id, "--database", database, "--output", file)
        #expect(exported.status == 0, "\(exported.errors)")
        #expect(try FileManager.default.attributesOfItem(atPath: file)[.posixPermissions] as? Int == 0o600)

        let replayed = try await run("attestation", "replay", file)
        #expect(replayed.status == 0, "\(replayed.output)")
        #expect(replayed.output.contains("UNTRUSTED_CHAIN"))
        // With the device's own test root, the proof verifies, so the replay differs from the recording.
        var document = try #require(try JSONValue(parsing: try Data(contentsOf: URL(fileURLWithPath: file))).object)
        let roots = try AuthorityFile.load(folder.path("another.pem")).rootsPEM
        document["roots"] = ["pem": .string(roots), "beside_built_in": false]
        try Data(JSONValue.object(document).bytes).write(to: URL(fileURLWithPath: file))
        let other = try await run("attestation", "replay", file, "--json")
        #expect(other.status == 1)
        let verdict = try #require(try JSONValue(parsing: other.output).object)
        #expect(verdict["outcome"] == "verified" && verdict["recorded_code"] == "UNTRUSTED_CHAIN")
        #expect(verdict["same"] == false)

        #expect(try await run("recordings", "delete", "--app", app, id, "--database", database).status == 0)
        #expect(try await run("recordings", "delete", "--app", app, id, "--database", database).status == 1)
        #expect(try await run("recordings", "export", "--app", app, id, "--database", database).status == 1)
        #expect(try await run("recordings", "delete", "--app", app, "--database", database).status == 64)
        #expect(service.stop() == 0)
    }

    @Test func `a refusal of verify is saved and replayed`() async throws {
        let file = folder.path("saved.json")
        let object = folder.path("object.bin")
        try Data([0xA0]).write(to: URL(fileURLWithPath: object))
        let verify = ["attestation", "verify", object, "--format", "app-attest-attestation"]
        let refused = try await Binary.run(verify + ["--save-recording", file])
        #expect(refused.status == 1)
        // `--save-evidence`, the former name of the option, works too.
        let former = folder.path("former.json")
        #expect(try await Binary.run(verify + ["--save-evidence", former]).status == 1)
        #expect(try await run("attestation", "replay", former).status == 0)
        let replayed = try await run("attestation", "replay", file)
        #expect(replayed.status == 0)
        #expect(replayed.output.contains("MALFORMED_OBJECT"))
        // Control sequences in another person's file do not reach the terminal.
        var document = try #require(try JSONValue(parsing: try Data(contentsOf: URL(fileURLWithPath: file))).object)
        document["about"] = ["recorded_at": "\u{1b}]0;owned\u{7}\u{9b}31m\u{202e}"]
        try Data(JSONValue.object(document).bytes).write(to: URL(fileURLWithPath: file))
        let shown = try await run("attestation", "replay", file)
        #expect(shown.output.contains(#"\u{1b}]0;owned\u{7}\u{9b}31m\u{202e}"#))
        #expect(!shown.output.unicodeScalars.contains("\u{1b}"))
        let unread = try await run("attestation", "replay", object)
        #expect(unread.status == 2)
        #expect(unread.errors.contains("is no recording"))
        let batch = try await run("attestation", "verify", "--batch", object, "--save-recording", file)
        #expect(batch.status == 64)
    }
}
