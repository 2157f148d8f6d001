import AuthContract
import Foundation
import Testing

@testable import SynheartAuth

/// A second `configure`: with the same values nothing changes, with others it is an error.
@Suite struct ConfigureTests {
    @Test func `a second configure with the same values keeps caches and tokens`() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        let token = try await sdk.deviceToken(appID: Phone.app).token
        try sdk.configure(try phone.configuration)
        #expect(try await sdk.deviceToken(appID: Phone.app).token == token)
        #expect(await phone.service.tokens == 1)
    }

    @Test(arguments: [
        "origins", "aliases", "deviceLocalID", "scheme", "rotatesAutomatically", "storage", "keyStore", "transport",
        "logger", "clock",
    ])
    func `another value is NOT_CONFIGURED, names the member, and changes nothing`(member: String) async throws {
        let (phone, sdk, id) = try await Phone.registered()
        let token = try await sdk.deviceToken(appID: Phone.app).token
        var other = try phone.configuration
        switch member {
        case "origins": other.origins = SendTests.origins
        case "aliases": other.aliases = SendTests.origins
        case "deviceLocalID": other.deviceLocalID = UUID()
        case "scheme": other.scheme = .two
        case "rotatesAutomatically": other.rotatesAutomatically.toggle()
        case "storage": other.storage = MemoryStorage()
        case "keyStore": other.keyStore = MemoryKeyStore()
        case "transport": other.transport = DefaultTransport()
        case "logger": other.logger = RecordingLogger()
        default: other.clock = TestClock()
        }
        let error = await expectError(.notConfigured) { try sdk.configure(other) }
        #expect(error?.message.contains(member) == true && error?.recovery == SynheartAuthError.Recovery.none)
        #expect(try await sdk.getDeviceId(appID: Phone.app) == id)
        #expect(try await sdk.deviceToken(appID: Phone.app).token == token)
    }

    @Test func `the platform's own parts are the same at every configure, and equal values are`() throws {
        var one = try SynheartAuth.Configuration(baseUrl: "https://auth.example.com")
        var other = try SynheartAuth.Configuration(baseUrl: "https://AUTH.example.com:443/")
        #expect(one.differences(from: other) == [])
        one.storage = FileStorage(directory: "/a")
        #expect(one.differences(from: other) == ["storage"] && other.differences(from: one) == ["storage"])
        other.storage = FileStorage(directory: "/a")
        one.attestation = DevelopmentAttestation()
        other.attestation = DevelopmentAttestation()
        #expect(one.differences(from: other) == [])
        other.storage = FileStorage(directory: "/b")
        other.attestation = DevelopmentAttestation(platform: .android)
        #expect(one.differences(from: other) == ["storage", "attestation"])
        #expect(
            one.differences(from: try SynheartAuth.Configuration(baseUrl: "https://auth.example.org")).first
                == "baseUrl")
    }
}
