import AuthContract
import AuthService
import Foundation
import StrictJSON
import Testing

@testable import AuthServer

/// Every key of the table has its effect, and the documentation names it. This file does not compile until a new key has a case.
@Suite struct EveryKeyTests {
    /// A file that sets the key to a value other than its default, and the expected result.
    private struct Case {
        let yaml: String
        let holds: (ServiceConfiguration) throws -> Bool

        init(_ yaml: String, _ holds: @escaping (ServiceConfiguration) throws -> Bool) {
            self.yaml = yaml
            self.holds = holds
        }
    }

    private static let otherSecret = Base64.standard.encode([UInt8](repeating: 4, count: 32))
    private static let secret = Base64.standard.encode([UInt8](repeating: 3, count: 32))
    private static let apple = "providers: {apple_team_id: T, apple_key_id: K, apple_key: P}"

    private func example(_ key: ConfigurationKey) -> Case {
        switch key {
        case .host: Case("server: {host: 127.0.0.9}") { try $0.server.host == "127.0.0.9" }
        case .port: Case("server: {port: 81}") { try $0.server.port == 81 }
        case .publicOrigin:
            Case("server: {public_origin: 'https://a.example'}") {
                try $0.publicOrigin == RequestOrigin("https://a.example")
            }
        case .otherOrigins:
            Case("server: {other_origins: ['https://a.example', 'http://auth.internal:8080']}") {
                try $0.otherOrigins == [RequestOrigin("https://a.example"), RequestOrigin("http://auth.internal:8080")]
            }
        // TLSTests covers the use and the reload of these files. Here, the certificate is refused without the key, and the key
        // without the certificate.
        case .tlsCertificate: Case("server: {tls_certificate: a.pem}") { _ in false }
        case .tlsKey: Case("server: {tls_key: b.pem}") { _ in false }
        case .trustedProxies:
            Case("server: {trusted_proxies: [10.0.0.0/8]}") {
                try $0.server.trustedProxies == TrustedProxies(["10.0.0.0/8"])
            }
        case .nat64Prefixes:
            Case("server: {nat64_prefixes: ['2001:db8:64::/96']}") {
                try $0.server.nat64 == NAT64Prefixes(["2001:db8:64::/96"])
            }
        case .insecureHTTP:
            Case("server: {insecure_http: true, host: 0.0.0.0}") { try $0.server.insecureHTTP }
        case .maximumConnections:
            Case("server: {maximum_connections: 7}") { try $0.server.maximumConnections == 7 }
        case .maximumConnectionsPerAddress:
            Case("server: {maximum_connections_per_address: 7}") { try $0.server.maximumConnectionsOfOnePeer == 7 }
        case .drainSeconds: Case("server: {drain_seconds: 3}") { try $0.server.drain == .seconds(3) }
        case .shutdownSeconds: Case("server: {shutdown_seconds: 3}") { try $0.server.shutdown == .seconds(3) }
        case .operationsHost: Case("operations: {host: '::1'}") { try $0.server.operations.host == "::1" }
        case .operationsPort: Case("operations: {port: 82}") { try $0.server.operations.port == 82 }
        case .operationsHosts: Case("operations: {hosts: [ops]}") { try $0.server.operations.hosts == ["ops"] }
        case .operationsTLSCertificate: Case("operations: {tls_certificate: a.pem}") { _ in false }
        case .operationsTLSKey: Case("operations: {tls_key: b.pem}") { _ in false }
        case .metricsHost:
            Case("metrics: {host: 0.0.0.0, port: 9090}") { try $0.server.metrics?.host == "0.0.0.0" }
        case .metricsPort:
            Case("metrics: {port: 9090}") {
                try $0.server.metrics == MetricsListenerSettings(host: "127.0.0.1", port: 9090)
            }
        case .operationsInsecureHTTP:
            Case("operations: {insecure_http: true, host: 0.0.0.0}") { try $0.server.operations.insecureHTTP }
        case .headerBytes: Case("limits: {header_bytes: 2048}") { try $0.server.limits.headerBlock == 2048 }
        case .deviceBodyBytes: Case("limits: {device_body_bytes: 2048}") { try $0.server.limits.deviceBody == 2048 }
        case .verifiedBodyBytes:
            Case("limits: {verified_body_bytes: 2048}") { try $0.server.limits.verifiedBody == 2048 }
        case .allBodiesBytes:
            Case("limits: {all_bodies_bytes: 2097152}") { try $0.server.limits.allBodies == 2_097_152 }
        case .idleSeconds: Case("limits: {idle_seconds: 3}") { try $0.server.deadlines.idle == .seconds(3) }
        case .headSeconds: Case("limits: {head_seconds: 3}") { try $0.server.deadlines.head == .seconds(3) }
        case .bodySeconds: Case("limits: {body_seconds: 3}") { try $0.server.deadlines.body == .seconds(3) }
        case .enrolmentBurst: Case("protection: {enrolment_burst: 3}") { $0.protection.enrolment.burst == 3 }
        case .enrolmentPerMinute:
            Case("protection: {enrolment_per_minute: 3}") { $0.protection.enrolment.perMinute == 3 }
        case .failedSignatureBurst:
            Case("protection: {failed_signature_burst: 3}") { $0.protection.failedSignatures.burst == 3 }
        case .failedSignaturePerMinute:
            Case("protection: {failed_signature_per_minute: 3}") { $0.protection.failedSignatures.perMinute == 3 }
        case .strangerBurst: Case("protection: {stranger_burst: 3}") { $0.protection.strangers.burst == 3 }
        case .strangerPerMinute:
            Case("protection: {stranger_per_minute: 3}") { $0.protection.strangers.perMinute == 3 }
        case .deviceBurst: Case("protection: {device_burst: 3}") { $0.protection.device.burst == 3 }
        case .devicePerMinute: Case("protection: {device_per_minute: 3}") { $0.protection.device.perMinute == 3 }
        case .rotationBurst: Case("protection: {rotation_burst: 3}") { $0.protection.rotations.burst == 3 }
        case .rotationPerHour: Case("protection: {rotation_per_hour: 3}") { $0.protection.rotations.perHour == 3 }
        case .cachedDevices: Case("protection: {cached_devices: 3}") { $0.protection.cachedDevices == 3 }
        case .appleTeamID: Case(Self.apple) { $0.text(.appleTeamID) == "T" }
        case .appleKeyID: Case(Self.apple) { $0.text(.appleKeyID) == "K" }
        case .appleKey: Case(Self.apple) { $0.secret(.appleKey) == "P" && $0.text(.appleKey) == nil }
        case .receiptsPerHour:
            Case("providers: {receipts_per_hour: 3}") { $0.receiptRefresh.requestsPerHour == 3 }
        case .claimsOfOneApp:
            Case("protection: {claims_of_one_app: 1000}") { $0.protection.claimsOfOneApp == 1000 }
        case .revocationsMaximumAge:
            Case("providers: {revocations_maximum_age_seconds: 3600}") { $0.revocationsMaximumAge == 3600 }
        case .appleURL: Case("providers: {apple_url: 'http://a'}") { $0.text(.appleURL) == "http://a" }
        case .googleURL: Case("providers: {google_url: 'http://a'}") { $0.text(.googleURL) == "http://a" }
        // AddedRootsTests of IntegrationTests covers the use and the reload of added roots.
        case .appleRoots: Case("providers: {apple_roots: a.pem}") { $0.text(.appleRoots) == "a.pem" }
        case .appleReceiptRoots:
            Case("providers: {apple_receipt_roots: a.pem}") { $0.text(.appleReceiptRoots) == "a.pem" }
        case .googleRoots: Case("providers: {google_roots: a.pem}") { $0.text(.googleRoots) == "a.pem" }
        case .revocationsDirectory:
            Case("providers: {revocations_directory: /r}") { $0.text(.revocationsDirectory) == "/r" }
        case .auditKeepDays: Case("audit: {keep_days: 400, archive: /a}") { $0.auditKeepDays == 400 }
        case .auditArchive: Case("audit: {archive: /a}") { $0.auditArchive?.path == "/a" }
        case .devicesForgetDays: Case("devices: {forget_days: 30}") { $0.devicesForgetDays == 30 }
        case .database: Case("database: other.sqlite") { $0.text(.database) == "other.sqlite" }
        case .postgresql:
            Case("stores: {postgresql: 'postgresql://p'}\nservice_key: \(Self.secret)") {
                $0.secret(.postgresql) == "postgresql://p" && $0.text(.postgresql) == nil
            }
        case .redis:
            Case("stores: {postgresql: 'postgresql://p', redis: 'redis://r'}\nservice_key: \(Self.secret)") {
                $0.secret(.redis) == "redis://r"
            }
        case .losslessFailover:
            Case("stores: {postgresql: 'postgresql://p', lossless_failover: true}\nservice_key: \(Self.secret)") {
                $0.isFailoverLossless
            }
        case .serviceKey:
            Case("service_key: [\(Self.secret), \(Self.otherSecret)]") { try $0.serviceKey?.checks.count == 2 }
        case .tracingCollector:
            Case("tracing: {otlp: 'http://127.0.0.1:4318'}") {
                try $0.tracing?.url == "http://127.0.0.1:4318/v1/traces"
            }
        case .tracingSample:
            Case("tracing: {otlp: 'https://c/a/v1/traces', sample: 0.25}") { configuration in
                let tracing = try configuration.tracing
                return tracing?.url == "https://c/a/v1/traces" && tracing?.share == 0.25
            }
        case .logLevel: Case("log_level: trace") { $0.text(.logLevel) == "trace" }
        }
    }

    @Test(arguments: ConfigurationKey.allCases) func `a key of a file reaches its setting`(key: ConfigurationKey) throws
    {
        let example = example(key)
        let file = try ConfigurationFile(path: "c.yaml", contents: Array(example.yaml.utf8))
        let partners: [ConfigurationKey: ConfigurationKey] = [
            .tlsCertificate: .tlsKey, .tlsKey: .tlsCertificate,
            .operationsTLSCertificate: .operationsTLSKey, .operationsTLSKey: .operationsTLSCertificate,
        ]
        if let partner = partners[key] {
            let error = #expect(throws: ConfigurationError.self) { try ServiceConfiguration(file: file) }
            #expect(error?.key == partner.rawValue)
            return
        }
        let configuration = try ServiceConfiguration(file: file)
        #expect(try example.holds(configuration))
        // The check fails for the default, so it shows that the file was read.
        #expect(try !example.holds(ServiceConfiguration()))
        #expect(configuration.all.first { $0.key == key }?.origin == .file("c.yaml"))
    }

    @Test(arguments: ConfigurationKey.allCases) func `the documentation names every key`(key: ConfigurationKey) throws {
        let catalog = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("Sources/AuthServer/AuthServer.docc")
        let page = key.row.isEveryday ? "Configuration.md" : "AdvancedSettings.md"
        let lines = try String(contentsOf: catalog.appendingPathComponent(page), encoding: .utf8).split(separator: "\n")
        let row = try #require(lines.first { $0.hasPrefix("| `\(key.rawValue)` |") }, "\(key.rawValue)")
        #expect(row.contains("`\(key.variable.dropFirst(ConfigurationKey.prefix.count))`"))
        if let flag = key.flag { #expect(row.contains(flag)) }
        if key.kind == .secret || key.kind == .secrets { #expect(row.contains("secret")) }
    }

    @Test func `the packaged file has the settings that everybody sets, at most 15, and no others`() throws {
        let everyday = ConfigurationKey.allCases.filter(\.row.isEveryday)
        #expect(everyday.count <= 15)
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("../../../Packaging/synheart-auth.yaml")
        let text = try String(contentsOf: file, encoding: .utf8).replacing(/(?m)^( *)#(?=[a-z])/) { $0.output.1 }
        let values = try ConfigurationFile(path: "c.yaml", contents: Array(text.utf8)).values
        #expect(Set(values.keys) == Set(everyday.map(\.rawValue)))
    }

    @Test func `a command reads only the settings of the store`() throws {
        let file = try ConfigurationFile(
            path: "c.yaml",
            contents: Array("server: {tls_key: /nowhere, host: 0.0.0.0}\ndatabase: d\nservice_key: \(Self.secret)".utf8)
        )
        let configuration = try ServiceConfiguration(file: file, for: .store)
        #expect(configuration.text(.database) == "d")
        #expect(try configuration.serviceKey != nil)
        #expect(configuration.all.map(\.key) == [.auditArchive, .database, .postgresql, .redis, .serviceKey])
        // A command refuses unknown keys too.
        #expect(throws: ConfigurationError.self) {
            try ServiceConfiguration(environment: ["SYNHEART_AUTH_PROT": "1"], for: .store)
        }
    }
}
