import AuthContract
import Crypto
import Testing

@Suite struct SchemeOneMessages {
    @Test func `the message is the one in the specification`() {
        let bytes = SchemeOneMessage.bytes(
            method: "post", path: "/v1/hsi", timestamp: UnixTime(1_700_000_000), body: Array(#"{"a":1}"#.utf8))
        #expect(String(decoding: bytes, as: UTF8.self) == "POST\n/v1/hsi\n1700000000\n{\"a\":1}")
    }

    @Test func `the message of an empty body ends in a line feed`() {
        let bytes = SchemeOneMessage.bytes(method: "GET", path: "/", timestamp: UnixTime(1), body: [])
        #expect(String(decoding: bytes, as: UTF8.self) == "GET\n/\n1\n")
    }

    @Test func `the body is signed as bytes`() {
        let body: [UInt8] = [0x00, 0xFF, 0xC3, 0x28, 0x0A]
        #expect(
            SchemeOneMessage.bytes(method: "PUT", path: "/%0A", timestamp: UnixTime(1), body: body).suffix(5)
                == body[...])
    }

    /// Unicode upper-cases U+017F to S; a method that is not ASCII must not become ASCII.
    @Test func `only ASCII letters of a method become upper case`() {
        let bytes = SchemeOneMessage.bytes(method: "po\u{17F}t", path: "/", timestamp: UnixTime(1), body: [])
        #expect(String(decoding: bytes, as: UTF8.self) == "PO\u{17F}T\n/\n1\n")
    }
}

@Suite struct SchemeOneHeaderReading {
    let signature: RequestSignature
    let good: [(String, String)]

    init() throws {
        signature = RequestSignature(try P256.Signing.PrivateKey().signature(for: [1, 2, 3]))
        good = [
            ("X-App-ID", "com.example.app"), ("X-Device-ID", "123e4567-e89b-42d3-a456-426614174000"),
            ("X-Synheart-Signature", signature.base64), ("X-Synheart-Timestamp", "1700000000"),
            ("X-Synheart-Nonce", "7F1C2A34-5B6D-4E8F-9A0B-1C2D3E4F5A6B"), ("X-Synheart-Sig-Version", "1"),
        ]
    }

    func reading(_ name: String, _ value: String) -> [(String, String)] {
        good.map { $0.0 == name ? (name, value) : $0 }
    }

    @Test func `the six headers are read`() throws {
        let headers = try SchemeOneHeaders(HeaderFields(good))
        #expect(headers.appID.text == "com.example.app")
        #expect(headers.deviceID.text == "123e4567-e89b-42d3-a456-426614174000")
        #expect(headers.signature.raw == signature.raw)
        #expect(headers.timestamp == UnixTime(1_700_000_000))
        #expect(headers.nonce.text == "7f1c2a34-5b6d-4e8f-9a0b-1c2d3e4f5a6b")
    }

    @Test func `written headers are read as the same values`() throws {
        let headers = try SchemeOneHeaders(HeaderFields(good))
        let again = try SchemeOneHeaders(HeaderFields(headers.fields.map { ($0.name, $0.value) }))
        #expect(again.fields.map(\.value) == headers.fields.map(\.value))
        #expect(headers.fields.map(\.name) == good.map(\.0))
    }

    @Test func `each header must be present exactly once`() {
        for (name, value) in good {
            #expect(throws: ContractError.self) { try SchemeOneHeaders(HeaderFields(good.filter { $0.0 != name })) }
            #expect(throws: ContractError.self) { try SchemeOneHeaders(HeaderFields(good + [(name, value)])) }
            #expect(throws: ContractError.self) {
                try SchemeOneHeaders(HeaderFields(good + [(name.lowercased(), value)]))
            }
            #expect(throws: ContractError.self) { try SchemeOneHeaders(HeaderFields(reading(name, ""))) }
            #expect(throws: ContractError.self) {
                try SchemeOneHeaders(HeaderFields(reading(name, value + ", " + value)))
            }
        }
    }

    @Test(arguments: [
        ("X-Device-ID", "123E4567-E89B-42D3-A456-426614174000"), ("X-Synheart-Timestamp", "1700000000.0"),
        ("X-Synheart-Timestamp", "2023-11-14T22:13:20Z"), ("X-Synheart-Nonce", "n"), ("X-App-ID", "a_next"),
        ("X-Synheart-Signature", "AAAA"),
    ])
    func `a malformed header is refused`(_ name: String, _ value: String) {
        #expect(throws: ContractError.self) { try SchemeOneHeaders(HeaderFields(reading(name, value))) }
    }

    @Test(arguments: ["2", "01", "1.0", "v1", "١"]) func `another version is unsupported`(_ version: String) {
        let error = #expect(throws: ContractError.self) {
            try SignatureHeaders(HeaderFields(reading("X-Synheart-Sig-Version", version)))
        }
        #expect(error?.code == .unsupportedSigVersion)
    }

    @Test func `a request that claims both schemes is invalid`() {
        let both = HeaderFields(good + [("Signature-Input", "sig=();created=1")])
        for error in [
            #expect(throws: ContractError.self) { try SignatureHeaders(both) },
            #expect(throws: ContractError.self) { try SchemeOneHeaders(both) },
            #expect(throws: ContractError.self) { try SchemeTwoHeaders(both) },
        ] { #expect(error?.code == .invalidRequest) }
    }

    @Test func `an unsigned request is invalid`() {
        let error = #expect(throws: ContractError.self) { try SignatureHeaders(HeaderFields([("Host", "a")])) }
        #expect(error?.code == .invalidRequest)
    }

    @Test func `the headers decide the scheme`() throws {
        guard case .one(let headers) = try SignatureHeaders(HeaderFields(good)) else {
            Issue.record("not scheme 1")
            return
        }
        let either = try SignatureHeaders(HeaderFields(good))
        #expect(either.appID == headers.appID && either.deviceID == headers.deviceID)
        #expect(either.timestamp == headers.timestamp && either.signature.raw == headers.signature.raw)
        #expect(SignatureScheme.one < .two)
        let error = #expect(throws: ContractError.self) { try SchemeTwoHeaders(HeaderFields(good)) }
        #expect(error?.code == .unsupportedSigVersion)
    }
}
