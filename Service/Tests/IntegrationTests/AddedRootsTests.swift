import AttestationTestKit
import AuthContract
import Foundation
import SoftwareDevice
import StrictJSON
import Testing

/// A vendor's new root on channel `production`. The service refuses attestations under it, and counts them. After the operator
/// adds the root and sends SIGHUP, the same process accepts them and labels the devices.
@Suite struct AddedRootsTests {
    let folder: TemporaryFolder
    private let app = "com.example.app"

    init() throws { folder = try TemporaryFolder() }

    private func write(_ text: String, _ name: String) throws -> String {
        let path = folder.path(name)
        try Data(text.utf8).write(to: URL(fileURLWithPath: path))
        return path
    }

    /// The record of `apps example` for production: it trusts only Apple and Google.
    private func record() async throws -> String {
        let example = try await Binary.run(["apps", "example", "--app", app, "--authority", folder.path("vendor.pem")])
        var record = try #require(try JSONValue(parsing: example.output).object)
        record["build_channel"] = "production"
        record["development_integrity_allowed"] = false
        var (ios, android) = (
            try #require(record["ios"]?.object), try #require(record["android"]?.object)
        )
        ios["trust_anchors"] = []
        android["trust_anchors"] = []
        android["proof"] = "both"
        var attestation = try #require(android["key_attestation"]?.object)
        attestation["status_list"] = "none"
        android["key_attestation"] = .object(attestation)
        (record["ios"], record["android"]) = (.object(ios), .object(android))
        return JSONValue.object(record).text()
    }

    private func register(_ platform: String, _ name: String, at service: RunningService) async throws -> Int32 {
        try await Binary.run([
            "device", "register", "--url", service.publicURL, "--app", app, "--platform", platform, "--dir",
            folder.path(name), "--authority", folder.path("vendor.pem"),
        ]).status
    }

    /// Polls until the condition holds, for at most 20 seconds.
    private func eventually(_ holds: () async throws -> Bool) async throws -> Bool {
        let deadline = ContinuousClock.now + .seconds(20)
        while ContinuousClock.now < deadline {
            if try await holds() { return true }
            try await Task.sleep(for: .milliseconds(20))
        }
        return false
    }

    private func count(_ provider: String, _ service: RunningService) async -> Int? {
        let request = WireRequest(method: "GET", target: "/metrics")
        let text = await WireConnection.exchange(port: service.operationsPort, request)?.text ?? ""
        let line = text.split(separator: "\n").first {
            $0.hasPrefix("synheart_untrusted_roots_total{provider=\"\(provider)\"} ")
        }
        return line?.split(separator: " ").last.flatMap { Int($0) }
    }

    @Test func `a new root is refused and counted, added by SIGHUP, and accepted with its label`() async throws {
        let fixture = try await ServiceFixture(
            stores: ["--database", folder.path("db.sqlite")], app: try await record())
        let (configuration, log) = (try write("log_level: info\n", "service.yaml"), try write("", "log"))
        let errors = try FileHandle(forWritingTo: URL(fileURLWithPath: log))
        let service = try await fixture.start(arguments: ["--config", configuration], errors: errors)
        func logged() -> String { (try? String(contentsOfFile: log, encoding: .utf8)) ?? "" }
        func reload(_ yaml: String, until message: String) async throws {
            let before = logged().utf8.count
            _ = try write(yaml, "service.yaml")
            service.signal(SIGHUP)
            let isLogged = try await eventually { logged().dropFirst(before).contains(message) }
            #expect(isLogged, "\(logged())")
        }

        #expect(try await register("ios", "refused iphone", at: service) == 1)
        #expect(try await register("android", "refused android", at: service) == 1)
        #expect(await count("app_attest", service) ?? 0 >= 1)
        #expect(await count("key_attestation", service) ?? 0 >= 1)
        #expect(logged().contains("an attestation leads to an unknown root"))

        let apple = try AuthorityFile.load(folder.path("vendor.pem"))
        let google = try AuthorityFile.google(folder.path("vendor.google.json"))
        let end = try #require(apple.rootsPEM.range(of: "-----END CERTIFICATE-----\n")?.upperBound)
        let files = [
            try write(String(apple.rootsPEM[..<end]), "apple.pem"),
            try write(String(apple.rootsPEM[end...]), "receipts.pem"),
            try write(try google.rootsPEM(), "google.pem"), try write("none", "broken.pem"),
        ]
        // A file without a root changes nothing.
        try await reload("providers: {apple_roots: \(files[3])}", until: "nothing changed")
        #expect(logged().contains("providers.apple_roots"))
        #expect(try await register("ios", "still refused", at: service) == 1)

        let settings = """
            providers: {apple_roots: \(files[0]), apple_receipt_roots: \(files[1]), google_roots: \(files[2])}
            """
        try await reload(settings, until: "roots were added")
        for platform in [("ios", "iphone"), ("android", "android")] {
            #expect(try await register(platform.0, platform.1, at: service) == 0, "\(platform) \(logged())")
        }
        let listed = try await Binary.run(["devices", "list", "--app", app, "--json"] + fixture.stores)
        #expect(listed.output.components(separatedBy: "\"root:").count == 3, "\(listed.output)")
        #expect(!listed.output.contains("\"test\""))

        // `config check` and `doctor` name the added roots, and the audit log has the change.
        let checked = try await Binary.run(["config", "check", "--config", configuration] + fixture.stores)
        #expect(checked.status == 0 && checked.output.contains("is trusted as root:"), "\(checked.errors)")
        #expect(checked.output.contains("Test App Attestation Root CA") && checked.output.contains("SHA-256"))
        let doctor = try await Binary.run(["doctor", "--config", configuration] + fixture.stores)
        #expect(doctor.output.contains("providers.google_roots") && doctor.output.contains("trusted as root:"))
        let audited = try await Binary.run(["audit", "list", "--json"] + fixture.stores)
        #expect(audited.output.contains("added_roots"), "\(audited.errors)")

        try await reload("log_level: info\n", until: "added roots were removed")
        #expect(try await register("ios", "another", at: service) == 1)
        #expect(service.stop() == 0)
    }

    @Test func `a root that has expired keeps the service neither from starting nor from a reload`() async throws {
        let expired = try SelfSigned.write(in: folder, days: -1, certificateAlone: true, isAuthority: true)
        let fixture = try await ServiceFixture(
            stores: ["--database", folder.path("db.sqlite")], app: try await record())
        let yaml = "providers: {google_roots: \(expired.certificate)}\n"
        let (configuration, log) = (try write(yaml, "service.yaml"), try write("", "log"))
        let checked = try await Binary.run(["config", "check", "--config", configuration] + fixture.stores)
        #expect(checked.status != 0 && checked.errors.contains("expired at"), "\(checked.errors)")

        let errors = try FileHandle(forWritingTo: URL(fileURLWithPath: log))
        let service = try await fixture.start(arguments: ["--config", configuration], errors: errors)
        func logged() -> String { (try? String(contentsOfFile: log, encoding: .utf8)) ?? "" }
        let warning = "expired roots are not trusted"
        #expect(try await eventually { logged().contains(warning) }, "\(logged())")
        _ = try write(yaml + "log_level: debug\n", "service.yaml")
        service.signal(SIGHUP)
        #expect(try await eventually { logged().contains("the configuration was read again") }, "\(logged())")
        #expect(logged().components(separatedBy: warning).count == 3)
        #expect(service.stop() == 0)
    }

    @Test func `the service does not start with a file that is no root`() async throws {
        let broken = try write("none", "broken.pem")
        for key in ["APPLE_ROOTS", "APPLE_RECEIPT_ROOTS", "GOOGLE_ROOTS"] {
            let variables = ["SYNHEART_AUTH_PROVIDERS_\(key)": broken]
            for command in [["serve", "--port", "0", "--operations-port", "0"], ["config", "check"]] {
                let result = try await Binary.run(
                    command + ["--database", folder.path("db.sqlite")], environment: variables)
                #expect(result.status != 0 && result.errors.contains("providers.\(key.lowercased())"))
                #expect(result.errors.contains("-----BEGIN CERTIFICATE-----"), "\(result.errors)")
            }
        }
    }
}
