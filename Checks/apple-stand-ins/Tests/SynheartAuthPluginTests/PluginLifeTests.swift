import Flutter
import Foundation
import SynheartAuth
import Testing

@testable import synheart_auth

private let service = ProcessInfo.processInfo.environment["SYNHEART_TEST_SERVICE"]

/// The whole life of a device through the channels: the Swift client on Apple's stand-ins, and the real service.
@MainActor
@Suite("A device's life through the Flutter plugin", .enabled(if: service != nil))
struct PluginLifeTests {
    private let app = ProcessInfo.processInfo.environment["SYNHEART_TEST_APP"] ?? ""

    private func call(_ more: [String: Any] = [:]) -> [String: Any] {
        ["call": NSNull(), "appId": app].merging(more) { $1 }
    }

    @Test func `a device registers, signs, sends, rotates and resets over the channels`() async throws {
        let service = try #require(service)
        let folder = NSTemporaryDirectory() + "synheart-auth-flutter-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let client = SynheartAuth.shared
        let engine = Engine(client) { configuration in
            configuration.storage = FileStorage(directory: folder)
            configuration.keyStore = SoftwareKeyStore(directory: folder + "/keys")
        }
        var states: [String] = []
        _ = engine.listen { states.append(($0 as? [String: String])?["to"] ?? "?") }
        let configured = await engine.call(
            "configure",
            [
                "baseUrl": service, "origins": [String](), "aliases": [String](), "scheme": "one",
                "rotatesAutomatically": NSNumber(value: false), "cloudProjectNumber": NSNull(),
                "androidProof": "either",
                "developmentMode": NSNumber(value: true),
            ])
        #expect(configured.isSuccess)
        #expect(await engine.call("getState", ["appId": app]).value as? String == "unregistered")

        let registration = await engine.call("registerDevice", call(["joins": NSNumber(value: true)]))
        #expect(registration.fields["status"] as? String == "registered", "\(registration)")
        let deviceID = try #require(registration.fields["deviceId"] as? String)
        #expect(await engine.call("getDeviceId", ["appId": app]).value as? String == deviceID)
        #expect(await engine.call("isRegistered", ["appId": app]).value as? NSNumber == NSNumber(value: true))
        await until { states.count == 4 }
        #expect(states == ["challengeReceived", "keyReady", "registering", "registered"])

        let empty = FlutterStandardTypedData(bytes: Data())
        let signed = await engine.call(
            "signRequest",
            ["appId": app, "method": "GET", "path": "/auth/v1/device/status", "body": empty, "scheme": "one"])
        #expect((signed.value as? [Any])?.count == 6)
        // The configuration sets the scheme. A call that names the other scheme fails.
        for (scheme, status) in [(NSNull(), 200), ("one", 200), ("two", nil)] as [(Any, Int?)] {
            let answer = await engine.call(
                "send",
                call([
                    "method": "GET", "url": "\(service)/auth/v1/device/status",
                    "headers": [["name": "Accept", "value": "application/json"]], "body": empty, "scheme": scheme,
                    "asserting": NSNumber(value: false), "timeoutMs": NSNumber(value: 30000),
                    "maximumAnswer": NSNumber(value: 65536),
                ]))
            #expect(answer.fields["status"] as? NSNumber == status.map { NSNumber(value: $0) }, "\(answer)")
            #expect(answer.code == (status == nil ? "SIGNING_FAILED" : nil))
        }
        let token = await engine.call("deviceToken", call(["audience": NSNull()]))
        #expect((token.fields["token"] as? String)?.split(separator: ".").count == 3)
        let rotation = await engine.call("rotateKey", call(["reason": "compromise"]))
        #expect(rotation.fields["deviceId"] as? String == deviceID, "\(rotation)")
        #expect(await engine.call("maintain", call()).isSuccess)
        let skew = await engine.call("correctClockSkew", ["serverTimestamp": NSNumber(value: 1.0), "appId": app])
        #expect(skew.code == "CLOCK_SKEW")
        #expect(skew.details["recovery"] as? String == "correctClock")

        #expect(await engine.call("resetDeviceIdentity", call(["reason": "user_requested"])).isSuccess)
        await until { states.last == "unregistered" }
        let ended = await engine.call(
            "signRequest", ["appId": app, "method": "GET", "path": "/", "body": empty, "scheme": "one"])
        #expect(ended.code == "NOT_REGISTERED")
    }
}
