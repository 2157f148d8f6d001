import AuthContract
import Foundation
import StrictJSON
import Testing

/// `synheart-auth proxy`: the requests that reach the backend, and the answers that the phone gets.
@Suite struct `The proxy` {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    @Test func `a verified request arrives with its identity, and a copy of it does not arrive`() async throws {
        let fixture = try await ProxyFixture(in: folder)
        let proxy = try await fixture.proxy()
        var request = try fixture.signed("POST", "/v1/pay//a%2Fb;x=1")
        request.headers += [("X-Own", "1"), ("Accept-Encoding", "gzip"), ("Connection", "keep-alive")]
        let answer = try await proxy.send(request)
        #expect(answer.status == 200 && answer.text == "ok" && answer.value("X-Backend") == "yes", "\(answer.text)")
        let seen = try #require(fixture.backend.seen.first)
        #expect(seen.requestLine == "POST /v1/pay//a%2Fb;x=1 HTTP/1.1")
        #expect(seen.body == request.body && seen.isComplete)
        #expect(seen.values("X-Synheart-Verified-App") == [DevelopmentDevice.appID])
        #expect(seen.values("X-Synheart-Verified-Device") == [fixture.device.id.text])
        #expect(seen.values("X-Synheart-Verified-Platform") == ["ios"])
        #expect(seen.values("X-Synheart-Verified-Assurance") == ["app=development, key=unattested"])
        #expect(seen.values("X-Forwarded-Host") == ["api.example.com"])
        #expect(seen.values("X-Forwarded-Proto") == ["https"] && seen.values("X-Forwarded-For") == ["127.0.0.1"])
        #expect(seen.values("Host") == ["127.0.0.1:\(fixture.backend.port)"])
        #expect(seen.values("X-Own") == ["1"] && seen.values("Accept-Encoding") == ["gzip"])

        let copy = try await proxy.send(request)
        #expect(copy.status == 409 && copy.code == "NONCE_REPLAY" && copy.value("X-Synheart-Error") == "NONCE_REPLAY")
        #expect(copy.value("X-Synheart-Server-Time") != nil && copy.json["verified"] == nil)
        #expect(fixture.backend.seen.count == 1)
    }

    @Test func `an identity that the client claims does not arrive`() async throws {
        let fixture = try await ProxyFixture(in: folder)
        let proxy = try await fixture.proxy()
        var request = try fixture.signed()
        request.headers += [
            ("X-Synheart-Verified-Device", "forged"), ("X_Synheart_Verified_Device", "forged"),
            ("x-synheart-identity", "forged"), ("X-Synheart-Verified-Role", "forged"),
        ]
        #expect(try await proxy.send(request).status == 200)
        let head = try #require(fixture.backend.seen.first).head
        #expect(!head.contains("forged"), "\(head)")
    }

    @Test func `in observe mode a request arrives without an identity`() async throws {
        let fixture = try await ProxyFixture(in: folder, mode: "observe")
        let proxy = try await fixture.proxy()
        let unsigned = WireRequest(method: "GET", target: "/v1/pay", headers: [("X-Synheart-Verified-App", "forged")])
        #expect(try await proxy.send(unsigned).status == 200)
        #expect(try await proxy.send(fixture.signed()).status == 200)
        let seen = fixture.backend.seen
        #expect(seen.count == 2 && !seen[0].head.lowercased().contains("x-synheart-verified"))
        #expect(seen[1].values("X-Synheart-Verified-Device") == [fixture.device.id.text])
    }

    @Test func `in observe mode the secrets of the upstream are for verified requests alone`() async throws {
        let fixture = try await ProxyFixture(in: folder, mode: "observe")
        let secrets = folder.path("headers")
        try Data("Authorization: Bearer upstream-secret\n".utf8).write(to: URL(fileURLWithPath: secrets))
        let proxy = try await fixture.proxy(["--upstream-header-file", secrets])
        let unsigned = try await proxy.send(WireRequest(method: "GET", target: "/v1/pay"))
        #expect(unsigned.status == 400 && unsigned.code == "INVALID_REQUEST", "\(unsigned.text)")
        let signed = try fixture.signed()
        #expect(try await proxy.send(signed).status == 200)
        let replayed = try await proxy.send(signed)
        #expect(replayed.status >= 400 && replayed.code == "NONCE_REPLAY", "\(replayed.text)")
        #expect(fixture.backend.seen.map { $0.values("Authorization") } == [["Bearer upstream-secret"]])
    }

    @Test func `a method is judged and forwarded as it was sent`() async throws {
        let fixture = try await ProxyFixture(in: folder)
        let proxy = try await fixture.proxy()
        for method in ["M-SEARCH", "PROPFIND"] {
            #expect(try await proxy.send(fixture.signed(method, "/v1/pay", body: [])).status == 200, "\(method)")
            #expect(fixture.backend.seen.last?.head.hasPrefix("\(method) /v1/pay ") == true)
        }
    }

    @Test func `the identity can be a token for the backend`() async throws {
        let fixture = try await ProxyFixture(in: folder)
        let proxy = try await fixture.proxy(["--identity", "token", "--identity-audience", ProxyFixture.audience])
        #expect(try await proxy.send(fixture.signed()).status == 200)
        let seen = try #require(fixture.backend.seen.first)
        let token = try #require(seen.values("X-Synheart-Identity").first)
        let parts = token.split(separator: ".")
        let claims = try JSONValue(parsing: #require(Base64.url.decode(String(parts[1])))).object
        #expect(claims?["aud"]?.string == ProxyFixture.audience && claims?["sub"]?.string == fixture.device.id.text)
        #expect(seen.values("X-Synheart-Verified-Device").isEmpty)
    }

    @Test func `a foreign body does not reach the backend`() async throws {
        let fixture = try await ProxyFixture(in: folder)
        let proxy = try await fixture.proxy()
        for request in [try fixture.signed(), try fixture.signedUnderTwo(body: Array("{\"a\":1}".utf8))] {
            var foreign = request
            foreign.body = Array("{\"a\":2}".utf8)
            let answer = try await proxy.send(foreign)
            #expect(answer.status == 401 && answer.code == "INVALID_SIGNATURE", "\(answer.text)")
        }
        // The signature covers an empty body, so a request with a body is refused.
        var attached = try fixture.signed(body: [])
        attached.body = Array("x".utf8)
        #expect(try await proxy.send(attached).status == 401)
        let chunked = RunningProxy.bytes(
            try fixture.signed(body: []), framing: ["Transfer-Encoding: chunked"], body: "1\r\nx\r\n0\r\n\r\n")
        let connection = try #require(WireConnection(port: proxy.port))
        await connection.send(chunked)
        #expect(await connection.answer()?.status == 401)
        #expect(fixture.backend.seen.isEmpty)
    }

    @Test func `a streamed body reaches the backend, and a foreign one never completely`() async throws {
        let fixture = try await ProxyFixture(in: folder)
        let proxy = try await fixture.proxy(["--body-limit", "1000", "--stream-limit", "4000000"])
        let body = (0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        let request = try fixture.signedUnderTwo(body: body)
        #expect(try await proxy.send(request).status == 200)
        let first = try #require(fixture.backend.seen.first)
        #expect(first.isComplete && first.body == body && first.values("Content-Length") == ["3000000"])
        #expect(first.values("X-Synheart-Verified-Device") == [fixture.device.id.text])
        #expect(try await proxy.send(request).code == "NONCE_REPLAY")

        for size in [1001, 3_000_000] {
            var foreign = try fixture.signedUnderTwo(body: Array(body.prefix(size)))
            foreign.body[size - 1] ^= 1
            let answer = try await proxy.send(foreign)
            #expect(answer.status == 401 && answer.code == "INVALID_SIGNATURE", "\(answer.text)")
        }
        #expect(await fixture.backend.eventually { $0.count > 1 && $0.last?.isAbandoned == true })
        #expect(fixture.backend.seen.dropFirst().allSatisfy { !$0.isComplete })

        var large = try fixture.signedUnderTwo(body: [])
        large.body = [UInt8](repeating: 0, count: 4_000_001)
        let connection = try #require(WireConnection(port: proxy.port))
        await connection.send(RunningProxy.bytes(large, framing: ["Content-Length: 4000001"], body: ""))
        #expect(await connection.answer()?.status == 413)
        // Scheme 1 signs no digest, so the proxy does not stream bodies, and `--body-limit` applies.
        #expect(try await proxy.send(fixture.signed(body: Array(body.prefix(1001)))).status == 413)
    }
}
