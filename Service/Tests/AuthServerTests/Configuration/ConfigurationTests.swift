import Foundation
import Logging
import StrictJSON
import Testing

@testable import AuthServer

/// The environment overrides the file, flags override both, and an error names the refused key.
@Suite struct ConfigurationTests {
    private func file(_ text: String, _ name: String = "c.yaml") throws -> ConfigurationFile {
        try ConfigurationFile(path: name, contents: Array(text.utf8))
    }

    /// The configuration key that the error of `body` names; nil if `body` throws no error.
    private func refusedKey(_ body: () throws -> Void) -> String? {
        do {
            try body()
            return nil
        } catch {
            return (error as? ConfigurationError)?.key ?? "another error: \(error)"
        }
    }

    @Test func `flags override the environment, the file and the defaults, in this order`() throws {
        let file = try file("server:\n  port: 1\n  host: 127.0.0.2\noperations: {port: 5}\n")
        let environment = ["SYNHEART_AUTH_PORT": "2", "SYNHEART_AUTH_HOST": "127.0.0.3", "PATH": "/bin"]
        let configuration = try ServiceConfiguration(file: file, environment: environment, flags: [.port: ["3"]])
        let server = try configuration.server
        #expect(server.port == 3)
        #expect(server.host == "127.0.0.3")
        #expect(server.operations.port == 5)
        #expect(server.maximumConnections == ServerSettings().maximumConnections)
        let origins = Dictionary(uniqueKeysWithValues: configuration.all.map { ($0.key, $0.origin.description) })
        #expect(origins[.port] == "flag --port")
        #expect(origins[.host] == "environment SYNHEART_AUTH_HOST")
        #expect(origins[.operationsPort] == "file c.yaml")
        #expect(origins[.logLevel] == "default")
    }

    @Test func `a file has the same meaning in JSON and in YAML`() throws {
        let json =
            #"{"server":{"port":9000,"trusted_proxies":["10.0.0.0/8"],"insecure_http":true},"log_level":"debug"}"#
        let yaml = """
            # A comment.
            server:
              port: 9000
              trusted_proxies:
                - 10.0.0.0/8
              insecure_http: true
            log_level: debug
            """
        let read = try [ServiceConfiguration(file: file(json, "c.json")), ServiceConfiguration(file: file(yaml))]
        #expect(read[0].all.map(\.value) == read[1].all.map(\.value))
        #expect(read[0].text(.logLevel) == "debug")
    }

    @Test(arguments: [
        ("server:\n  prot: 1", "server.prot"), ("sever: {}", "sever"), ("server: 1", "server"), ("- a", "config"),
        ("server:\n  port: eighty", "server.port"), ("server:\n  port: \"80\"", "server.port"),
        ("server:\n  port: 65536", "server.port"), ("server:\n  port: -1", "server.port"),
        ("server:\n  port: 80.5", "server.port"), ("server:\n  port: [80]", "server.port"),
        ("server:\n  port: 1\n  port: 2", "server.port"), ("server:\n  insecure_http: 1", "server.insecure_http"),
        ("server:\n  trusted_proxies: 10.0.0.1", "server.trusted_proxies"),
        ("server:\n  nat64_prefixes: ['2001:db8::/95']", "server.nat64_prefixes"),
        ("server:\n  trusted_proxies: [proxy.example.com]", "server.trusted_proxies"),
        ("server:\n  host: \"\"", "server.host"), ("server:\n  host: 0.0.0.0", "server.host"),
        ("server:\n  tls_certificate: a.pem", "server.tls_key"),
        ("server:\n  tls_key: a.pem", "server.tls_certificate"),
        ("server:\n  tls_certificate: /nowhere/a\n  tls_key: /nowhere/b", "server.tls_certificate"),
        ("server:\n  public_origin: auth.example.com", "server.public_origin"),
        ("server:\n  other_origins: [\"https://a.example\", auth.example.com]", "server.other_origins"),
        ("operations:\n  host: 10.0.0.1", "operations.host"), ("operations:\n  hosts: []", "operations.hosts"),
        ("operations:\n  tls_key: a.pem", "operations.tls_certificate"),
        ("operations:\n  tls_certificate: /nowhere/a\n  tls_key: /nowhere/b", "operations.tls_certificate"),
        ("metrics:\n  host: 0.0.0.0", "metrics.host"), ("metrics:\n  port: 9464", "metrics.port"),
        ("metrics:\n  port: 8080", "metrics.port"), ("metrics:\n  port: 65536", "metrics.port"),
        ("operations:\n  port: 8080", "operations.port"), ("log_level: loud", "log_level"),
        ("service_key: short", "service_key"), ("service_key: a\nservice_key_file: b", "service_key_file"),
        ("service_key_file: /nowhere/key", "service_key_file"), ("database: 1", "database"),
        ("server: {port: 1", "config"), ("a: &x 1\nb: *x", "a"), ("limits:\n  header_bytes: 10", "limits.header_bytes"),
        ("protection:\n  device_burst: 1000000", "protection.device_burst"),
        ("stores:\n  redis: redis://r", "stores.redis"),
        ("stores:\n  lossless_failover: true", "stores.lossless_failover"),
        ("stores:\n  postgresql: postgresql://p", "service_key"),
        ("stores:\n  postgresql: postgresql://p\ndatabase: a.sqlite", "database"),
        ("stores:\n  mysql: a", "stores.mysql"),
    ]) func `an unknown setting in a file is refused by its key`(text: String, key: String) {
        #expect(refusedKey { _ = try ServiceConfiguration(file: file(text)) } == key)
    }

    @Test(arguments: [
        ("{", "config"), ("[]", "config"), (#"{"server":{"port":1,"port":2}}"#, "server.port"), (#"{"x":1}"#, "x"),
        (#"{"server":{"port":1.0}}"#, "server.port"),
    ]) func `an unknown setting in JSON is refused by its key`(text: String, key: String) {
        #expect(refusedKey { _ = try ServiceConfiguration(file: file(text, "c.json")) } == key)
    }

    @Test(arguments: [
        ("SYNHEART_AUTH_PROT", "1", "SYNHEART_AUTH_PROT"), ("SYNHEART_AUTH_PORT", "x", "SYNHEART_AUTH_PORT"),
        ("SYNHEART_AUTH_PORT", "", "SYNHEART_AUTH_PORT"),
        ("SYNHEART_AUTH_INSECURE_HTTP", "yes", "SYNHEART_AUTH_INSECURE_HTTP"),
        ("SYNHEART_AUTH_SERVICE_KEY_FILE", "/nowhere", "SYNHEART_AUTH_SERVICE_KEY_FILE"),
        ("SYNHEART_AUTH_TRUSTED_PROXIES", "10.0.0.0/99", "server.trusted_proxies"),
    ]) func `an unknown variable is refused by its name`(name: String, value: String, key: String) {
        #expect(refusedKey { _ = try ServiceConfiguration(environment: [name: value]) } == key)
    }

    @Test func `a command on the store refuses the same stores as the service`() {
        for environment in [
            ["SYNHEART_AUTH_STORES_REDIS": "redis://r"], ["SYNHEART_AUTH_STORES_POSTGRESQL": "postgresql://p"],
            ["SYNHEART_AUTH_STORES_POSTGRESQL": "postgresql://p", "SYNHEART_AUTH_DATABASE": "a.sqlite"],
        ] {
            let keys = [ServiceConfiguration.Scope.service, .store].map { scope in
                refusedKey { _ = try ServiceConfiguration(environment: environment, for: scope) }
            }
            #expect(keys[0] != nil && keys[0] == keys[1])
        }
    }

    @Test func `the URLs of stores are never shown`() throws {
        let configuration = try ServiceConfiguration(environment: [
            "SYNHEART_AUTH_STORES_POSTGRESQL": "postgresql://u:pw1@p", "SYNHEART_AUTH_STORES_REDIS": "redis://:pw2@r",
            "SYNHEART_AUTH_SERVICE_KEY": Data(repeating: 3, count: 32).base64EncodedString(),
        ])
        let shown = JSONValue.array(configuration.all.map(\.shown)).text()
        #expect(!shown.contains("pw1") && !shown.contains("pw2"))
    }

    @Test func `variables without the prefix are ignored`() throws {
        _ = try ServiceConfiguration(environment: ["SYNHEART": "x", "SYNHEART_AUTH_CONFIG": "c.yaml", "HOME": "/"])
    }

    @Test func `a flag of the wrong type is refused by its name`() {
        #expect(refusedKey { _ = try ServiceConfiguration(flags: [.port: ["x"]]) } == "--port")
    }

    @Test func `a secret may be in a file of its own and is never shown`() throws {
        let url = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        let secret = Data(repeating: 3, count: 32).base64EncodedString()
        try Data((secret + "\n").utf8).write(to: url)
        defer { try? FileManager.default.removeItem(at: url) }
        for configuration in [
            try ServiceConfiguration(environment: ["SYNHEART_AUTH_SERVICE_KEY_FILE": url.path]),
            try ServiceConfiguration(file: file("service_key_file: \(url.path)")),
            try ServiceConfiguration(file: file("service_key: \(secret)")),
        ] {
            #expect(configuration.secret(.serviceKey) == secret)
            #expect(configuration.text(.serviceKey) == nil)
            #expect(try configuration.serviceKey != nil)
            let shown = configuration.all.first { $0.key == .serviceKey }?.shown
            #expect(shown == .string("(secret)"))
            #expect(!JSONValue.array(configuration.all.map(\.shown)).text().contains(secret))
        }
    }

    @Test func `a credential of systemd overrides the file, and a variable overrides it`() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        func key(_ byte: UInt8) -> String { Data(repeating: byte, count: 32).base64EncodedString() }
        try Data((key(1) + "\n").utf8).write(to: folder.appendingPathComponent("service_key"))
        try Data("127.0.0.9".utf8).write(to: folder.appendingPathComponent("server.host"))
        let environment = ["CREDENTIALS_DIRECTORY": folder.path]
        let configuration = try ServiceConfiguration(file: file("service_key: \(key(2))"), environment: environment)
        #expect(configuration.secret(.serviceKey) == key(1))
        #expect(configuration.text(.host) == "127.0.0.1", "only secrets come as credentials")
        let variable = environment.merging(["SYNHEART_AUTH_SERVICE_KEY": key(3)]) { $1 }
        #expect(try ServiceConfiguration(environment: variable).secret(.serviceKey) == key(3))
        let nowhere = ["CREDENTIALS_DIRECTORY": folder.path + "/nowhere"]
        #expect(try ServiceConfiguration(environment: nowhere).secret(.serviceKey) == nil)
        for name in ["service_key", "stores.redis"] {
            try Data("\n".utf8).write(to: folder.appendingPathComponent(name))
            #expect(refusedKey { _ = try ServiceConfiguration(environment: environment) } == name)
            try FileManager.default.removeItem(at: folder.appendingPathComponent(name))
        }
    }

    @Test func `doctor does without secrets that systemd hands to the unit alone`() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let apple = "providers: {apple_team_id: TEAMID1234, apple_key_id: KEY1234567}"
        let postgresql = "stores: {postgresql: postgresql://auth@db/auth}"
        func read(
            _ text: String, _ scope: ServiceConfiguration.Scope = .inspection, _ environment: [String: String] = [:]
        ) throws -> ServiceConfiguration {
            try ServiceConfiguration(
                file: file(text), environment: environment, for: scope, credentialStore: folder.path)
        }
        // A required value is missing, and systemd has no file for it. That is a fault.
        #expect(refusedKey { _ = try read(apple) } == "providers.apple_key")
        #expect(refusedKey { _ = try read(postgresql) } == "service_key")
        for name in ["providers.apple_key", "service_key"] {
            try Data("x".utf8).write(to: folder.appendingPathComponent("synheart-auth.\(name)"))
        }
        #expect(try read(apple).isWithheld(.appleKey) && !read(apple).isWithheld(.redis))
        #expect(try read(postgresql).isWithheld(.serviceKey))
        let set = ["SYNHEART_AUTH_SERVICE_KEY": Data(repeating: 1, count: 32).base64EncodedString()]
        #expect(try !read(postgresql, .inspection, set).isWithheld(.serviceKey))
        // Other missing values, here the team id, remain faults, because systemd has no file for them. For the service and
        // for a command on the store, every missing value is a fault.
        #expect(refusedKey { _ = try read("providers: {apple_key_id: KEY1234567}") } == "providers.apple_key")
        #expect(refusedKey { _ = try read(apple, .service) } == "providers.apple_key")
        #expect(refusedKey { _ = try read(postgresql, .store) } == "service_key")
        // If systemd passed credentials to this process, a value that is still missing is a fault.
        let handed = ["CREDENTIALS_DIRECTORY": folder.path + "/nowhere"]
        #expect(refusedKey { _ = try read(apple, .inspection, handed) } == "providers.apple_key")
    }

    @Test func `a list in the environment is separated by commas`() throws {
        let configuration = try ServiceConfiguration(
            environment: ["SYNHEART_AUTH_TRUSTED_PROXIES": "10.0.0.0/8, ::1", "SYNHEART_AUTH_HOST": "0.0.0.0"])
        #expect(try configuration.server.trustedProxies == TrustedProxies(["10.0.0.0/8", "::1"]))
    }

    @Test func `a service behind trusted proxies drains for 5 seconds, unless the settings say otherwise`() throws {
        for (text, seconds) in [
            ("", 0), ("server: {trusted_proxies: [10.0.0.1]}", 5), ("server: {trusted_proxies: []}", 0),
            ("server: {trusted_proxies: [10.0.0.1], drain_seconds: 0}", 0), ("server: {drain_seconds: 7}", 7),
        ] {
            let configuration = try ServiceConfiguration(file: file(text))
            #expect(try configuration.server.drain == .seconds(seconds), "\(text)")
            #expect(configuration.all.first { $0.key == .drainSeconds }?.shown == .integer(Int64(seconds)))
        }
    }

    @Test func `every key has a variable of its own and a default of its type`() throws {
        let variables = ConfigurationKey.allCases.map(\.variable)
        #expect(Set(variables).count == variables.count)
        let flags = ConfigurationKey.allCases.compactMap(\.flag)
        #expect(Set(flags).count == flags.count)
        for setting in try ServiceConfiguration().all where !setting.value.isNull {
            #expect(setting.key.kind.allows(setting.value), "\(setting.key)")
        }
    }
}
