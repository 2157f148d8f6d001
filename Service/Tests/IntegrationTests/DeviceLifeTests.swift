import AttestationTestKit
import AuthContract
import Foundation
import SoftwareDevice
import StrictJSON
import SynheartAuth
import Testing

/// All parts together: the server binary as a process, the SDK over HTTP, and the command line.
@Suite struct DeviceLife {
    let folder: TemporaryFolder
    let app = "com.example.app"

    init() throws { folder = try TemporaryFolder() }

    private var authorities: [String] {
        ["--authority", folder.path("authority.pem")]
    }

    /// - Parameter asserting: the paths on which iOS devices need assertions, as JSON.
    private func provision(asserting paths: String = "[]") async throws {
        let example = try await Binary.run(["apps", "example"] + authorities)
        #expect(example.status == 0, "\(example.errors)")
        let record = example.output.replacingOccurrences(
            of: #""assertions_required_on": []"#, with: #""assertions_required_on": \#(paths)"#
        ).replacingOccurrences(of: #""authorities": []"#, with: #""authorities": ["api.example.com"]"#)
        let added = try await Binary.run(
            ["apps", "add", "--file", "-", "--database", folder.path("db.sqlite")], input: record)
        #expect(added.status == 0, "\(added.errors)")
    }

    private func device(_ service: RunningService, _ name: String = "device") throws -> SoftwareDevice {
        try SoftwareDevice(
            directory: folder.path(name),
            settings: .init(url: service.publicURL, appID: AppID(app), iosAppID: "\(SoftwareDevice.team).\(app)"),
            authority: try AuthorityFile.load(folder.path("authority.pem")))
    }

    /// The service's answer to a signed status request of the device.
    private func status(
        _ device: SoftwareDevice, _ headers: SignedHeaders? = nil
    ) async throws -> (Int, JSONObject) {
        let signed: SignedHeaders
        if let headers {
            signed = headers
        } else {
            signed = try await device.sdk.signRequest(appID: app, method: "GET", path: Route.status.rawValue)
        }
        let response = try await DefaultTransport().send(
            TransportRequest(
                method: "GET", url: device.settings.url + Route.status.rawValue,
                headers: HeaderFields(signed.fields.map { ($0.name, $0.value) }), body: []))
        return (response.status, try JSONValue(parsing: response.body).object ?? JSONObject())
    }

    @Test func `a registered device survives the kill of the service`() async throws {
        try await provision()
        let service = try await RunningService(database: folder.path("db.sqlite"))
        let device = try device(service)
        let registration = try await device.sdk.registerDevice(appID: app)
        #expect(registration.status == .registered)
        service.kill()

        let restarted = try await RunningService(database: folder.path("db.sqlite"), port: service.port)
        let (code, body) = try await status(device)
        #expect(code == 200)
        #expect(body["device_id"]?.string == registration.deviceId)
        #expect(try await device.sdk.registerDevice(appID: app).status == .alreadyRegistered)
        #expect(restarted.stop() == 0)
    }

    @Test func `a replay is refused also after the kill of the service`() async throws {
        try await provision()
        let service = try await RunningService(database: folder.path("db.sqlite"))
        let device = try device(service)
        try await device.sdk.registerDevice(appID: app)
        let headers = try await device.sdk.signRequest(appID: app, method: "GET", path: Route.status.rawValue)
        #expect(try await status(device, headers).0 == 200)
        #expect(try await status(device, headers).1["error"]?.string == "NONCE_REPLAY")
        service.kill()

        let restarted = try await RunningService(database: folder.path("db.sqlite"), port: service.port)
        let (code, body) = try await status(device, headers)
        #expect(code == 409)
        #expect(body["error"]?.string == "NONCE_REPLAY")
        #expect(restarted.stop() == 0)
    }

    @Test func `rotation and revocation on the command line take effect at once`() async throws {
        try await provision()
        let service = try await RunningService(database: folder.path("db.sqlite"))
        let arguments = ["--dir", folder.path("cli"), "--authority", folder.path("authority.pem"), "--json"]
        let registered = try await Binary.run(
            ["device", "register", "--url", service.publicURL, "--app", app] + arguments)
        #expect(registered.status == 0, "\(registered.errors)")
        let id = try #require(try JSONValue(parsing: registered.output).object?["device_id"]?.string)

        let before = try await Binary.run(["device", "status"] + arguments)
        let rotated = try await Binary.run(["device", "rotate"] + arguments)
        #expect(rotated.status == 0, "\(rotated.errors)")
        let after = try await Binary.run(["device", "status"] + arguments)
        let thumbprints = try [before, after].map {
            try JSONValue(parsing: $0.output).object?["key_thumbprint"]?.string
        }
        #expect(thumbprints[0] != nil && thumbprints[1] != nil && thumbprints[0] != thumbprints[1])

        let revoked = try await Binary.run(
            ["devices", "revoke", "--app", app, "--database", folder.path("db.sqlite"), id, "--json"])
        #expect(revoked.status == 0, "\(revoked.errors)")
        // The running service notices the revocation within a second. Until then, ask repeatedly.
        let deadline = ContinuousClock.now + .seconds(20)
        var refused = try await Binary.run(["device", "status"] + arguments)
        while refused.status == 0, ContinuousClock.now < deadline {
            refused = try await Binary.run(["device", "status"] + arguments)
        }
        #expect(refused.status == 1)
        #expect(refused.errors.contains("DEVICE_REVOKED"))
        let again = try await Binary.run(
            ["devices", "revoke", "--app", app, "--database", folder.path("db.sqlite"), id])
        #expect(again.status == 0, "what is revoked stays so: \(again.errors)")
    }

    @Test func `curl takes the headers that sign prints`() async throws {
        try await provision()
        let service = try await RunningService(database: folder.path("db.sqlite"))
        let arguments = ["--dir", folder.path("cli"), "--authority", folder.path("authority.pem")]
        _ = try await Binary.run(["device", "register", "--url", service.publicURL, "--app", app] + arguments)
        let signed = try await Binary.run(
            ["device", "sign", "--method", "GET", "--path", Route.status.rawValue] + arguments)
        #expect(signed.status == 0, "\(signed.errors)")
        let lines = signed.output.split(separator: "\n")
        #expect(lines.count == 6)
        #expect(lines.allSatisfy { $0.contains(": ") })
    }

    @Test func `a device that has signed under scheme 2 goes on, and signs under scheme 1 no more`()
        async throws
    {
        try await provision()
        let service = try await RunningService(database: folder.path("db.sqlite"))
        let arguments = ["--dir", folder.path("cli"), "--authority", folder.path("authority.pem")]
        _ = try await Binary.run(["device", "register", "--url", service.publicURL, "--app", app] + arguments)
        let url = service.publicURL + Route.status.rawValue
        for (scheme, lines) in [([], 6), (["--scheme", "2", "--url", url], 5), (["--url", url], 5)] {
            let signed = try await Binary.run(["device", "sign"] + scheme + arguments)
            #expect(signed.status == 0 && signed.errors.isEmpty, "\(signed.errors)")
            #expect(signed.output.split(separator: "\n").count == lines, "\(signed.output)")
        }
        let below = try await Binary.run(["device", "sign"] + arguments)
        #expect(below.status != 0 && below.errors.contains("scheme 2"), "\(below.errors)")
        for command in ["status", "rotate", "status", "reset"] {
            let done = try await Binary.run(["device", command] + arguments)
            #expect(done.status == 0 && done.errors.isEmpty, "\(command): \(done.errors)")
        }
    }

    @Test func `where an app demands assertions, the software device sends them`() async throws {
        try await provision(asserting: #"["/"]"#)
        let service = try await RunningService(database: folder.path("db.sqlite"))
        let arguments = ["--dir", folder.path("cli"), "--authority", folder.path("authority.pem")]
        _ = try await Binary.run(["device", "register", "--url", service.publicURL, "--app", app] + arguments)
        for (more, lines) in [([], 6), (["--assertion"], 7)] {
            let signed = try await Binary.run(["device", "sign"] + more + arguments)
            #expect(signed.output.split(separator: "\n").count == lines, "\(signed.output)\(signed.errors)")
        }
        let url = service.publicURL + Route.status.rawValue
        let commands = [
            ["status"], ["rotate"], ["status"], ["sign", "--scheme", "2", "--url", url, "--assertion"], ["status"],
            ["reset"],
        ]
        for command in commands {
            let done = try await Binary.run(["device"] + command + arguments)
            #expect(done.status == 0 && done.errors.isEmpty, "\(command): \(done.errors)")
        }
    }

    @Test func `a simulated Android phone works too`() async throws {
        try await provision()
        let service = try await RunningService(database: folder.path("db.sqlite"))
        let arguments = ["--dir", folder.path("cli"), "--json"] + authorities
        let registered = try await Binary.run(
            ["device", "register", "--url", service.publicURL, "--app", app, "--platform", "android"] + arguments)
        #expect(registered.status == 0, "\(registered.errors)")
        let status = try JSONValue(parsing: try await Binary.run(["device", "status"] + arguments).output)
        #expect(status.object?["platform"] == "android")
        // The example's record names no status list. Without a status list, a certificate chain does not raise the assurance.
        #expect(status.object?["assurance"]?.object?["key"] == "app-vouched")
        #expect(status.object?["assurance"]?.object?["labels"] == ["MEETS_DEVICE_INTEGRITY"])
    }

    @Test func `the demo runs to its end`() async throws {
        let demo = try await Binary.run(["demo"])
        #expect(demo.status == 0 && demo.errors.isEmpty, "\(demo.errors)")
        for step in [
            "NONCE_REPLAY", "INVALID_SIGNATURE", "DEVICE_REVOKED", "app: test, key: strongbox",
            "labels                   MEETS_DEVICE_INTEGRITY", "ATTESTATION_FAILED", "As it must be.",
        ] {
            #expect(demo.output.contains(step))
        }
    }
}
