import AuthContract
import AuthService
import Foundation
import Testing

@testable import AuthServer

/// All cases of JSONTestSuite over HTTP, each as a whole body and as an additional member of a body.
@Suite struct JSONSuiteTests {
    private struct Case: Decodable {
        let name: String
        let expect: String
        let base64: String
    }

    private static func cases() throws -> [Case] {
        // The vectors are with the parser's tests.
        let vectors = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("../../../../Tests/StrictJSONTests/Vectors/json_test_suite.json")
        return try JSONDecoder().decode([Case].self, from: Data(contentsOf: vectors))
    }

    /// The statuses that are allowed for a body with this value as one of its members.
    private static func status(_ test: Case) -> Set<Int> {
        switch test.expect {
        case "accept": [test.name.contains("duplicated_key") ? 400 : 200]
        case "reject": [400]
        case "implementation-defined": [test.name.contains("i_number_") ? 200 : 400]
        // `look-at-result`: parsers may read these cases differently. The parser's own tests check the results.
        default: [200, 400]
        }
    }

    @Test func `JSON that the suite rejects is malformed, and the connection stays open`() async throws {
        let cases = try Self.cases()
        #expect(cases.count == 340)
        var protection = ProtectionSettings()
        protection.enrolment = Rate(burst: 10_000, perMinute: 10_000)
        try await TestServer.with(protection: protection) { server in
            try await RawConnection.with(port: server.publicPort, seconds: 60) { connection in
                for test in cases {
                    let text = [UInt8](try #require(Data(base64Encoded: test.base64)))
                    for body in [text, Array("{\"app_id\":\"com.example.app\",\"x\":".utf8) + text + Array("}".utf8)] {
                        let request = RawRequest(
                            method: "POST", target: Route.challenge.rawValue,
                            headers: [("Content-Type", "application/json")], body: body)
                        try await connection.send(request.bytes)
                        let response = try #require(try await connection.response(), "\(test.name)")
                        var expected: Set = body.count > text.count ? Self.status(test) : [400]
                        if body.count > RequestLimits().deviceBody { expected = [413] }
                        #expect(expected.contains(response.status), "\(test.name): \(response.text)")
                    }
                }
            }
        }
    }
}
