import AuthContract
import Crypto
import Foundation
import StrictJSON
import Testing

/// The machine is lost under load, and the service continues on a database that was restored.
@Suite struct BackupTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private var database: String { folder.path("db.sqlite") }
    private var backup: String { folder.path("backup") }
    private var restored: String { folder.path("restored.sqlite") }

    /// `DevelopmentDevice.app` with a short future window. With it, the loss of history, for which the restored service
    /// refuses requests, ends soon.
    private static let app = DevelopmentDevice.app.replacing(
        #""build_channel""#,
        with: #""signature":{"future_window_seconds":5,"past_window_seconds":600},"build_channel""#)
    /// How far the clocks of the restored service and of its devices are ahead, in seconds. The restored service refuses requests that are
    /// dated up to 300 s after the restore. With clocks that are 298 s ahead, the test waits only for the last seconds of that time.
    private static let later: Int64 = 298

    private func restore(key: String) async throws -> Binary.Result {
        try await Binary.run(
            ["restore", backup, "--database", restored, "--json"], environment: ["SYNHEART_AUTH_SERVICE_KEY": key])
    }

    private func status(of device: DevelopmentDevice, _ service: RunningService) async throws -> WireResponse? {
        await WireConnection.exchange(port: service.port, try device.request(.status, ahead: Self.later))
    }

    /// Sends requests of a device until the service is gone. Returns the number of accepted ones.
    private static func use(_ device: DevelopmentDevice, port: Int) async throws -> Int {
        var accepted = 0
        while let answer = await WireConnection.exchange(port: port, try device.request(.status)) {
            if answer.status == 200 { accepted += 1 }
            try await Task.sleep(for: .milliseconds(5))
        }
        return accepted
    }

    private func register(_ service: RunningService) async throws -> DevelopmentDevice {
        try #require(await DevelopmentDevice.register(.init(), port: service.port))
    }

    @Test func `a killed service continues from its backup, refuses what it cannot know, and says what that is`()
        async throws
    {
        let fixture = try await ServiceFixture(stores: ["--database", database], app: Self.app)
        let service = try await fixture.start()
        let (known, revoked) = (try await register(service), try await register(service))
        var rotated = try await register(service)

        let load = Task { [known, revoked] in
            async let first = Self.use(known, port: service.port)
            async let second = Self.use(revoked, port: service.port)
            return try await first + second
        }
        let written = try await Binary.run(["backup", backup, "--database", database, "--json"])
        #expect(written.status == 0, "\(written.errors)")
        let contents = try #require(try JSONValue(parsing: written.output).object)
        #expect(contents["rows"]?.object?["devices"]?.integer == 3, "\(written.output)")

        // After the backup: a revocation, a registration, a rotation, and a request that will be replayed.
        let revocation = await WireConnection.exchange(
            port: service.operationsPort,
            fixture.administer(
                "POST", "/apps/\(DevelopmentDevice.appID)/devices/\(revoked.id.text)/revoke",
                body: JSONObject([("reason", "stolen")])))
        #expect(revocation?.status == 200, "\(revocation?.text ?? "no answer")")
        let late = try await register(service)
        let newKey = P256.Signing.PrivateKey()
        let rotation = await WireConnection.exchange(port: service.port, try rotated.rotation(to: newKey))
        #expect(rotation?.status == 200, "\(rotation?.text ?? "no answer")")
        rotated.key = newKey
        let captured = try known.request(.status, ahead: 4)
        #expect(await WireConnection.exchange(port: service.port, captured)?.status == 200)
        service.kill()
        #expect(try await load.value > 0)

        let key = try String(contentsOfFile: database + ".key", encoding: .utf8)
            .trimmingCharacters(in: .whitespacesAndNewlines)
        let wrong = try await restore(key: Data(repeating: 9, count: 32).base64EncodedString())
        #expect(wrong.status == 2 && wrong.errors.contains("was sealed with the service key"), "\(wrong.errors)")
        let result = try await restore(key: key)
        #expect(result.status == 0, "\(result.errors)")
        let told = try #require(try JSONValue(parsing: result.output).object)
        #expect(told["unknown_seconds"]?.integer.map { (0...600).contains($0) } == true, "\(result.output)")
        for what in ["claims", "revocations", "rotations", "registrations"] {
            #expect(told["unknown"]?.object?[what]?.string != nil, "\(result.output)")
        }
        let again = try await restore(key: key)
        #expect(again.status == 2 && again.errors.contains("exists"), "\(again.errors)")

        let new = try await fixture.start(
            stores: ["--database", restored],
            environment: try ClusterTests.clock(apartBy: Int(Self.later))
                .merging(["SYNHEART_AUTH_SERVICE_KEY": key]) { $1 })
        let replay = await WireConnection.exchange(port: new.port, captured)
        #expect(replay?.code == "SERVICE_UNAVAILABLE", "\(replay?.text ?? "no answer")")
        let limit = ContinuousClock.now + .seconds(30)
        while try await status(of: known, new)?.status != 200, .now < limit {
            try await Task.sleep(for: .milliseconds(250))
        }
        #expect(try await status(of: known, new)?.status == 200)
        #expect(await WireConnection.exchange(port: new.port, captured)?.code == "SERVICE_UNAVAILABLE")
        #expect(try await status(of: revoked, new)?.json["status"]?.string == "registered")
        #expect(try await status(of: late, new)?.code == "NOT_REGISTERED")
        #expect(try await status(of: rotated, new)?.code == "INVALID_SIGNATURE")
        _ = try await register(new)
        let head = try #require(contents["audit_head"]?.string)
        let audit = await WireConnection.exchange(
            port: new.operationsPort, fixture.administer("GET", "/audit/verify?head=\(head)"))
        #expect(audit?.json["intact"]?.bool == true, "\(audit?.text ?? "no answer")")
        #expect(new.stop() == 0)
    }

    @Test func `a machine whose clock is before the backup restores nothing, and says so`() async throws {
        _ = try await ServiceFixture(database: database)
        let key = try String(contentsOfFile: database + ".key", encoding: .utf8)
            .trimmingCharacters(in: .whitespacesAndNewlines)
        #expect(try await Binary.run(["backup", backup, "--database", database]).status == 0)
        let hour = try ClusterTests.clock(apartBy: -3600).merging(["SYNHEART_AUTH_SERVICE_KEY": key]) { $1 }
        let result = try await Binary.run(
            [Binary.url.path, "restore", backup, "--database", restored], environment: hour,
            of: URL(fileURLWithPath: "/usr/bin/env"))
        #expect(result.status == 2 && result.errors.contains("set it right"), "\(result.errors)")
        #expect(!FileManager.default.fileExists(atPath: restored))
        #expect(try await restore(key: key).status == 0)
    }

    @Test func `a damaged backup and an existing file are refused, and nothing is written`() async throws {
        _ = try await ServiceFixture(database: database)
        let key = try String(contentsOfFile: database + ".key", encoding: .utf8)
            .trimmingCharacters(in: .whitespacesAndNewlines)
        let command = ["backup", backup, "--database", database]
        #expect(try await Binary.run(command).status == 0)
        #expect(try FileManager.default.attributesOfItem(atPath: backup)[.posixPermissions] as? Int == 0o600)
        let again = try await Binary.run(command)
        #expect(again.status == 2 && again.errors.contains("exists"), "\(again.errors)")
        var bytes = try Data(contentsOf: URL(fileURLWithPath: backup))
        bytes[bytes.count - 1] ^= 1
        try bytes.write(to: URL(fileURLWithPath: backup))
        let result = try await restore(key: key)
        #expect(result.status == 1 && result.errors.contains("damaged"), "\(result.errors)")
        let left = try FileManager.default.contentsOfDirectory(atPath: folder.path)
        #expect(!left.contains { $0.hasPrefix("restored") || $0.hasPrefix("backup.") }, "\(left)")
    }
}
