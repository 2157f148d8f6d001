import Foundation
import StrictJSON
import Testing

/// No command shows a secret of its configuration or of a record, whatever is wrong with the file.
@Suite(.serialized) struct `Secrets in files` {
    private static let secret = "c2VjcmV0IHRoYXQgaXMgbmV2ZXIgc2hvd24gdG8gYW55"

    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private func write(_ text: String, _ name: String) throws -> String {
        try Data(text.replacingOccurrences(of: "SECRET", with: Self.secret).utf8)
            .write(to: folder.url.appendingPathComponent(name))
        return folder.path(name)
    }

    @Test(arguments: [
        "database: a\nservice_key: SECRET\ndatabase: b\n", "service_key: \"SECRET\\q\"\n",
        "service_key:SECRET\ndatabase: x\n", "{service_key:SECRET, database: x}\n", "service_key: [SECRET]\n",
        "providers:\n  apple_key: |\n    SECRET\n  apple_key: SECRET\n", "service_key_file: SECRET\n",
        "providers: {apple_team_id: TEAMID1234, apple_key_id: KEYID12345, apple_key: SECRET}\n",
    ]) func `a configuration is refused by every command without showing it`(text: String) async throws {
        let config = try write(text, "c.yaml")
        let free = ["--port", "0", "--operations-port", "0"]
        for arguments in [
            ["config", "check"], ["config", "show"], ["config", "check", "--json"], ["serve"] + free, ["apps", "list"],
            ["audit", "verify"], ["doctor"] + free, ["doctor", "--json"] + free,
            ["credentials", "create", "--role", "admin"],
        ] {
            let result = try await Binary.run(arguments + ["--config", config], in: folder.url)
            // If only Apple's key is faulty, two commands succeed: `config show`, and `credentials`, which opens only the store and
            // does not read that key.
            let isShown = arguments == ["config", "show"] && text.contains("apple_team_id")
            let makesOne = arguments.first == "credentials" && text.contains("apple_team_id")
            #expect(result.status != 0 || isShown || makesOne, "\(arguments) \(result.output)")
            #expect(!(result.output + result.errors).contains(Self.secret), "\(arguments)")
        }
    }

    @Test func `a repeated key is named by path and line`() async throws {
        let config = try write("server:\n  port: 1\nservice_key: SECRET\nserver.port: 2\n", "c.yaml")
        let result = try await Binary.run(["config", "check", "--config", config])
        #expect(result.status == 1)
        #expect(result.errors.hasPrefix("synheart-auth: server.port: appears twice"), "\(result.errors)")
        #expect(result.errors.contains("of \(config))"), "\(result.errors)")
    }

    @Test func `config check and serve refuse the same Apple key`() async throws {
        let config = try write(
            "providers: {apple_team_id: TEAMID1234, apple_key_id: KEYID12345, apple_key: SECRET}\n", "c.yaml")
        let database = folder.path("db.sqlite")
        let checked = try await Binary.run(["config", "check", "--config", config])
        let served = try await Binary.run(
            ["serve", "--port", "0", "--operations-port", "0", "--database", database, "--config", config])
        let examined = try await Binary.run(["doctor", "--database", database, "--config", config])
        for result in [checked, served, examined] {
            #expect(result.status != 0)
            #expect((result.errors + result.output).contains("providers.apple_key"), "\(result)")
        }
        #expect(checked.status == 1)
        #expect(!FileManager.default.fileExists(atPath: database), "refused before anything is made")
    }

    @Test func `config check refuses a database that serve would refuse`() async throws {
        for place in ["/nonexistent/db.sqlite", "/dev/null", folder.url.path] {
            let checked = try await Binary.run(["config", "check", "--database", place])
            #expect(checked.status == 1, "\(place)")
            #expect(checked.errors.contains("database: "), "\(checked.errors)")
        }
    }

    @Test(arguments: [
        #"{"app_id": "a.b", "android": {"packages": ["a.b"], "play_integrity": {"service_account": SECRET}}}"#,
        #"{"app_id": "a.b", "android": {"packages": ["a.b"], "play_integrity": {"service_account": "SECRET"}}}"#,
        #"{"app_id": "a.b", "android": {"packages": ["a.b"], "play_integrity": {"keys": [{"decryption_key": "SECRET"}]}}}"#,
        #"{"app_id": "a.b", "android": {"packages": ["a.b"], "play_integrity": {"keys": ["SECRET"]}}}"#,
        #"{"app_id": "SECRET==", "ios": {"app_ids": ["SECRET"]}}"#, #"["SECRET"]"#,
        #"{"app_id": "a.b", "app_id": "SECRET"}"#, #"{"app_id": "a.b", "mode": "SECRET", "ios": {"app_ids": ["T.a"]}}"#,
        #"{"app_id": "a.b", "build_channel": "dev", "ios": {"app_ids": ["TEAMID1234.a"], "trust_anchors": ["SECRET"]}}"#,
    ]) func `a record is refused without showing it`(record: String) async throws {
        let file = try write(record, "app.json")
        let database = folder.path("db.sqlite")
        for arguments in [["apps", "add"], ["apps", "add", "--json"], ["apps", "change"]] {
            let result = try await Binary.run(arguments + ["--file", file, "--database", database])
            #expect(result.status != 0)
            #expect(!(result.output + result.errors).contains(Self.secret), "\(result.errors)")
        }
    }

    @Test func `a credential in place of its file's path is not shown`() async throws {
        for (arguments, environment) in [
            (["--credential-file", Self.secret], [:]), ([], ["SYNHEART_AUTH_CREDENTIAL_FILE": Self.secret]),
            ([], ["SYNHEART_AUTH_CREDENTIAL": "two \(Self.secret)"]),
        ] {
            let result = try await Binary.run(
                ["apps", "list", "--url", "http://127.0.0.1:1"] + arguments, environment: environment)
            #expect(result.status == 2)
            #expect(!result.errors.contains(Self.secret), "\(result.errors)")
        }
    }

    @Test func `a damaged authority is not shown`() async throws {
        let authority = try write("-----BEGIN PRIVATE KEY-----\nSECRET\n-----END PRIVATE KEY-----\n", "a.pem")
        _ = try write(#"{"SECRET": "SECRET", SECRET}"#, "a.google.json")
        let apple = try await Binary.run(["apps", "example", "--authority", authority])
        try FileManager.default.removeItem(atPath: authority)
        let google = try await Binary.run(["apps", "example", "--authority", authority])
        for result in [apple, google] {
            #expect(result.status == 2)
            #expect(result.errors.contains("not an authority"), "\(result.errors)")
            #expect(!(result.output + result.errors).contains(Self.secret), "\(result.errors)")
        }
    }
}
