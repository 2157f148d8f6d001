import AttestationTestKit
import AuthContract
import Crypto
import Foundation
import SoftwareDevice
import StrictJSON
import SynheartAuth
import Testing

/// Concurrent assertions at a running service: each counter is accepted at most once, whichever request comes first.
@Suite struct ParallelAssertions {
    let folder: TemporaryFolder
    private static let app = "com.example.app"
    private static let iosApp = "\(SoftwareDevice.team).\(app)"

    init() throws { folder = try TemporaryFolder() }

    /// A device that builds its requests itself.
    private struct Device: Sendable {
        let url: String
        let id: String
        let key: P256.Signing.PrivateKey
        let phone: AppleDevice
        let attestKey: AppleAttestKey

        /// Asks for a token with an assertion of this counter. Returns the error code; nil if a token was issued.
        func ask(counter: UInt32) async throws -> String? {
            let body = Array("{}".utf8)
            let now = UnixTime(Int64(Date().timeIntervalSince1970))
            let message = SchemeOneMessage.bytes(
                method: "POST", path: Route.token.rawValue, timestamp: now, body: body)
            var attestKey = attestKey
            var options = AppleAssertionOptions()
            options.counter = counter
            let assertion = try phone.assert(
                &attestKey, clientDataHash: Array(SHA256.hash(data: message)), options: options)
            let answer = try await ParallelAssertions.post(
                url + Route.token.rawValue, body,
                [
                    (HeaderName.appID, ParallelAssertions.app), (HeaderName.deviceID, id),
                    (
                        HeaderName.signature,
                        Base64.standard.encode(Array(try key.signature(for: message).derRepresentation))
                    ), (HeaderName.timestamp, now.description),
                    (HeaderName.nonce, RequestNonce(from: SystemRandom()).text), (HeaderName.signatureVersion, "1"),
                    (HeaderName.assertion, Base64.standard.encode(assertion)),
                ])
            return answer["token"] == nil ? answer["error"]?.string ?? "no code" : nil
        }
    }

    private static func post(_ url: String, _ body: [UInt8], _ headers: [(String, String)]) async throws -> JSONObject {
        let response = try await DefaultTransport().send(
            TransportRequest(
                method: "POST", url: url, headers: HeaderFields([("Content-Type", "application/json")] + headers),
                body: body))
        return try JSONValue(parsing: response.body).object ?? JSONObject()
    }

    private func device(at service: RunningService) async throws -> Device {
        let key = P256.Signing.PrivateKey()
        let attestKey = AppleAttestKey()
        let phone = AppleDevice(
            system: .iOS("27.0.1"), app: AppleApp(appID: Self.iosApp),
            authority: try AuthorityFile.load(folder.path("authority.pem")))
        let issued = try await Self.post(
            service.publicURL + Route.challenge.rawValue,
            JSONValue.object(JSONObject([("app_id", .string(Self.app))])).bytes, [])
        let challenge = try #require(issued["challenge"]?.string.flatMap { Base64.standard.decode($0) })
        let publicKey = DevicePublicKey(key.publicKey).base64
        let nonce = BindingNonce(challenge: challenge, publicKeyText: publicKey)
        let object = try phone.attest(attestKey, clientDataHash: nonce.bytes, at: Date())
        let registered = try await Self.post(
            service.publicURL + Route.register.rawValue,
            RegisterRequest(
                appID: try AppID(Self.app), publicKeyText: publicKey, challenge: challenge, platform: .ios,
                proof: Base64.standard.encode(object)
            ).bytes, [])
        return Device(
            url: service.publicURL, id: try #require(registered["device_id"]?.string, "\(registered)"), key: key,
            phone: phone, attestKey: attestKey)
    }

    @Test func `of assertions with one counter one is accepted, and none twice`() async throws {
        let example = try await Binary.run(
            ["apps", "example", "--authority", folder.path("authority.pem")])
        var record = try #require(try JSONValue(parsing: example.output).object)
        var ios = try #require(record["ios"]?.object)
        ios["assertions_required_on"] = [.string(Route.token.rawValue)]
        record["ios"] = .object(ios)
        let added = try await Binary.run(
            ["apps", "add", "--file", "-", "--database", folder.path("db.sqlite")],
            input: JSONValue.object(record).text())
        #expect(added.status == 0, "\(added.errors)")
        let service = try await RunningService(database: folder.path("db.sqlite"))
        let device = try await device(at: service)

        // Three copies of each of eight counters, all concurrent. Each copy is a separate request.
        let counters = (1...8).flatMap { [UInt32](repeating: $0, count: 3) }.shuffled()
        let outcomes = try await withThrowingTaskGroup(of: (UInt32, String?).self) { group in
            for counter in counters { group.addTask { (counter, try await device.ask(counter: counter)) } }
            return try await group.reduce(into: [(UInt32, String?)]()) { $0.append($1) }
        }
        let accepted = outcomes.filter { $0.1 == nil }.map(\.0)
        #expect(Set(accepted).count == accepted.count, "accepted: \(accepted)")
        #expect(accepted.contains(8))
        #expect(outcomes.allSatisfy { $0.1 == nil || $0.1 == "INVALID_ASSERTION" }, "\(outcomes)")
        // From now on each of the eight counters is refused. The next counter is accepted once: after a restart it is refused.
        for counter: UInt32 in [1, 8] { #expect(try await device.ask(counter: counter) == "INVALID_ASSERTION") }
        #expect(try await device.ask(counter: 9) == nil)
        service.kill()

        let restarted = try await RunningService(database: folder.path("db.sqlite"), port: service.port)
        #expect(try await device.ask(counter: 9) == "INVALID_ASSERTION")
        #expect(try await device.ask(counter: 10) == nil)
        #expect(restarted.stop() == 0)
    }
}
