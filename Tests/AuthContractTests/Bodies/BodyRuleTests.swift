import AuthContract
import StrictJSON
import Testing

@Suite struct BodyRules {
    func path(of error: (any Error)?) -> String? { (error as? JSONError)?.path }

    @Test func `every kind of body is in the table`() { #expect(Body.all.count == 13) }

    @Test func `absent members have their defaults`() throws {
        #expect(try ChallengeRequest(parsing: Array(#"{"app_id":"a"}"#.utf8)).purpose == .register)
        let rotation = #"{"app_id":"a","device_id":"123e4567-e89b-42d3-a456-426614174000","new_public_key":"k"}"#
        #expect(try RotateKeyRequest(parsing: Array(rotation.utf8)).reason == .scheduled)
        #expect(try Assurance(parsing: Array(#"{"app":"none","key":"tee"}"#.utf8)).labels.isEmpty)
    }

    @Test func `absent members are not written`() {
        #expect(TokenRequest().json.members.isEmpty)
        #expect(JSONValue.object(TokenRequest().json).text() == "{}")
    }

    @Test func `a key that was never rotated has a rotation time that is null`() throws {
        let text = #"""
            {"device_id":"123e4567-e89b-42d3-a456-426614174000","status":"registered","platform":"ios","registered_at":1,
            "key_age_seconds":7,"key_thumbprint":"x","must_rotate":false,"assurance":{"app":"none","key":"tee"},
            "server_timestamp":8}
            """#
        #expect(try StatusResponse(parsing: Array(text.utf8)).json["key_rotated_at"] == .null)
    }

    @Test func `an unknown word is refused`() {
        for text in [
            #"{"app_id":"a","purpose":"Register"}"#, #"{"app_id":"a","purpose":""}"#,
            #"{"app_id":"a_next"}"#, #"{"app_id":""}"#,
        ] { #expect(throws: JSONError.self) { try ChallengeRequest(parsing: Array(text.utf8)) } }
    }

    @Test func `an error names the member`() {
        let cases: [(String, String)] = [
            ("{}", "app_id"), (#"{"app_id":1}"#, "app_id"), (#"{"app_id":"a","purpose":1}"#, "purpose"),
        ]
        for (text, path) in cases {
            let error = #expect(throws: JSONError.self) { try ChallengeRequest(parsing: Array(text.utf8)) }
            #expect(self.path(of: error) == path)
        }
        let assurance = #expect(throws: JSONError.self) { try Assurance(parsing: Array(#"{"app":"none"}"#.utf8)) }
        #expect(assurance == JSONError(.missing, path: "key"))
    }

    // MARK: Registration

    static let registration: [(String, JSONValue)] = [
        ("app_id", "a"), ("public_key", "TUZr"), ("challenge", "AAAA"), ("platform", "ios"), ("proof", "p"),
    ]

    func registers(_ changes: (String, JSONValue?)...) -> Bool {
        var body = JSONObject(Self.registration)
        for (name, value) in changes { body[name] = value }
        return (try? RegisterRequest(parsing: JSONValue.object(body).bytes)) != nil
    }

    @Test func `only Android may replace the proof by a key attestation`() {
        let chain: JSONValue = ["AAAA"]
        #expect(registers())
        #expect(!registers(("proof", nil)))
        #expect(!registers(("proof", nil), ("key_attestation", chain)))
        #expect(registers(("platform", "android")))
        #expect(!registers(("platform", "android"), ("proof", nil)))
        #expect(registers(("platform", "android"), ("proof", nil), ("key_attestation", chain)))
        #expect(registers(("platform", "android"), ("key_attestation", chain)))
        #expect(!registers(("platform", "windows")))
    }

    @Test func `a chain has one to six certificates`() {
        for count in 0...8 {
            let chain = JSONValue.array((0..<count).map { _ in "AAAA" })
            #expect(registers(("key_attestation", chain)) == (1...6).contains(count))
        }
        #expect(!registers(("key_attestation", ["AAAA", 1])))
        #expect(!registers(("key_attestation", ["AAA"])))
        #expect(!registers(("key_attestation", "AAAA")))
    }

    @Test func `base64 is strict`() {
        for bad: JSONValue in ["AAA", "AA==\n", "AB==", "AA-_", " AAAA"] {
            #expect(!registers(("challenge", bad)))
            #expect(!registers(("key_proof", bad)))
        }
    }

    @Test func `the local id is any UUID`() {
        for good: JSONValue in [
            "123e4567-e89b-12d3-a456-426614174000", "123E4567-E89B-42D3-A456-426614174000",
            "00000000-0000-0000-0000-000000000000",
        ] { #expect(registers(("device_local_id", good))) }
        for bad: JSONValue in [
            "", "phone", "123e4567e89b12d3a456426614174000", "123e4567-e89b-12d3-a456-42661417400g",
            "123e4567-e89b-12d3-a456-4266141740000", "-----", "123e4567-e89b-12d3-a456-426614174000-",
        ] { #expect(!registers(("device_local_id", bad))) }
    }

    /// The binding nonce covers the text as it was sent, so the text is kept even if it is not base64.
    @Test func `the key's text is kept as received`() throws {
        var body = JSONObject(Self.registration)
        body["public_key"] = " TUZr\n=é"
        #expect(try RegisterRequest(parsing: JSONValue.object(body).bytes).publicKeyText == " TUZr\n=é")
    }

    // MARK: Verification

    static let verification: [(String, JSONValue)] = [
        ("method", "GET"), ("scheme", "https"), ("authority", "a"), ("path", "/"), ("headers", []), ("body", ""),
    ]

    func verifies(_ changes: (String, JSONValue?)...) -> VerifyRequest? {
        var body = JSONObject(Self.verification)
        for (name, value) in changes { body[name] = value }
        return try? VerifyRequest(parsing: JSONValue.object(body).bytes)
    }

    @Test func `a body and a digest together are refused`() {
        let digest = JSONValue.string(Base64.standard.encode([UInt8](repeating: 0, count: 32)))
        #expect(verifies()?.body == .bytes([]))
        #expect(verifies(("body", nil)) == nil)
        #expect(verifies(("body", nil), ("body_sha256", digest))?.body == .sha256([UInt8](repeating: 0, count: 32)))
        #expect(verifies(("body_sha256", digest)) == nil)
        #expect(verifies(("body", nil), ("body_sha256", "AAAA")) == nil)
    }

    @Test func `a missing query differs from an empty one`() {
        #expect(verifies(("query", .null))?.query == nil)
        #expect(verifies(("query", ""))?.query == "")
    }

    @Test func `headers are pairs, in order`() {
        let lines: JSONValue = [["B", "1"], ["a", " 2 "], ["B", "3"]]
        #expect(verifies(("headers", lines))?.headers.values("b") == ["1", "3"])
        #expect(verifies(("headers", lines))?.headers.values("A") == ["2"])
        for bad: JSONValue in [[["a"]], [["a", "b", "c"]], [["a", 1]], [["a": "b"]], ["ab"], [[]]] {
            #expect(verifies(("headers", bad)) == nil)
        }
    }

    @Test func `the scheme must be one of HTTP`() {
        for bad: JSONValue in ["", "ftp", "HTTPS", "https "] { #expect(verifies(("scheme", bad)) == nil) }
    }

    /// The device chose the method, not the backend that asks for the verification. So a wrong method is not an error of the backend's
    /// body: the parser accepts it, and the verifier refuses the request.
    @Test func `the method is kept as received`() {
        for odd in ["", "GET ", "G\nT", "G É"] { #expect(verifies(("method", .string(odd)))?.method == odd) }
        #expect(verifies(("method", 1)) == nil)
    }

    @Test func `a verification id is the same in either case`() {
        let id = "123e4567-e89b-42d3-a456-426614174000"
        #expect(verifies(("verification_id", .string(id.uppercased())))?.verificationID == id)
        #expect(verifies(("verification_id", "1")) == nil)
    }

    @Test(arguments: ["0", "3", "-1", "4294967297", "9223372036854775807"])
    func `an unknown signature scheme is refused`(_ scheme: String) throws {
        var body = try #require(Body.all.first { $0.testDescription == "VerifyResponse" }?.sample)
        body["signature_scheme"] = try JSONValue(parsing: scheme)
        #expect(throws: JSONError(.wrongType, path: "signature_scheme")) {
            try VerifyResponse(parsing: JSONValue.object(body).bytes)
        }
    }

    @Test func `a contradictory verdict is refused`() throws {
        for text in [
            #"{"verified":true}"#, #"{"verified":false}"#, #"{"verified":true,"observed":"CLOCK_SKEW"}"#,
            #"{"observed":"CLOCK_SKEW"}"#, #"{"verified":false,"observed":"NEW"}"#,
        ] { #expect(throws: JSONError.self) { try VerifyResponse(parsing: Array(text.utf8)) } }
        #expect(
            try VerifyResponse(parsing: Array(#"{"verified":false,"observed":"CLOCK_SKEW"}"#.utf8))
                == .observed(.clockSkew, nil))
    }

    // MARK: Answers

    @Test func `fixed words are checked`() {
        for text in [#"{"status":"done","effective_at":1}"#, #"{"effective_at":1}"#] {
            #expect(throws: JSONError.self) { try RotateKeyResponse(parsing: Array(text.utf8)) }
        }
        #expect(throws: JSONError.self) {
            try TokenResponse(parsing: Array(#"{"token":"t","token_type":"Bearer","expires_in":1}"#.utf8))
        }
    }

    @Test func `a newer service's error code is read`() throws {
        let body = try ErrorBody(parsing: Array(#"{"error":"TEAPOT","server_timestamp":1709312345}"#.utf8))
        #expect(body.code == "TEAPOT")
        #expect(body.serverTimestamp == UnixTime(1_709_312_345))
        #expect(body.problem["status"] == nil)
    }

    @Test func `problem details have the same content`() {
        let body = ErrorBody(
            code: "CLOCK_SKEW", message: "m", requestID: "r", serverTimestamp: UnixTime(7), verified: false)
        #expect(
            JSONValue.object(body.problem) == [
                "type": "about:blank", "title": "m", "status": 401, "detail": "m", "code": "CLOCK_SKEW",
                "request_id": "r", "server_timestamp": 7, "verified": false,
            ])
    }
}
