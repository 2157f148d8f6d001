import ArgumentParser
import AttestationTestKit
import AuthContract
import AuthServer
import AuthService
import Foundation
import Logging
import SQLiteStores
import SoftwareDevice
import StrictJSON
import SynheartAuth

/// One device's whole life against a fresh service.
struct DemoCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "demo", abstract: "Watch one device's whole life, step by step.",
        discussion: """
            Starts a service with a database of its own on a free port, and runs the real SDK against it over HTTP. Apple is
            played by the test kit. Nothing is left behind unless --keep names a folder. Exit code 0: every step went as it must.
            """)
    @Option(help: "Keep database, authority and device in this folder.") var keep: String?

    func run() async throws {
        try await reporting {
            LoggingSystem.bootstrap { _ in SwiftLogNoOpLogHandler() }
            let folder = keep ?? NSTemporaryDirectory() + "synheart-auth-demo-\(RandomUUID(from: SystemRandom()).text)"
            try FileManager.default.createDirectory(
                atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
            defer { if keep == nil { try? FileManager.default.removeItem(atPath: folder) } }
            try await DemoStage.open(in: folder) { stage in try await stage.play() }
        }
    }
}

/// A running service, a provisioned app and a device.
struct DemoStage {
    private let appID: AppID
    private let service: AuthService
    private let device: SoftwareDevice
    private let http: DeviceHTTP
    private let addresses: AuthServer.Addresses

    /// Starts the service in `folder`, provisions the app, and stops the service when `play` returns.
    static func open(in folder: String, _ play: @escaping @Sendable (DemoStage) async throws -> Void) async throws {
        let appID = try AppID("com.example.app")
        let authority = try AuthorityFile.load(folder + "/synheart-authority.pem")
        let stores = try SQLiteStores(path: folder + "/demo.sqlite")
        let service = AuthService(
            stores: stores.all, key: try ServiceKeyFile(database: folder + "/demo.sqlite").load())
        _ = try await service.apps.add(
            AppRecord(
                JSONFields(.object(AppsCommand.Example.record(app: appID, anchors: authority.rootsPEM)))), actor: "demo"
        )
        var settings = ServerSettings()
        (settings.port, settings.operations.port) = (0, 0)
        let server = AuthServer(
            service: service, stores: stores.all, settings: settings, logger: Logger(label: "demo"))
        try await withThrowingTaskGroup(of: Void.self) { group in
            let (ready, announce) = AsyncStream.makeStream(of: AuthServer.Addresses.self)
            group.addTask { try await server.run(stopsOnSignals: false) { announce.yield($0) } }
            group.addTask {
                guard let addresses = await ready.first(where: { _ in true }) else { return }
                let device = try SoftwareDevice(
                    directory: folder + "/device",
                    settings: .init(
                        url: addresses.publicURL, appID: appID, iosAppID: "\(SoftwareDevice.team).\(appID)"),
                    authority: authority)
                try await play(
                    DemoStage(
                        appID: appID, service: service, device: device, http: DeviceHTTP(device), addresses: addresses))
            }
            // The stage is over when the play is, or when the service cannot start.
            try await group.next()
            group.cancelAll()
        }
        await stores.close()
    }

    func play() async throws {
        title("A service, an app, a phone")
        fact("service", "\(addresses.publicURL)  (SQLite, nothing else)")
        fact("app", "\(appID), channel staging, trusting a test Apple of its own")

        title("1. Register: challenge, key, attestation")
        let registration = try await asking { () async throws(SynheartAuthError) in
            try await device.sdk.registerDevice(appId: appID.text)
        }
        let id = try DeviceID(registration.deviceId)
        guard let row = try await service.administration.show(id, of: appID) else {
            throw CommandFailure(.refused, "the service has no such device")
        }
        fact("device id", "\(id), \(registration.status.rawValue)")
        fact("key", "P-256, thumbprint \(row.key.thumbprint)")
        fact("assurance", "app: \(row.assurance.app.rawValue), key: \(row.assurance.key.rawValue)")
        fact("receipt", row.appAttest?.receiptOutcome ?? "none")

        title("2. Sign a request; the service verifies it")
        let headers = try await http.sign(.status)
        for header in headers { fact(header.name, header.value) }
        try await expect(200, "verified", .status, headers)

        title("3. Replay it: refused")
        try await expect(409, "NONCE_REPLAY", .status, headers)
        note("with a fresh nonce, which scheme 1 does not sign: refused all the same, by the signature's r value")
        try await expect(
            409, "NONCE_REPLAY", .status,
            headers.map { header in
                header.name == HeaderName.nonce ? (header.name, RandomUUID(from: SystemRandom()).text) : header
            })
        note("with another path under the same signature")
        try await expect(401, "INVALID_SIGNATURE", .device, headers)

        title("4. Rotate the key")
        let rotation = try await asking { () async throws(SynheartAuthError) in
            try await device.sdk.rotateKey(appId: appID.text)
        }
        fact("effective at", rotation.effectiveAt.iso8601)
        fact("key", try await service.administration.show(id, of: appID)?.key.thumbprint ?? "?")
        try await expect(200, "signed by the new key: verified", .status, try await http.sign(.status))

        title("5. Revoke the device")
        guard try await service.administration.revoke(id, of: appID, reason: "lost phone", actor: "demo") else {
            throw CommandFailure(.refused, "not revoked")
        }
        try await expect(403, "DEVICE_REVOKED", .status, try await http.sign(.status))
        title("As it must be.")
    }

    private func expect(
        _ status: Int, _ meaning: String, _ route: Route, _ headers: [(name: String, value: String)]
    ) async throws {
        let answer = try await http.send(route, headers: headers)
        let isExpected = answer.status == status && (answer.code == nil || answer.code == meaning)
        fact("\(route.method) \(route.rawValue)", "\(answer.status) \(answer.code ?? meaning)")
        guard isExpected else { throw CommandFailure(.refused, "expected \(status) \(meaning)") }
    }

    private func title(_ text: String) { print("\n\(text)") }
    private func note(_ text: String) { print("   \(text)") }
    private func fact(_ name: String, _ value: String) { print("   \(name.padded(to: 24)) \(value)") }
}
