import AuthContract
import AuthService
import Crypto
import StrictJSON
import Testing

@testable import AuthServer

/// Headers that another parser might accept: another base64 alphabet, another spelling of true, too long or too many headers.
@Suite struct HeaderAttackTests {
    @Test func `a signature is accepted only as padded standard base64`() async throws {
        try await TestServer.with { server in
            let device = try await TestDevice.register(at: server)
            func headers() throws -> [(String, String)] {
                try device.headers("GET", Route.status.rawValue, at: server.clock.now)
            }
            func signature(_ headers: [(String, String)]) -> String {
                headers.first { $0.0 == HeaderName.signature }?.1 ?? ""
            }
            // Signs again until each of the changes below would alter the text of the signature.
            var honest = try headers()
            while !signature(honest).contains("/") || !signature(honest).contains("+")
                || !signature(honest).hasSuffix("=")
            { honest = try headers() }
            let text = signature(honest)
            let forms: [String] = [
                text.replacing("+", with: "-"), text.replacing("/", with: "_"),
                text.replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: ""),
                text.replacing("=", with: ""), text + "=", text.replacing("=", with: "%3D"), "=" + text,
                String(text.prefix(8)) + " " + text.dropFirst(8), String(text.prefix(8)) + "\t" + text.dropFirst(8),
                ":" + text + ":", text.lowercased() == text ? text + "A" : text.replacing("=", with: "A"),
            ]
            for form in forms {
                let spoilt = honest.map { $0.0 == HeaderName.signature ? ($0.0, form) : $0 }
                let response = try await server.send("GET", Route.status.rawValue, spoilt)
                #expect(response.status == 400 && response.code == "INVALID_REQUEST", "\(form): \(response.text)")
            }
            // The refused requests made no claims, so the original is accepted.
            #expect(try await server.send("GET", Route.status.rawValue, honest).status == 200)
        }
    }

    @Test func `the development header appears once and is true`() async throws {
        var protection = ProtectionSettings()
        protection.enrolment = Rate(burst: 1000, perMinute: 1000)
        try await TestServer.with(protection: protection) { server in
            let forms: [[String]] = [
                [], [""], ["TRUE"], ["True"], ["1"], ["yes"], ["false"], ["true", "true"], ["true", "false"],
                ["true, true"], ["\"true\""], ["?1"],
            ]
            let key = P256.Signing.PrivateKey()
            for form in forms {
                // Make a new body for each form of the header, because every attempt uses up its challenge.
                let (_, body) = try await TestDevice.register(key, at: server) { $0["proof"] = "AAAA" }
                var enrolment = body
                let challenge = try await server.post(.challenge, ["app_id": .string(TestServer.appID)])
                let bytes = try #require(
                    challenge.json["challenge"]?.string.flatMap { Base64.standard.decode($0) })
                let text = try #require(body["public_key"]?.string)
                let nonce = BindingNonce(challenge: bytes, publicKeyText: text)
                let proof = try key.signature(for: KeyProof.registration(nonce)).derRepresentation
                enrolment["challenge"] = .string(Base64.standard.encode(bytes))
                enrolment["proof"] = "development"
                enrolment["key_proof"] = .string(Base64.standard.encode(Array(proof)))
                let response = try await server.post(
                    .register, .object(enrolment), form.map { (HeaderName.developmentMode, $0) })
                #expect(response.status == 403 && response.code == "DEV_MODE_NOT_ALLOWED", "\(form): \(response.text)")
            }
            #expect(try await TestDevice.register(key, at: server).0.status == 200)
        }
    }

    @Test(arguments: SignedRequestTests.headers) func `a header beyond the block ends the connection`(
        name: String
    ) async throws {
        try await TestServer.with { server in
            let device = try await TestDevice.register(at: server)
            let headers = try device.headers("GET", Route.status.rawValue, at: server.clock.now).map {
                $0.0 == name ? ($0.0, $0.1 + String(repeating: "a", count: 17_000)) : $0
            }
            try await RawConnection.with(port: server.publicPort) { connection in
                try await connection.send(
                    RawRequest(method: "GET", target: Route.status.rawValue, headers: headers).bytes)
                let refused = try #require(try await connection.response())
                #expect(refused.status == 400 && refused.code == "INVALID_REQUEST", "\(refused.text)")
                #expect(refused.value("Connection")?.lowercased() == "close")
            }
        }
    }

    @Test func `too many headers are refused`() async throws {
        try await TestServer.with { server in
            for (count, status) in [(80, 200), (120, 400)] {
                let more = (0..<count).map { ("X-More-\($0)", "x") }
                let response = try await server.send("GET", Route.keySet.rawValue, more)
                #expect(response.status == status, "\(count)")
            }
        }
    }
}
