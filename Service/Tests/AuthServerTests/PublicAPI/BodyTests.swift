import AuthContract
import AuthService
import Crypto
import StoreConformance
import StrictJSON
import Testing

/// Bodies as a hostile client would send them. A malformed body gets status 400.
@Suite struct BodyTests {
    static let bodies: [[UInt8]] =
        [
            "", " ", "{", "}", "[]", "null", "true", "1", "\"x\"", "{}", "{}{}", "{} x", "{\"app_id\"}",
            "{\"app_id\":}", "{\"app_id\":1}", "{\"app_id\":null}", "{\"app_id\":[]}", "{\"app_id\":{}}",
            "{\"app_id\":true}", "{\"app_id\":\"\"}", "{\"app_id\":\"a b\"}", "{\"app_id\":\"a_next\"}",
            "{\"app_id\":\"a\",}", "{,\"app_id\":\"a\"}", "{\"app_id\":\"a\" \"purpose\":\"register\"}",
            "{app_id:\"a\"}", "{'app_id':'a'}", "{\"app_id\":\"a\",\"app_id\":\"a\"}",
            "{\"app_id\":\"com.example.app\",\"\\u0061pp_id\":\"com.example.app\"}",
            "{\"app_id\":\"com.example.app\",\"x\":{\"y\":1,\"y\":2}}",
            "{\"app_id\":\"com.example.app\",\"purpose\":\"other\"}", "{\"app_id\":\"com.example.app\",\"purpose\":1}",
            "{\"app_id\":\"com.example.app\",\"x\":01}", "{\"app_id\":\"com.example.app\",\"x\":1.}",
            "{\"app_id\":\"com.example.app\",\"x\":.1}", "{\"app_id\":\"com.example.app\",\"x\":+1}",
            "{\"app_id\":\"com.example.app\",\"x\":1e}", "{\"app_id\":\"com.example.app\",\"x\":NaN}",
            "{\"app_id\":\"com.example.app\",\"x\":Infinity}", "{\"app_id\":\"com.example.app\",\"x\":0x1}",
            "{\"app_id\":\"com.example.app\",\"x\":\"\\ud800\"}", "{\"app_id\":\"com.example.app\",\"x\":\"\\x\"}",
            "{\"app_id\":\"com.example.app\",\"x\":\"\t\"}", "{\"app_id\":\"com.example.app\"/**/}",
            "\u{FEFF}{\"app_id\":\"com.example.app\"}",
        ].map { Array($0.utf8) } + [
            Array("{\"app_id\":\"com.example.app\",\"x\":\"".utf8) + [0xFF, 0xFE] + Array("\"}".utf8),
            Array("{\"app_id\":\"com.example.app\",\"x\":\"".utf8) + [0xC0, 0xAF] + Array("\"}".utf8),
            Array("{\"app_id\":\"com.example.app\",\"x\":\"".utf8) + [0xED, 0xA0, 0x80] + Array("\"}".utf8),
            Array("{\"app_id\":\"com.example.app\"}".utf8) + [0], [0] + Array("{\"app_id\":\"com.example.app\"}".utf8),
            [0xFF, 0xFE, 0x7B, 0, 0x7D, 0],
            Array((String(repeating: "[", count: 60_000)).utf8),
            Array(("{\"app_id\":\"com.example.app\",\"x\":" + String(repeating: "[", count: 17)).utf8)
                + Array((String(repeating: "]", count: 17) + "}").utf8),
            Array((String(repeating: "{\"a\":", count: 10_000)).utf8),
        ]

    @Test func `a body with missing or further members is malformed`() async throws {
        try await TestServer.with { server in
            for body in Self.bodies {
                let response = try await server.send(
                    "POST", Route.challenge.rawValue, [("Content-Type", "application/json")], body: body)
                let what = Comment(rawValue: String(decoding: body.prefix(60), as: UTF8.self))
                #expect(response.status == 400, what)
                #expect(response.code == "INVALID_REQUEST", what)
            }
        }
    }

    @Test func `unknown members and huge numbers are ignored`() async throws {
        try await TestServer.with { server in
            let digits = String(repeating: "9", count: 10_000)
            let body = "{\"app_id\":\"com.example.app\",\"x\":\(digits),\"y\":1e\(digits.prefix(4)),\"z\":-0}"
            let response = try await server.send(
                "POST", Route.challenge.rawValue, [("Content-Type", "application/json")], body: Array(body.utf8))
            #expect(response.status == 200, "\(response.text)")
        }
    }

    @Test func `a registration uses up its challenge, whatever its outcome`() async throws {
        try await TestServer.with { server in
            let device = try await TestDevice.register(.init(), at: server) { $0["key_proof"] = .string("AAAA") }
            #expect(device.0.code == "INVALID_ATTESTATION")
            let again = try await server.post(
                .register, .object(device.1), [(HeaderName.developmentMode, "true")])
            #expect(again.code == "INVALID_CHALLENGE")
        }
    }

    @Test func `enrolment is limited by address before the body is read`() async throws {
        var protection = ProtectionSettings()
        protection.enrolment = Rate(burst: 3, perMinute: 1)
        try await TestServer.with(protection: protection) { server in
            for _ in 0..<3 {
                #expect(try await server.post(.challenge, ["app_id": .string(TestServer.appID)]).status == 200)
            }
            let limited = try await server.post(.challenge, "not even an object")
            #expect(limited.status == 429)
            #expect(limited.code == "RATE_LIMITED")
            #expect(limited.value("Retry-After").flatMap { Int($0) }.map { (1...300).contains($0) } == true)
        }
    }
}
