import AttestationTestKit
import AuthContract
import AuthService
import Crypto
import Foundation
import Logging
import ServiceTestHelpers
import StoreConformance
import StrictJSON
import Testing

@testable import AuthServer

/// An attestation under an unknown root has its own metric and log line. Once an operator adds the root, it is accepted.
@Suite struct UntrustedRootTests {
    /// Registers an iPhone with an attestation by this authority.
    private func register(_ authority: AppleAuthority, at server: TestServer) async throws -> RawResponse {
        let key = P256.Signing.PrivateKey()
        let phone = AppleDevice(
            system: .iOS("27.0.1"), app: AppleApp(appID: "TEAMID1234.com.example.app"), authority: authority)
        return try await TestDevice.register(key, at: server) { body in
            guard let challenge = body["challenge"]?.string.flatMap({ Base64.standard.decode($0) }),
                let text = body["public_key"]?.string,
                let proof = try? phone.attest(
                    AppleAttestKey(),
                    clientDataHash: BindingNonce(challenge: challenge, publicKeyText: text).bytes,
                    at: Date(timeIntervalSince1970: TimeInterval(server.clock.now.seconds)),
                    options: AppleAttestationOptions())
            else { return }
            body["proof"] = .string(Base64.standard.encode(proof))
        }.0
    }

    @Test func `a new root is counted and logged, then added, then accepted with its label`() async throws {
        let authority = try AppleAuthority(from: Date(timeIntervalSinceNow: -86_400))
        let lines = LogLines()
        try await TestServer.with(logger: lines.logger) { server async throws in
            func count() async throws -> String? {
                try await server.operations("/metrics").text.split(separator: "\n").first {
                    $0.hasPrefix("synheart_untrusted_roots_total{provider=\"app_attest\"}")
                }.map(String.init)
            }
            #expect(try await count()?.hasSuffix(" 0") == true)
            for _ in 0..<3 {
                #expect(try await register(authority, at: server).code == "INVALID_ATTESTATION")
            }
            #expect(try await count()?.hasSuffix(" 3") == true)

            var roots = AddedRoots()
            let pem = try #require(
                authority.rootsPEM.range(of: "-----END CERTIFICATE-----\n").map {
                    String(authority.rootsPEM[..<$0.upperBound])
                })
            try roots.add(pem, for: .appleAttestations, at: server.clock.now)
            try await server.service.trust(roots)
            let answer = try await register(authority, at: server)
            try #require(answer.status == 200, "\(answer.text)")
            let id = try DeviceID(try #require(answer.json["device_id"]?.string))
            let device = try await server.stores.device(id, of: AppID(TestServer.appID))
            #expect(device?.assurance.labels.contains(roots.added[0].label) == true)
            #expect(try await count()?.hasSuffix(" 3") == true)
        }
        // Clients can send any number of such chains, so only one line a minute is logged.
        let logged = lines.all.filter { $0.message == "an attestation leads to an unknown root" }
        #expect(logged.count == 1 && logged.first?.level == .warning)
        #expect(logged.first?.metadata["provider"] == "app_attest" && logged.first?.metadata["sha256"]?.count == 64)
        #expect(logged.first?.metadata["name"]?.contains("Test App Attestation Root CA") == true)
    }

    @Test func `an expired root that was left out makes the service degraded`() async throws {
        let authority = try AppleAuthority(from: Date(timeIntervalSinceNow: -86_400))
        try await TestServer.with { server async throws in
            var roots = AddedRoots()
            try roots.add(
                authority.rootsPEM, for: .appleAttestations, at: server.clock.now + 25 * 365 * 86_400,
                leavingOutExpired: true)
            #expect(roots.added.isEmpty && !roots.expired.isEmpty)
            try await server.service.trust(roots)
            let answer = try await server.operations("/readyz")
            let reason = answer.json["degraded"]?.object?["trust_anchors"]?.object?["reason"]?.string
            #expect(answer.status == 200 && reason?.contains("providers.apple_roots") == true, "\(answer.text)")
        }
    }

    @Test func `a new file of roots leaves the providers' clients and their caches as they are`() {
        let roots: [ConfigurationKey] = [.appleRoots, .appleReceiptRoots, .googleRoots]
        #expect(ConfigurationKey.allCases.filter(\.isRoots) == roots)
        #expect(!roots.contains(where: \.isProviders) && ConfigurationKey.googleURL.isProviders)
    }

    @Test func `an added root that expires while the service runs makes it degraded`() async throws {
        let authority = try AppleAuthority(from: Date(timeIntervalSinceNow: -86_400))
        try await TestServer.with { server async throws in
            var roots = AddedRoots()
            try roots.add(authority.rootsPEM, for: .appleAttestations, at: server.clock.now)
            try await server.service.trust(roots)
            server.clock.advance(25 * 365 * 86_400)
            let answer = try await server.operations("/readyz")
            let reason = answer.json["degraded"]?.object?["trust_anchors"]?.object?["reason"]?.string
            #expect(answer.status == 200 && reason?.contains("providers.apple_roots") == true, "\(answer.text)")
        }
    }
}
