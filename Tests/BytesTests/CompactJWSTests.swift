import Bytes
import Testing

@Suite("Compact JWS")
struct CompactJWSTests {
    /// ECDSA signatures differ each time, so this test's signer returns the first four bytes of the RFC's signature.
    @Test("the token of RFC 7515 appendix A.3 is written byte for byte")
    func example() {
        let payload = "{\"iss\":\"joe\",\r\n \"exp\":1300819380,\r\n \"http://example.com/is_root\":true}"
        let input =
            "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ"
        var signed: [UInt8] = []
        let token = CompactJWS.sign(header: Array(#"{"alg":"ES256"}"#.utf8), payload: Array(payload.utf8)) { bytes in
            signed = bytes
            return [14, 209, 33, 83]
        }
        #expect(signed == Array(input.utf8))
        #expect(token == input + ".DtEhUw")
    }

    @Test("an error of the signer ends the signing")
    func failure() {
        struct NoKey: Error {}
        #expect(throws: NoKey.self) { try CompactJWS.sign(header: [], payload: []) { _ in throw NoKey() } }
    }
}
