import Foundation
import StrictJSON
import Testing

/// Control sequences in names and arguments do not reach the terminal.
@Suite(.serialized) struct `Terminal` {
    let folder: TemporaryFolder
    /// Sets the window title and clears the screen, with a C1 control, a line separator and a direction override.
    private static let evil = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}31m\u{2028}\u{202e}\n\u{7f}end"
    private static let harmful: [Unicode.Scalar] = ["\u{1b}", "\u{7}", "\u{9b}", "\u{2028}", "\u{202e}", "\u{7f}"]

    init() throws { folder = try TemporaryFolder() }

    private func run(_ arguments: [String], input: String? = nil) async throws -> Binary.Result {
        let result = try await Binary.run(arguments, in: folder.url, input: input)
        let shown = (result.output + result.errors).unicodeScalars
        #expect(!shown.contains { Self.harmful.contains($0) }, "\(arguments)")
        return result
    }

    @Test func `control characters in names are escaped in every output`() async throws {
        let record: JSONValue = [
            "app_id": "com.example.app", "name": .string(Self.evil), "ios": ["app_ids": ["TEAMID1234.a.b"]],
        ]
        let added = try await run(["apps", "add", "--file", "-"], input: record.text())
        try #require(added.status == 0, "\(added.errors)")
        _ = try await run(["credentials", "create", "--role", "viewer", "--name", Self.evil])
        for command in [
            ["apps", "list"], ["apps", "show", "com.example.app"], ["credentials", "list"], ["audit", "list"],
            ["doctor", "--port", "0", "--operations-port", "0"],
        ] {
            let table = try await run(command)
            if command != ["audit", "list"], command.first != "doctor" {
                #expect(table.output.contains(#"\u{1b}]0;owned\u{7}"#), "\(command)")
            }
            let json = try await run(command + ["--json"])
            #expect(try JSONValue(parsing: json.output).isNull == false)
        }
        let shown = try await run(["apps", "show", "com.example.app", "--json"])
        #expect(try JSONValue(parsing: shown.output).object?["name"] == .string(Self.evil))
    }

    @Test func `control characters in names are escaped in errors`() async throws {
        let name = "\u{1b}[2Jmissing\u{202e}"
        for arguments in [
            ["apps", "show", name], ["apps", "add", "--file", name], ["device", "register", "--app", name],
            ["attestation", "inspect", name], ["config", "check", "--config", name],
            ["devices", "list", "--app", name],
            ["doctor", "--database", name], ["--\(name)"], [name], ["serve", "--port", name],
        ] {
            _ = try await run(arguments)
        }
    }
}
