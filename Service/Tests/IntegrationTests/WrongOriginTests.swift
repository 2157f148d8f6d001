import AttestationTestKit
import AuthContract
import Foundation
import SoftwareDevice
import StrictJSON
import SynheartAuth
import Testing

/// A wrong `server.public_origin` does not cost any device its identity. The log names the received and the configured origin.
@Suite struct WrongOriginTests {
    let folder: TemporaryFolder
    var database: String { folder.path("db.sqlite") }
    private static let app = DevelopmentDevice.appID

    init() throws { folder = try TemporaryFolder() }

    private func registered(at service: RunningService) async throws -> SoftwareDevice {
        let device = try SoftwareDevice(
            directory: folder.path("device"),
            settings: .init(
                url: service.publicURL, appID: AppID(Self.app), iosAppID: "\(SoftwareDevice.team).\(Self.app)"),
            authority: try AuthorityFile.load(folder.path("authority.pem")))
        try await device.sdk.registerDevice(appID: Self.app)
        return device
    }

    private func provision() async throws {
        let example = try await Binary.run(["apps", "example", "--authority", folder.path("authority.pem")])
        // Without a host in `authorities`, the app cannot use scheme 2.
        let record = example.output.replacing(#""authorities": []"#, with: #""authorities": ["api.example.com"]"#)
        let added = try await Binary.run(["apps", "add", "--file", "-", "--database", database], input: record)
        try #require(added.status == 0, "\(added.errors)")
    }

    /// Checks that each call of the SDK fails with `MISDIRECTED_REQUEST`, and that none changes the device's state.
    private func expectRefused(_ device: SoftwareDevice, at origin: String) async throws {
        let before = try await device.sdk.state(appID: Self.app)
        func expectMisdirected(_ call: () async throws -> Void) async {
            let error = await #expect(throws: SynheartAuthError.self) { try await call() }
            #expect(error?.code == .server("MISDIRECTED_REQUEST"), "\(error.map { "\($0)" } ?? "none")")
            #expect(error?.recovery == SynheartAuthError.Recovery.none)
            #expect(error?.message.contains(origin) == true)
        }
        for _ in 1...3 {
            await expectMisdirected { _ = try await device.sdkOfSchemeTwo.deviceToken(appID: Self.app) }
            await expectMisdirected { _ = try await device.sdkOfSchemeTwo.rotateKey(appID: Self.app) }
            let status = TransportRequest(
                method: "GET", url: origin + Route.status.rawValue, headers: HeaderFields([]), body: [])
            await expectMisdirected { _ = try await device.sdkOfSchemeTwo.send(status, appID: Self.app) }
        }
        #expect(try await device.sdk.state(appID: Self.app) == before)
    }

    @Test(arguments: ["http://127.0.0.2:PORT", "http://localhost:9", "https://localhost:PORT"])
    func `a wrong public origin costs no identity`(configured: String) async throws {
        try await provision()
        let first = try await RunningService(database: database)
        let (origin, port) = (first.publicURL, first.port)
        let device = try await registered(at: first)
        _ = try await device.sdkOfSchemeTwo.deviceToken(appID: Self.app)
        let id = try await device.sdk.getDeviceId(appID: Self.app)
        #expect(first.stop() == 0)

        let wrong = configured.replacing("PORT", with: "\(port)")
        let log = folder.path("log")
        try Data().write(to: URL(fileURLWithPath: log))
        let errors = try FileHandle(forWritingTo: URL(fileURLWithPath: log))
        let second = try await RunningService(
            database: database, port: port, arguments: ["--public-origin", wrong], errors: errors)
        try await expectRefused(device, at: origin)
        #expect(second.stop() == 0)
        let lines = try String(contentsOfFile: log, encoding: .utf8).split(separator: "\n")
            .filter { $0.contains("MISDIRECTED_REQUEST") }
        #expect(lines.count == 9)
        for line in lines {
            let fields = try JSONValue(parsing: String(line)).object
            #expect(fields?["level"] == "warning")
            let reason = fields?["reason"]?.string ?? ""
            #expect(reason.contains("signed for \(origin)") && reason.contains(wrong), "\(reason)")
        }

        // Now the service is configured with the correct origin, in addition to the wrong one.
        let third = try await RunningService(
            database: database, port: port, arguments: ["--public-origin", wrong],
            environment: ["SYNHEART_AUTH_OTHER_ORIGINS": origin])
        _ = try await device.sdkOfSchemeTwo.deviceToken(appID: Self.app)
        _ = try await device.sdkOfSchemeTwo.rotateKey(appID: Self.app)
        #expect(try await device.sdk.getDeviceId(appID: Self.app) == id)
        #expect(third.stop() == 0)
    }
}
