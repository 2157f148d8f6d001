import Crypto
import Foundation
import StrictJSON
import Testing

/// The administrative commands: on the service's database, and through its admin API.
@Suite struct AdministrationTests {
    let folder: TemporaryFolder
    let database: String

    init() throws {
        folder = try TemporaryFolder()
        database = folder.path("db.sqlite")
    }

    private func credential(_ role: String = "admin", apps: [String] = []) async throws -> String {
        let created = try await Binary.run(
            ["credentials", "create", "--name", "test", "--role", role, "--database", database, "--json"]
                + apps.flatMap { ["--app", $0] })
        try #require(created.status == 0, "\(created.errors)")
        return try #require(try JSONValue(parsing: created.output).object?["credential"]?.string)
    }

    private func example() async throws -> String {
        try await Binary.run(["apps", "example", "--authority", folder.path("authority.pem")]).output
    }

    @Test func `every command prints the same on the database and over HTTP`() async throws {
        let credential = try await credential()
        let example = try await example()
        let service = try await RunningService(database: database)
        let remote = ["SYNHEART_AUTH_CREDENTIAL": credential, "SYNHEART_AUTH_URL": service.operationsURL]
        func both(_ arguments: String..., input: String? = nil) async throws -> [Binary.Result] {
            [
                try await Binary.run(arguments + ["--database", database], input: input),
                try await Binary.run(arguments, input: input, environment: remote),
            ]
        }
        let added = try await Binary.run(["apps", "add", "--file", "-"], input: example, environment: remote)
        #expect(added.status == 0, "\(added.errors)")
        #expect(added.output == "added com.example.app\n")
        let device = "0b7c1b1e-5a52-4f3e-9f3a-0d5b7e2c9a11"
        for arguments in [
            ["apps", "list"], ["apps", "list", "--json"], ["apps", "show", "com.example.app"],
            ["apps", "show", "com.example.other"], ["apps", "show", "no/such app"], ["devices", "list"],
            ["devices", "list", "--status", "odd"], ["devices", "list", "--device", device],
            ["devices", "list", "--device", "2e63ae89698b95dd"], ["devices", "list", "--device", "2E63AE89698B95DD"],
            ["devices", "list", "--device", "odd"], ["devices", "show", "--app", "com.example.app", device],
            ["devices", "revoke", "--app", "com.example.app", device], ["credentials", "list"],
            ["credentials", "list", "--json"], ["credentials", "revoke", "nobody"], ["signing-keys", "list"],
            ["audit", "list", "--json"], ["audit", "verify"], ["audit", "verify", "--head", "x"], ["statistics"],
            ["statistics", "--since", "1h"], ["statistics", "--since", "soon"],
            ["statistics", "--since", "1h", "--step", "61"], ["statistics", "--since", "1h", "--app", "no/such app"],
        ] {
            let (local, through) = (
                try await Binary.run(arguments + ["--database", database]),
                try await Binary.run(arguments, environment: remote)
            )
            #expect(local.status == through.status, "\(arguments) \(local.errors) \(through.errors)")
            #expect(local.output == through.output, "\(arguments)")
            #expect(local.errors == through.errors, "\(arguments)")
        }
        for arguments in [
            ["--since", "abc"], ["--since", "1h", "--by", "code,odd"], ["--since", "1h", "--step", "7"],
        ] {
            let result = try await Binary.run(["statistics"] + arguments + ["--database", database])
            #expect(result.status == 64, "\(arguments) \(result.errors)")
        }
        for result in try await both("apps", "add", "--file", "-", input: example) {
            #expect(result.status == 1)
            #expect(result.errors.contains("com.example.app exists already"), "\(result.errors)")
        }
        for result in try await both("apps", "change", "--file", "-", input: example) {
            #expect(result.output == "changed com.example.app\n", "\(result.errors)")
        }
        #expect(service.stop() == 0)
        // The command on the database and the admin API write the same event. Only its actor differs.
        let audit = try await Binary.run(["audit", "list", "--json", "--database", database])
        let actors = try JSONValue(parsing: audit.output).array?.compactMap { event in
            event.object?["code"]?.string == "app.changed" ? event.object?["actor"]?.string : nil
        }
        #expect(actors?.count == 2)
        #expect(actors?.contains("cli:\(NSUserName())") == true && actors?.contains { $0.hasPrefix("admin:") } == true)
    }

    @Test func `the verdicts that a service counted are in its store once it has stopped`() async throws {
        let added = try await Binary.run(
            ["apps", "add", "--file", "-", "--database", database], input: DevelopmentDevice.app)
        try #require(added.status == 0, "\(added.errors)")
        let service = try await RunningService(database: database)
        _ = try #require(await DevelopmentDevice.register(P256.Signing.PrivateKey(), port: service.port))
        #expect(service.stop() == 0)
        let counted = try await Binary.run(
            ["statistics", "--since", "1h", "--by", "kind,code", "--database", database])
        #expect(counted.output == "KIND          CODE        TOTAL\nregistration  registered  1\n", "\(counted.errors)")
        let without = try await Binary.run(["statistics", "--by", "code", "--database", database])
        #expect(without.status == 64 && without.errors.contains("--since"), "\(without.errors)")
    }

    @Test func `a webhook is switched off and on again, and keeps its other settings`() async throws {
        let url = "https://hooks.example.com/synheart"
        func webhooks(_ arguments: String...) async throws -> Binary.Result {
            try await Binary.run(["webhooks"] + arguments + ["--database", database])
        }
        let provisioned = try await Binary.run(
            ["apps", "add", "--file", "-", "--database", database], input: DevelopmentDevice.app)
        try #require(provisioned.status == 0, "\(provisioned.errors)")
        let added = try await webhooks("add", url, "--event", "device.revoked", "--json")
        try #require(added.status == 0, "\(added.errors)")
        let id = try #require(try JSONValue(parsing: added.output).object?["id"]?.string, "\(added.errors)")
        for (word, isEnabled) in [("disable", false), ("disable", false), ("enable", true)] {
            #expect(try await webhooks(word, id).output == "\(word)d \(id)\n")
            let listed = try JSONValue(parsing: try await webhooks("list", "--json").output)
            let webhook = try #require(listed.array?.first?.object ?? listed.object)
            #expect(webhook["enabled"] == .bool(isEnabled))
            #expect(webhook["url"]?.string == url && webhook["events"] == ["device.revoked"])
            #expect(webhook["all_apps"] == true)
        }
        #expect(try await webhooks("deliveries", id).output == "nothing was delivered yet\n")
        #expect(try JSONValue(parsing: try await webhooks("deliveries", id, "--json").output) == [])
        for word in ["enable", "deliveries"] {
            #expect(try await webhooks(word, "0123456789abcdef").status == 1)
        }
    }

    @Test func `a credential comes from a file or the environment`() async throws {
        let credential = try await credential("viewer")
        let service = try await RunningService(database: database)
        let file = folder.path("credential")
        try Data((credential + "\n").utf8).write(to: URL(fileURLWithPath: file))
        let arguments = ["apps", "list", "--url", service.operationsURL]
        let without = try await Binary.run(arguments)
        #expect(without.status == 2)
        #expect(without.errors.contains("SYNHEART_AUTH_CREDENTIAL"))
        #expect(try await Binary.run(arguments + ["--credential-file", file]).status == 0)
        #expect(try await Binary.run(arguments, environment: ["SYNHEART_AUTH_CREDENTIAL": credential]).status == 0)
        #expect(try await Binary.run(arguments, environment: ["SYNHEART_AUTH_CREDENTIAL_FILE": file]).status == 0)
        for wrong in ["sya_nobody_secret", "two words", ""] {
            let refused = try await Binary.run(arguments, environment: ["SYNHEART_AUTH_CREDENTIAL": wrong])
            #expect(refused.status == 2, "\(wrong) \(refused.errors)")
        }
        let viewer = try await Binary.run(
            ["signing-keys", "rotate", "--url", service.operationsURL, "--credential-file", file])
        #expect(viewer.status == 2)
        #expect(viewer.errors.contains("needs role admin"), "\(viewer.errors)")
        // The public listener does not serve the admin API.
        let elsewhere = try await Binary.run(["apps", "list", "--url", service.publicURL, "--credential-file", file])
        #expect(elsewhere.status == 2)
        #expect(elsewhere.errors.contains("operations listener"), "\(elsewhere.errors)")
    }

    @Test(arguments: [
        ("http://auth.example.com:9464", "in the clear"), ("http://10.0.0.1:9464", "in the clear"),
        ("ftp://localhost", "--url"), ("localhost:9464", "--url"), ("http://localhost:9464/path", "--url"),
        ("http://user:secret@localhost", "--url"), ("http://127.0.0.1:1", "cannot reach"),
    ]) func `an address that will not do is refused before a credential is sent`(
        url: String, sentence: String
    ) async throws {
        let refused = try await Binary.run(
            ["apps", "list", "--url", url], environment: ["SYNHEART_AUTH_CREDENTIAL": "sya_a_b"])
        #expect(refused.status == 2)
        #expect(refused.errors.contains(sentence), "\(refused.errors)")
    }

    @Test(arguments: [
        (["credentials", "create", "--role", "admin", "--name", "x"], "credentials list"),
        (["webhooks", "add", "https://hooks.example.com/"], "webhooks list"),
    ])
    func `a secret whose making was not answered is called lost`(arguments: [String], list: String) async throws {
        let result = try await Binary.run(
            arguments, environment: ["SYNHEART_AUTH_CREDENTIAL": "sya_x", "SYNHEART_AUTH_URL": "http://127.0.0.1:1"])
        #expect(result.status == 2 && result.errors.contains("`\(list)`"), "\(result.errors)")
        #expect(result.errors.contains("its secret was not shown"), "\(result.errors)")
    }

    @Test func `a database and a service exclude each other`() async throws {
        let both = try await Binary.run(["apps", "list", "--url", "http://localhost:1", "--database", database])
        #expect(both.status == 64)
        // A flag wins over the environment.
        _ = try await credential()
        let flagged = try await Binary.run(
            ["apps", "list", "--database", database], environment: ["SYNHEART_AUTH_URL": "http://localhost:1"])
        #expect(flagged.status == 0, "\(flagged.errors)")
    }

    @Test func `the service and the commands find their key by one rule`() async throws {
        let secret = Data(repeating: 3, count: 32).base64EncodedString()
        let (key, config) = (folder.path("key"), folder.path("config.yaml"))
        try Data(secret.utf8).write(to: URL(fileURLWithPath: key))
        try Data("service_key_file: \(key)\ndatabase: \(database)\n".utf8).write(to: URL(fileURLWithPath: config))
        let example = try await example()
        let added = try await Binary.run(["apps", "add", "--file", "-", "--config", config], input: example)
        #expect(added.status == 0, "\(added.errors)")
        #expect(!FileManager.default.fileExists(atPath: database + ".key"))
        for environment in [
            ["SYNHEART_AUTH_CONFIG": config],
            ["SYNHEART_AUTH_SERVICE_KEY": secret, "SYNHEART_AUTH_DATABASE": database],
            ["SYNHEART_AUTH_SERVICE_KEY_FILE": key, "SYNHEART_AUTH_DATABASE": database],
        ] {
            let listed = try await Binary.run(["apps", "list"], environment: environment)
            #expect(listed.output.contains("com.example.app"), "\(listed.errors)")
            let service = try await RunningService(database: database, environment: environment)
            let ready = try await Loopback.get("\(service.operationsURL)/readyz").text
            #expect(ready.contains(#""service_key":true"#), "\(ready)")
            #expect(service.stop() == 0)
        }
        // A command ignores faulty files that only the service needs.
        try Data("service_key_file: \(key)\nserver: {tls_certificate: /nowhere}\n".utf8)
            .write(to: URL(fileURLWithPath: config))
        let listed = try await Binary.run(
            ["apps", "list", "--database", database], environment: ["SYNHEART_AUTH_CONFIG": config])
        #expect(listed.status == 0, "\(listed.errors)")
        let other = try await Binary.run(
            ["apps", "list", "--database", database],
            environment: ["SYNHEART_AUTH_SERVICE_KEY": Data(repeating: 4, count: 32).base64EncodedString()])
        #expect(other.status == 2)
        #expect(other.errors.contains("is not the key that the database was sealed with"), "\(other.errors)")
    }

    @Test func `the service sees a command's change within a second`() async throws {
        let example = try await example()
        let service = try await RunningService(database: database)
        let challenge = #"{"app_id":"com.example.app"}"#
        let route = "\(service.publicURL)/auth/v1/device/challenge"
        #expect(try await Loopback.post(challenge, to: route).status == 404)
        _ = try await Binary.run(["apps", "add", "--file", "-", "--database", database], input: example)
        #expect(try await Loopback.post(challenge, to: route).status == 200)
        let disabled = example.replacingOccurrences(of: #""enabled": true"#, with: #""enabled": false"#)
        try #require(disabled != example)
        var delays: [Duration] = []
        for (record, status) in [(disabled, 404), (example, 200), (disabled, 404)] {
            let changed = try await Binary.run(
                ["apps", "change", "--file", "-", "--database", database], input: record)
            #expect(changed.status == 0, "\(changed.errors)")
            let since = ContinuousClock.now
            while try await Loopback.post(challenge, to: route).status != status {
                try #require(since.duration(to: .now) < .seconds(20), "the service never saw it")
            }
            delays.append(since.duration(to: .now))
        }
        // The service notices a change within a second. On a busy machine a request adds time, but not to every measurement.
        #expect(try #require(delays.min()) < .seconds(2))
    }

    @Test func `an expired demand causes one warning`() async throws {
        let folder = try TemporaryFolder()
        let database = folder.path("db.sqlite")
        let example = try await Binary.run(["apps", "example", "--authority", folder.path("authority.pem")])
        _ = try await Binary.run(["apps", "add", "--file", "-", "--database", database], input: example.output)
        var record = try #require(try JSONValue(parsing: example.output).object)
        record["keys"] = [
            "compromise": ["keys_before": "2026-01-01T00:00:00Z", "rotate_by": "2026-01-02T00:00:00Z"]
        ]
        let change = ["apps", "change", "--file", "-", "--database", database]
        for isWarned in [true, false] {
            let changed = try await Binary.run(change, input: JSONValue.object(record).text())
            #expect(changed.status == 0 && changed.errors.contains("has passed") == isWarned, "\(changed.errors)")
        }
    }
}

/// The output of `serve` if it cannot start.
@Suite struct StartTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    @Test func `an error names an address in use`() async throws {
        let service = try await RunningService(database: folder.path("first.sqlite"))
        let second = try await Binary.run([
            "serve", "--database", folder.path("second.sqlite"), "--port", String(service.port), "--operations-port",
            "0",
        ])
        #expect(second.status == 2)
        #expect(second.output.isEmpty)
        #expect(
            second.errors.contains("server.port: cannot listen at 127.0.0.1 port \(service.port)"), "\(second.errors)")
        #expect(service.stop() == 0)
    }

    @Test func `a database is not served twice`() async throws {
        let service = try await RunningService(database: folder.path("first.sqlite"))
        let second = try await Binary.run([
            "serve", "--database", folder.path("first.sqlite"), "--port", "0", "--operations-port", "0",
        ])
        #expect(second.status == 2)
        #expect(second.errors.contains("Another service"), "\(second.errors)")
        #expect(service.stop() == 0)
    }

    @Test func `a malformed Apple key is refused`() async throws {
        let refused = try await Binary.run(
            ["serve", "--database", folder.path("first.sqlite"), "--port", "0", "--operations-port", "0"],
            environment: [
                "SYNHEART_AUTH_PROVIDERS_APPLE_TEAM_ID": "TEAMID1234",
                "SYNHEART_AUTH_PROVIDERS_APPLE_KEY_ID": "KEYID12345",
                "SYNHEART_AUTH_PROVIDERS_APPLE_KEY": "no key",
            ])
        #expect(refused.status == 2, "\(refused.errors)")
        #expect(refused.output.isEmpty)
    }
}
