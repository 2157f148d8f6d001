import AttestationTestKit
import AuthContract
import Foundation
import SoftwareDevice
import StrictJSON
import SynheartAuth
import Testing

/// A device that has signed under scheme 2 cannot go back to scheme 1. So the SDK's own requests must use scheme 2 too.
@Suite struct SchemeFloor {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private func running(
        _ signature: String, _ body: (RunningService, SoftwareDevice) async throws -> Void
    ) async throws {
        let example = try await Binary.run(["apps", "example", "--authority", folder.path("authority.pem")])
        var record = try #require(JSONValue(parsing: example.output).object)
        record["signature"] = try JSONValue(parsing: signature)
        let added = try await Binary.run(
            ["apps", "add", "--file", "-", "--database", folder.path("db.sqlite")],
            input: JSONValue.object(record).text())
        try #require(added.status == 0, "\(added.errors)")
        let service = try await RunningService(database: folder.path("db.sqlite"))
        let app = DevelopmentDevice.appID
        let device = try SoftwareDevice(
            directory: folder.path("device"),
            settings: .init(url: service.publicURL, appID: AppID(app), iosAppID: "\(SoftwareDevice.team).\(app)"),
            authority: try AuthorityFile.load(folder.path("authority.pem")))
        try await device.sdk.registerDevice(appID: app)
        try await body(service, device)
        #expect(service.stop() == 0)
    }

    private func expectWholeLife(_ device: SoftwareDevice) async throws {
        let app = DevelopmentDevice.appID
        _ = try await device.sdk.deviceToken(appID: app)
        _ = try await device.sdk.rotateKey(appID: app)
        _ = try await device.sdk.deviceToken(appID: app)
        try await device.sdk.resetDeviceIdentity(appID: app, reason: .userRequested)
    }

    @Test func `an app that accepts only scheme 2 is served from the first request on`() async throws {
        try await running(#"{"minimum_scheme": 2}"#) { _, device in try await expectWholeLife(device) }
    }

    @Test func `where the app has no authorities, a device that has scheme 2 signs its own requests under scheme 1`()
        async throws
    {
        try await running("{}") { service, device in
            let signed = try await device.sdkOfSchemeTwo.sign(
                appID: DevelopmentDevice.appID, method: "GET", url: service.publicURL + Route.status.rawValue)
            #expect(signed.fields.contains { $0.name == HeaderName.signatureInput })
            try await expectWholeLife(device)
        }
    }

    @Test func `after one scheme 2 request everything else still works`() async throws {
        try await running(#"{"authorities": ["api.example.com"]}"#) { service, device in
            let status = TransportRequest(
                method: "GET", url: service.publicURL + Route.status.rawValue, headers: HeaderFields([]), body: [])
            let below = try await device.sdk.signRequest(
                appID: DevelopmentDevice.appID, method: "GET", path: Route.status.rawValue)
            let answer = try await device.sdkOfSchemeTwo.send(status, appID: DevelopmentDevice.appID)
            #expect(answer.status == 200)
            let refused = try await DefaultTransport().send(
                TransportRequest(
                    method: "GET", url: status.url, headers: HeaderFields(below.fields.map { ($0.name, $0.value) }),
                    body: []))
            #expect(refused.status == 400, "the floor was not raised")
            #expect(try await device.sdk.send(status, appID: DevelopmentDevice.appID).status == 200)
            try await expectWholeLife(device)
        }
    }
}
