import AuthContract
import AuthService
import Crypto
import StrictJSON
import Testing

@testable import AuthServer

/// Scheme 1 joins method, path, timestamp and body with line breaks. Moving a line break to another part keeps the signed bytes
/// and changes their meaning.
@Suite struct MessageAttackTests {
    /// The parts of a signed message. Other splits of the same bytes would have the same signature.
    private struct Cut {
        var method: String
        var path: String
        var timestamp: String
        var body: String

        var message: String { "\(method)\n\(path)\n\(timestamp)\n\(body)" }
    }

    private static func ask(_ cut: Cut, signedBy device: TestDevice, _ server: TestServer) async throws -> RawResponse {
        let signature = try device.key.signature(for: Array(cut.message.utf8)).derRepresentation
        let headers: [(String, String)] = [
            (HeaderName.appID, TestServer.appID), (HeaderName.deviceID, device.id),
            (HeaderName.signature, Base64.standard.encode(Array(signature))), (HeaderName.timestamp, cut.timestamp),
            (HeaderName.nonce, RequestNonce(from: SystemRandom()).text), (HeaderName.signatureVersion, "1"),
        ]
        let credential = try await server.credential(.service, apps: [TestServer.appID])
        return try await server.post(
            .verify,
            [
                "method": .string(cut.method), "scheme": "https", "authority": "api.example.com",
                "path": .string(cut.path), "query": .null,
                "headers": .array(headers.map { [.string($0.0), .string($0.1)] }),
                "body": .string(Base64.standard.encode(Array(cut.body.utf8))),
            ], [("Authorization", "Bearer \(credential)")])
    }

    @Test func `a body whose first line is a timestamp is a body`() async throws {
        try await TestServer.with { server in
            let device = try await TestDevice.register(at: server)
            let now = server.clock.now.description
            let honest = Cut(method: "POST", path: "/v1/pay", timestamp: now, body: "\(now)\n{\"amount\":1}")
            #expect(try await Self.ask(honest, signedBy: device, server).status == 200)
            // The same bytes, split at other line breaks.
            for cut in [
                Cut(method: "POST", path: "/v1/pay\n\(now)", timestamp: now, body: "{\"amount\":1}"),
                Cut(method: "POST\n/v1/pay", path: now, timestamp: now, body: "{\"amount\":1}"),
                Cut(method: "POST", path: "/v1/pay", timestamp: "\(now)\n\(now)", body: "{\"amount\":1}"),
            ] {
                #expect(cut.message == honest.message)
                let refused = try await Self.ask(cut, signedBy: device, server)
                #expect(refused.code == "INVALID_REQUEST", "\(refused.text)")
                #expect(refused.json["verified"]?.bool != true)
            }
        }
    }

    @Test func `a line break is in no part but the body`() async throws {
        try await TestServer.with { server in
            let device = try await TestDevice.register(at: server)
            let now = server.clock.now.description
            for line in ["\n", "\r", "\r\n", "\u{2028}", "\u{85}", "\0", "\u{0B}", "\t", " "] {
                for cut in [
                    Cut(method: "POST\(line)", path: "/v1/pay", timestamp: now, body: ""),
                    Cut(method: "\(line)POST", path: "/v1/pay", timestamp: now, body: ""),
                    Cut(method: "POST", path: "/v1/pay\(line)", timestamp: now, body: ""),
                    Cut(method: "POST", path: "/v1/\(line)/pay", timestamp: now, body: ""),
                    Cut(method: "POST", path: "/v1/pay", timestamp: line + now.dropFirst(), body: ""),
                ] {
                    let refused = try await Self.ask(cut, signedBy: device, server)
                    #expect(refused.code == "INVALID_REQUEST", "\(cut.message.debugDescription): \(refused.text)")
                }
            }
            // An escaped line break is not decoded, and its spelling is signed.
            let escaped = Cut(method: "POST", path: "/v1/pay%0A\(now)", timestamp: now, body: "")
            #expect(try await Self.ask(escaped, signedBy: device, server).status == 200)
            let moved = Cut(method: "POST", path: "/v1/pay%0a\(now)", timestamp: now, body: "")
            #expect(try await Self.ask(moved, signedBy: device, server).status == 200)
        }
    }

    @Test(arguments: [
        "", "v1/pay", "https://api.example.com/v1/pay", "*", "/v1/../pay", "/v1/%2e%2E/pay", "/v1/.%2e/pay",
        "/v1/./pay",
        "/v1/pay/..", "/v1/pay#part", "/v1/pay?a=b", "/v1/ü", "/v1/\u{7F}",
    ]) func `a path that is not exact is refused, although it is signed`(path: String) async throws {
        try await TestServer.with { server in
            let device = try await TestDevice.register(at: server)
            let cut = Cut(method: "POST", path: path, timestamp: server.clock.now.description, body: "")
            let refused = try await Self.ask(cut, signedBy: device, server)
            #expect(refused.code == "INVALID_REQUEST", "\(refused.text)")
        }
    }

    /// One key serves both schemes, so a message of one scheme must never be valid in the other.
    @Test func `a signature base is not a scheme 1 message`() async throws {
        try await TestServer.with { server in
            let device = try await TestDevice.register(at: server)
            let base = try SignatureBase(
                method: "POST", origin: RequestOrigin("https://api.example.com"),
                target: RequestTarget(path: RequestPath("/v1/pay"), query: nil), contentDigest: ContentDigest(of: []),
                appID: AppID(TestServer.appID), deviceID: DeviceID(device.id),
                parameters: SchemeTwoParameters(
                    created: server.clock.now, nonce: RequestNonce(from: SystemRandom()),
                    key: DevicePublicKey(device.key.publicKey)))
            let lines = String(decoding: base.bytes, as: UTF8.self).split(
                separator: "\n", maxSplits: 3, omittingEmptySubsequences: false
            ).map(String.init)
            let cut = Cut(method: lines[0], path: lines[1], timestamp: lines[2], body: lines[3])
            #expect(Array(cut.message.utf8) == base.bytes)
            let refused = try await Self.ask(cut, signedBy: device, server)
            #expect(refused.code == "INVALID_REQUEST", "\(refused.text)")
        }
    }
}
