import Foundation
import GRDB
import StrictJSON
import Testing

/// `doctor` finds faults, prints remedies, and changes nothing.
@Suite struct DoctorTests {
    let folder: TemporaryFolder
    let database: String

    init() throws {
        folder = try TemporaryFolder()
        database = folder.path("db.sqlite")
    }

    private struct Report {
        let result: Binary.Result
        let checks: [JSONObject]

        /// The worst state of a check; nil if the report does not have this check.
        func state(_ check: String) -> String? {
            let states = checks.filter { $0["check"]?.string == check }.compactMap { $0["state"]?.string }
            return ["fail", "warn", "ok"].first { states.contains($0) }
        }

        func messages(_ check: String) -> String {
            checks.filter { $0["check"]?.string == check }.compactMap { $0["message"]?.string }.joined(separator: "\n")
        }
    }

    private func doctor(_ arguments: [String] = [], environment: [String: String] = [:]) async throws -> Report {
        let result = try await Binary.run(
            ["doctor", "--database", database, "--port", "0", "--operations-port", "0", "--json"] + arguments,
            environment: environment)
        let checks = try JSONValue(parsing: result.output).object?["checks"]?.array?.compactMap(\.object) ?? []
        for check in checks where check["state"]?.string != "ok" {
            #expect(check["advice"]?.string?.isEmpty == false, "\(check)")
        }
        return Report(result: result, checks: checks)
    }

    private func provision() async throws {
        let example = try await Binary.run(["apps", "example", "--authority", folder.path("authority.pem")])
        let added = try await Binary.run(["apps", "add", "--file", "-", "--database", database], input: example.output)
        try #require(added.status == 0, "\(added.errors)")
        _ = try await Binary.run(
            ["credentials", "create", "--name", "x", "--role", "admin", "--database", database])
    }

    private func change(_ sql: String) throws {
        let queue = try DatabaseQueue(path: database)
        try queue.write { try $0.execute(sql: sql) }
        try queue.close()
    }

    @Test func `a damaged record is named, and costs no other app anything`() async throws {
        try await provision()
        let example = try await Binary.run(["apps", "example", "--authority", folder.path("authority.pem")])
        var other = try #require(try JSONValue(parsing: example.output).object)
        let id = try #require(other["app_id"]?.string)
        other["app_id"] = "com.example.other"
        let added = try await Binary.run(
            ["apps", "add", "--file", "-", "--database", database], input: JSONValue.object(other).text())
        try #require(added.status == 0, "\(added.errors)")
        try change("UPDATE apps SET record = replace(record, 'sealed', 'broken') WHERE app_id = 'com.example.other'")

        let report = try await doctor()
        #expect(report.state("apps") == "fail")
        #expect(report.messages("apps").contains("com.example.other"), "\(report.messages("apps"))")
        let list = try await Binary.run(["apps", "list", "--database", database])
        #expect(list.status == 2 && list.output.contains(id), "\(list.status) \(list.output)")
        #expect(list.errors.contains("com.example.other"), "\(list.errors)")
    }

    @Test func `doctor names the missing public origin of a service that others reach`() async throws {
        let proxied = try await doctor(["--trusted-proxy", "10.0.0.0/8"])
        #expect(proxied.state("public_origin") == "warn")
        let advice = proxied.checks.first { $0["check"] == "public_origin" }?["advice"]?.string
        #expect(advice?.contains("SYNHEART_AUTH_PUBLIC_ORIGIN") == true, "\(advice ?? "none")")
        #expect(try await doctor().state("public_origin") == "ok")
        let named = try await doctor(["--trusted-proxy", "10.0.0.0/8", "--public-origin", "http://127.0.0.1:9"])
        #expect(named.state("public_origin") == "ok")
    }

    @Test func `doctor names a trusted proxy that names no client`() async throws {
        try await provision()
        #expect(try await doctor().state("trusted_proxies") == nil)
        let service = try await RunningService(database: database, arguments: ["--trusted-proxy", "127.0.0.1"])
        _ = await WireConnection.exchange(
            port: service.port, WireRequest(method: "POST", target: "/auth/v1/device/challenge"))
        let report = try await doctor()
        #expect(report.state("trusted_proxies") == "warn")
        #expect(report.messages("trusted_proxies").hasPrefix("127.0.0.1 "))
        #expect(service.stop() == 0)
    }

    @Test func `doctor asks each origin whether it leads to this service`() async throws {
        try await provision()
        let service = try await RunningService(database: database)
        let elsewhere = folder.path("other.sqlite")
        let added = try await Binary.run(
            ["credentials", "create", "--name", "x", "--role", "admin", "--database", elsewhere])
        #expect(added.status == 0)
        let other = try await RunningService(database: elsewhere)
        // The service creates its key set when it is first requested, or when a token is first issued.
        for url in [service.publicURL, other.publicURL] {
            _ = try await Loopback.get(url + "/auth/v1/.well-known/jwks.json")
        }
        let right = try await doctor(
            ["--public-origin", service.publicURL], environment: ["SYNHEART_AUTH_OTHER_ORIGINS": service.publicURL])
        #expect(right.state("reach") == "ok", "\(right.messages("reach"))")
        #expect(right.result.status == 0)
        let wrong = try await doctor(
            ["--public-origin", service.publicURL], environment: ["SYNHEART_AUTH_OTHER_ORIGINS": other.publicURL])
        #expect(wrong.state("reach") == "fail" && wrong.result.status == 1)
        #expect(wrong.messages("reach").contains("\(other.publicURL) a service with other stores"))
        let operations = try await doctor(["--public-origin", service.operationsURL])
        #expect(operations.messages("reach").contains("no service of this kind"))
        // No process listens on port 9.
        #expect(try await doctor(["--public-origin", "http://127.0.0.1:9"]).state("reach") == "warn")
        #expect(service.stop() == 0 && other.stop() == 0)
    }

    @Test func `doctor creates nothing before the first start`() async throws {
        let report = try await doctor()
        #expect(report.result.status == 0)
        #expect(report.state("database") == "warn")
        #expect(report.state("configuration") == "ok")
        #expect(report.state("listeners") == "ok")
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.url.path).isEmpty)
    }

    @Test func `a database in order is OK`() async throws {
        try await provision()
        let report = try await doctor()
        #expect(report.result.status == 0)
        for check in ["database", "service_key", "audit", "clock", "credentials", "app com.example.app", "disk"] {
            #expect(report.state(check) == "ok", "\(check) \(report.messages(check))")
        }
        let text = try await Binary.run(["doctor", "--database", database, "--port", "0", "--operations-port", "0"])
        #expect(text.output.contains("ok    database"), "\(text.output)")
    }

    @Test func `doctor lists what ends by itself, the first one first`() async throws {
        try await provision()
        _ = try await Binary.run(
            ["credentials", "create", "--name", "y", "--role", "viewer", "--days", "30", "--database", database])
        let (certificate, key) = try SelfSigned.write(in: folder, days: 60)
        let ends = try await doctor(["--tls-certificate", certificate, "--tls-key", key]).messages("ends")
            .split(separator: "\n").map { String($0) }
        #expect(ends == ends.sorted() && ends.contains { $0.contains("  a trust anchor of app com.example.app") })
        let others = ends.filter { !$0.contains("trust anchor") }
        let names = ["the viewer credential y (", "the certificate \(certificate)", "the admin credential x ("]
        #expect(others.count == names.count && zip(others, names).allSatisfy { $0.contains("Z  \($1)") }, "\(ends)")
    }

    @Test func `doctor asks a running service and does not report its addresses as taken`() async throws {
        try await provision()
        let service = try await RunningService(database: database)
        let report = try await doctor(["--url", service.operationsURL])
        #expect(report.result.status == 0, "\(report.result.output)")
        #expect(report.state("service") == "ok")
        #expect(report.messages("listeners").contains("a service runs"))
        #expect(try await doctor(["--url", service.publicURL]).state("service") == "fail")
        let busy = try await Binary.run(
            ["doctor", "--database", folder.path("other.sqlite"), "--port", String(service.port), "--json"])
        #expect(busy.status == 1)
        #expect(busy.output.contains("server.port: cannot listen at 127.0.0.1 port \(service.port)"), "\(busy.output)")
        #expect(service.stop() == 0)
        #expect(try await doctor(["--url", service.operationsURL]).state("service") == "fail")
    }

    @Test func `a lost service key is not replaced`() async throws {
        try await provision()
        try FileManager.default.removeItem(atPath: database + ".key")
        let report = try await doctor()
        #expect(report.result.status == 1)
        #expect(report.state("service_key") == "fail")
        #expect(!FileManager.default.fileExists(atPath: database + ".key"))
        let other = Data(repeating: 9, count: 32).base64EncodedString()
        let wrong = try await doctor(environment: ["SYNHEART_AUTH_SERVICE_KEY": other])
        #expect(wrong.state("service_key") == "fail", "\(wrong.result.output)")
    }

    @Test func `files that others can read are named`() async throws {
        try await provision()
        for file in [database, database + ".key"] {
            try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: file)
        }
        let report = try await doctor()
        #expect(report.state("database") == "warn")
        #expect(report.state("service_key") == "warn")
        #expect(report.messages("service_key").contains("mode 644"))
    }

    @Test func `doctor names a secret file that others can read`() async throws {
        try await provision()
        let key = folder.path("other.key")
        try FileManager.default.moveItem(atPath: database + ".key", toPath: key)
        let config = folder.path("c.yaml")
        func report(_ yaml: String, _ mode: Int) async throws -> Report {
            for (file, text) in [(config, yaml), (key, nil)] {
                if let text { try Data(text.utf8).write(to: URL(fileURLWithPath: file)) }
                try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: file)
            }
            return try await doctor(["--config", config])
        }
        let secret = try String(contentsOfFile: key, encoding: .utf8).trimmingCharacters(in: .whitespacesAndNewlines)
        for (yaml, check) in [("service_key_file: \(key)", "service_key"), ("service_key: \(secret)", "configuration")]
        {
            #expect(try await report(yaml, 0o600).state(check) == "ok")
            for mode in [0o644, 0o640, 0o602] {
                let found = try await report(yaml, mode)
                #expect(found.state(check) == "warn", "\(yaml) \(found.result.output)")
                #expect(found.messages(check).contains("has mode \(String(mode, radix: 8))"))
                #expect(!found.result.output.contains(secret))
            }
        }
        // A configuration without secrets may be readable by others.
        #expect(try await report("service_key_file: \(key)", 0o644).state("configuration") == "ok")
    }

    @Test func `the file of the default key is not ok beside its warning`() async throws {
        try await provision()
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: database + ".key")
        let states = try await doctor().checks.filter { $0["check"]?.string == "service_key" }
        #expect(states.compactMap { $0["state"]?.string } == ["warn"])
    }

    @Test func `doctor finds faults in the database`() async throws {
        try await provision()
        try change("DROP TRIGGER audit_is_not_changed; UPDATE audit SET actor = 'nobody' WHERE sequence = 1")
        #expect(try await doctor().state("audit") == "fail")
        try change("UPDATE audit SET at = at + 100000")
        #expect(try await doctor().state("clock") == "fail")
        try change("DELETE FROM grdb_migrations WHERE identifier <> '1'")
        let older = try await doctor()
        #expect(older.messages("database").contains("older version"), "\(older.result.output)")
        #expect(older.state("audit") == nil, "an older database is not opened, because that would change it")
        try change("INSERT INTO grdb_migrations (identifier) VALUES ('of a later version')")
        let newer = try await doctor()
        #expect(newer.result.status == 1)
        #expect(newer.messages("database").contains("newer version"))
        try Data("no database, and long enough to be read as one".utf8).write(to: URL(fileURLWithPath: database))
        #expect(try await doctor().state("database") == "fail")
    }

    @Test func `doubtful settings of an app are warnings`() async throws {
        try await provision()
        let record = #"""
            {"app_id": "com.example.second", "build_channel": "dev", "development_integrity_allowed": true,
             "mode": "observe", "enabled": false, "signature": {"minimum_scheme": 2},
             "ios": {"app_ids": ["TEAMID1234.com.example.second"], "assertions_required_on": ["/v1/pay"]},
             "android": {"packages": ["com.example.second"], "proof": "both",
               "certificate_digests": ["AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"],
               "key_attestation": {"status_list": "none"}}}
            """#
        let added = try await Binary.run(["apps", "add", "--file", "-", "--database", database], input: record)
        try #require(added.status == 0, "\(added.errors)")
        let report = try await doctor()
        #expect(report.result.status == 0)
        let messages = report.messages("app com.example.second")
        for doubt in [
            "disabled", "observes", "development mode", "no authorities", "revoked attestation keys", "decoded neither",
            "assertions_required_on",
        ] {
            #expect(messages.contains(doubt), "\(doubt): \(messages)")
        }
    }

    @Test func `a service account and a revocation list that cannot be used are faults`() async throws {
        try await provision()
        let record = #"""
            {"app_id": "com.example.second", "build_channel": "dev",
             "android": {"packages": ["com.example.second"],
               "certificate_digests": ["AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"],
               "play_integrity": {"service_account": {
                 "client_email": "a@example.com", "private_key": "S3CR3T", "token_uri": "https://example.com"}},
               "key_attestation": {"status_list": "http://lists.example.com/status"}}}
            """#
        let added = try await Binary.run(["apps", "add", "--file", "-", "--database", database], input: record)
        try #require(added.status == 0, "\(added.errors)")
        let report = try await doctor()
        #expect(report.result.status == 1 && report.state("app com.example.second") == "fail")
        let messages = report.messages("app com.example.second")
        #expect(messages.contains("status_list") && messages.contains("service_account"), "\(messages)")
        #expect(!messages.contains("S3CR3T"))
    }

    @Test func `a configuration that is refused is the first finding`() async throws {
        try await provision()
        let report = try await doctor(["--host", "0.0.0.0"])
        #expect(report.result.status == 1)
        #expect(report.state("configuration") == "fail")
        #expect(report.messages("configuration").contains("server.host"))
        // Doctor still checks the store, although it refuses the configuration.
        #expect(report.state("audit") == "ok")
    }

    @Test(arguments: [("now", "ok"), ("soon", "warn"), ("past", "fail"), ("other", "fail")])
    func `doctor checks the certificate`(which: String, state: String) async throws {
        let days = ["now": 60, "soon": 3, "past": -1, "other": 60][which] ?? 0
        let (certificate, key) = try SelfSigned.write(in: folder, days: days)
        if which == "other" { _ = try SelfSigned.write(in: folder, days: days, certificateAlone: true) }
        let report = try await doctor(["--tls-certificate", certificate, "--tls-key", key])
        let check = which == "other" ? "configuration" : "tls"
        #expect(report.state(check) == state, "\(report.result.output)")
    }
}
