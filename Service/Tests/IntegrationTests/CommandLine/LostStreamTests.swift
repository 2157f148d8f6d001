import Foundation
import StrictJSON
import Testing

/// A command whose output is lost fails, and a lost stream kills no command.
@Suite(.serialized) struct `Lost streams` {
    /// Arguments with which a command prints a result, and arguments with which it fails.
    private struct Case {
        let arguments: [String]
        let failing: [String]

        init(_ arguments: [String] = [], failing: [String]? = nil) {
            self.arguments = arguments
            self.failing = failing ?? arguments
        }
    }

    private static let device = ["--app", "com.example.app", "7d0f6c1a-2b1e-4f6b-9c3d-0a1b2c3d4e5f"]
    private static let free = ["--port", "0", "--operations-port", "0"]
    private static let noService = ["--url", "http://127.0.0.1:1"]

    private static let groupsOfTheDatabase: Set = [
        "apps", "credentials", "signing-keys", "service-key", "devices", "statistics", "audit", "recordings",
        "webhooks", "policy",
    ]

    /// `arguments` are for a folder with a database, `failing` for an empty folder.
    private static let cases: [String: Case] = [
        "serve": Case(free, failing: ["--port", "eighty"]),
        "proxy": Case([
            "--listen", "127.0.0.1:0", "--backend", "http://127.0.0.1:1", "--service", "http://127.0.0.1:1",
        ]),
        "demo": Case(failing: ["--keep", "/dev/null/folder"]),
        "apps add": Case(["--file", "app.json"]), "apps change": Case(["--file", "app.json"]),
        "apps list": Case(), "apps show": Case(["com.example.app"]), "apps remove": Case(["com.example.app"]),
        "apps example": Case(["--production"], failing: ["--authority", "/dev/null/folder/authority.pem"]),
        "credentials create": Case(["--role", "viewer"]), "credentials list": Case(),
        "credentials revoke": Case(["0123456789abcdef"]),
        "signing-keys list": Case(), "signing-keys rotate": Case(), "signing-keys revoke": Case(["0123456789abcdef"]),
        "service-key rotate": Case(), "migrate": Case(), "migrate-store": Case(["--from", "sqlite:nowhere"]),
        "backup": Case(["new.backup"]), "restore": Case(["nowhere.backup"]),
        "config check": Case(failing: ["--port", "eighty"]), "config show": Case(failing: ["--port", "eighty"]),
        "doctor": Case(free, failing: ["--port", "eighty"]),
        "devices list": Case(), "devices show": Case(device), "devices revoke": Case(device),
        "devices approve": Case(device), "devices reject": Case(device), "devices force-rotation": Case(device),
        "devices lift-rotation": Case(device),
        "keeper show": Case(), "keeper set": Case(),
        "devices lower-scheme": Case(device + ["--scheme", "1"]), "statistics": Case(),
        "audit list": Case(), "audit verify": Case(), "audit head": Case(),
        "webhooks list": Case(), "webhooks add": Case(["https://hooks.example.com/"]),
        "webhooks enable": Case(["0123456789abcdef"]), "webhooks disable": Case(["0123456789abcdef"]),
        "webhooks remove": Case(["0123456789abcdef"]), "webhooks deliveries": Case(["0123456789abcdef"]),
        "webhooks resend": Case(["0123456789abcdef", "--after", "0"]),
        "policy what-if": Case(["--app", "app.json"]),
        // `device register` refuses this plain-HTTP URL before any call. Calls to an unreachable service would be retried for
        // seconds.
        "device register": Case(["--url", "http://auth.example.com"]), "device sign": Case(), "device status": Case(),
        "device rotate": Case(),
        "device reset": Case(),
        "conformance service": Case(["--list"], failing: noService),
        "conformance client": Case(["--list"], failing: ["--", "/nonexistent/client"]),
        "simulate": Case(["--devices", "1", "--requests", "1", "--platform", "development"], failing: noService),
        "recordings list": Case(), "recordings export": Case(["--app", "com.example.app", "1"]),
        "recordings delete": Case(["--app", "com.example.app", "--all"]),
        "attestation inspect": Case(["object.bin"]), "attestation verify": Case(["object.bin"]),
        "attestation replay": Case(["refusal.json"]),
        "playintegrity open-keys": Case(["object.bin", "--private-key", "object.bin"]),
    ]

    private func provision() async throws -> TemporaryFolder {
        let folder = try TemporaryFolder()
        let example = try await Binary.run(["apps", "example"], in: folder.url)
        try Data(example.output.utf8).write(to: folder.url.appendingPathComponent("app.json"))
        try Data([0xA0]).write(to: folder.url.appendingPathComponent("object.bin"))
        let added = try await Binary.run(["apps", "add", "--file", "app.json"], in: folder.url)
        try #require(added.status == 0, "\(added.errors)")
        let saved = try await Binary.run(
            [
                "attestation", "verify", "object.bin", "--format", "app-attest-attestation", "--save-recording",
                "refusal.json",
            ], in: folder.url)
        try #require(saved.status == 1, "\(saved.errors)")
        return folder
    }

    private func leaves() async throws -> [CommandTree.Command] {
        try await CommandTree.read().commands.filter { !$0.isGroup }
    }

    @Test func `every command has a case here`() async throws {
        #expect(try await Set(leaves().map(\.name)) == Set(Self.cases.keys))
    }

    @Test(arguments: LostStream.allCases) func `lost output is failure, for every command`(
        lost: LostStream
    ) async throws {
        let folder = try await provision()
        for command in try await leaves() {
            let arguments = command.path + (Self.cases[command.name]?.arguments ?? [])
            let result = try await Binary.run(arguments, in: folder.url, output: lost)
            #expect([1, 2].contains(result.status), "\(command.name): \(result.status) \(result.errors)")
            #expect(!result.errors.contains("Fatal error"), "\(result.errors)")
        }
    }

    @Test func `the exit code shows a failure without a standard error, for every command`() async throws {
        let folder = try TemporaryFolder()
        for command in try await leaves() {
            let hasDatabase =
                Self.groupsOfTheDatabase.contains(command.path.first ?? "") && command.name != "apps example"
            let nowhere = hasDatabase ? ["--database", "/nonexistent/db.sqlite"] : []
            let arguments = command.path + (Self.cases[command.name]?.failing ?? []) + nowhere
            let told = try await Binary.run(arguments, in: folder.url)
            #expect(told.status != 0, "\(command.name) \(told.output)")
            for lost in LostStream.allCases {
                let untold = try await Binary.run(arguments, in: folder.url, errors: lost)
                #expect(told.status == untold.status, "\(command.name), \(lost): \(untold.status)")
            }
        }
    }

    @Test(arguments: LostStream.allCases) func `help without a reader fails`(lost: LostStream) async throws {
        let folder = try TemporaryFolder()
        for arguments in [["--help"], ["apps", "--help"], ["--version"], ["--generate-completion-script", "bash"]] {
            #expect(try await Binary.run(arguments, in: folder.url, output: lost).status == 2)
        }
        #expect(try await Binary.run(["--nonsense"], in: folder.url, errors: lost).status == 64)
    }

    @Test(arguments: [
        ["attestation", "inspect", "-"], ["attestation", "verify", "-"], ["attestation", "verify", "--batch", "-"],
        ["attestation", "replay", "-"], ["apps", "add", "--file", "-"],
    ]) func `closed standard input is an error of reading`(arguments: [String]) async throws {
        let folder = try TemporaryFolder()
        let result = try await Binary.run(arguments, in: folder.url, closedInput: true)
        #expect(result.status == 2)
        #expect(result.errors.hasPrefix("synheart-auth: cannot read"), "\(result.errors)")
        #expect(result.errors.contains("Bad file descriptor"), "\(result.errors)")
    }

    @Test func `a command with closed streams writes into none of its own files`() async throws {
        let folder = try await provision()
        let database = folder.url.appendingPathComponent("synheart-auth.sqlite")
        for arguments in [
            ["apps", "list"], ["apps", "show", "nobody"], ["credentials", "create", "--role", "admin"],
        ] {
            let result = try await Binary.run(
                arguments, in: folder.url, closedInput: true, output: .closed, errors: .closed)
            #expect(result.status == 2)
        }
        let bytes = try Data(contentsOf: database)
        #expect(bytes.prefix(15) == Data("SQLite format 3".utf8))
        #expect(bytes.range(of: Data("synheart-auth:".utf8)) == nil)
        #expect(try await Binary.run(["audit", "verify"], in: folder.url).status == 0)
    }

    @Test func `an error about lost output says what was done before it`() async throws {
        let folder = try await provision()
        try FileManager.default.copyItem(
            atPath: folder.path("synheart-auth.sqlite.key"), toPath: folder.path("restored.sqlite.key"))
        for (arguments, done) in [
            (["service-key", "rotate"], "sealed "), (["backup", "new.backup"], "new.backup"),
            (["restore", "new.backup", "--database", "restored.sqlite"], "restored 1 apps"),
        ] {
            let result = try await Binary.run(arguments, in: folder.url, output: .full)
            #expect(result.status == 2)
            #expect(result.errors.contains("it is done (") && result.errors.contains(done), "\(result.errors)")
            #expect(result.errors.contains("cannot write to standard output"), "\(result.errors)")
        }
    }

    // MARK: Credentials

    private func liveCredentials(_ folder: TemporaryFolder) async throws -> Int {
        let listed = try await Binary.run(["credentials", "list", "--json"], in: folder.url)
        let credentials = try JSONValue(parsing: listed.output).array ?? []
        return credentials.compactMap(\.object).count { $0["revoked_at"]?.isNull ?? true }
    }

    @Test(arguments: LostStream.allCases, [[], ["--json"]])
    func `a credential that was not printed is revoked`(lost: LostStream, format: [String]) async throws {
        let folder = try await provision()
        let result = try await Binary.run(
            ["credentials", "create", "--role", "admin"] + format, in: folder.url, output: lost)
        #expect(result.status == 2)
        #expect(try await liveCredentials(folder) == 0)
        // The command detects a closed or broken output in advance, and creates no credential. A full output fails only at the
        // write.
        let events = try await Binary.run(["audit", "list"], in: folder.url)
        #expect(events.output.contains("credential.created") == (lost == .full), "\(events.output)")
    }

    @Test(arguments: LostStream.allCases) func `the first credential of a service that was not printed is revoked`(
        lost: LostStream
    ) async throws {
        let folder = try await provision()
        let result = try await Binary.run(
            ["serve", "--print-admin-credential"] + Self.free, in: folder.url, output: lost)
        #expect(result.status == 2, "\(result.errors)")
        #expect(try await liveCredentials(folder) == 0)
    }

    @Test func `the first credential is printed before the service fails to listen`() async throws {
        let folder = try await provision()
        let service = try await RunningService(database: folder.path("other.sqlite"))
        let result = try await Binary.run(
            ["serve", "--print-admin-credential", "--port", String(service.port), "--operations-port", "0"],
            in: folder.url)
        #expect(result.status == 2)
        #expect(result.output.hasPrefix("admin-credential sya_"), "\(result.output)")
        #expect(service.stop() == 0)
    }
}
