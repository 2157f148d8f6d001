import Testing

@testable import AuthContract

@Suite struct SignatureBases {
    let request = SchemeTwoRequest()

    @Test func `the base is the one of RFC 9421 section 2.5`() throws {
        let text = String(decoding: try request.base().bytes, as: UTF8.self)
        #expect(
            text == """
                "@method": POST
                "@scheme": https
                "@authority": api.example.com
                "@path": /v1/hsi
                "@query": ?a=b%20c
                "content-digest": sha-256=:AVq9f1zFei3ZS3WQ8ErYCEJzkF7jPsXOvq5iJ2qX+GI=:
                "x-app-id": com.example.app
                "x-device-id": 123e4567-e89b-42d3-a456-426614174000
                "@signature-params": ("@method" "@scheme" "@authority" "@path" "@query" "content-digest" "x-app-id" \
                "x-device-id");created=1700000000;nonce="7f1c2a34-5b6d-4e8f-9a0b-1c2d3e4f5a6b";\
                keyid="\(SchemeTwoRequest.key.thumbprint)";tag="synheart-auth-v2";alg="ecdsa-p256-sha256"
                """)
    }

    /// One key may sign under both schemes, because the signed bytes always differ: a message of scheme 1 starts with a method,
    /// and a signature base of scheme 2 starts with a quotation mark.
    @Test func `a base never begins as a message of scheme 1`() throws {
        #expect(try request.base().bytes.first == UInt8(ascii: "\""))
        #expect(!UInt8(ascii: "\"").isTokenCharacter)
    }

    @Test func `a missing query and an empty one are both signed as a question mark`() throws {
        var (none, empty) = (request, request)
        none.query = nil
        empty.query = ""
        #expect(try none.base() == empty.base())
        #expect(String(decoding: try none.base().bytes, as: UTF8.self).contains("\"@query\": ?\n"))
    }

    @Test(arguments: ["", "GET POST", "GET\n", "G\"T", "GÉT", "GET:", "P0ST", "A_B", String(repeating: "A", count: 33)])
    func `a method that is not 1 to 32 letters or hyphens is refused`(_ method: String) {
        var changed = request
        changed.method = method
        #expect(throws: ContractError.self) { try changed.base() }
    }

    @Test func `the method keeps its case`() throws {
        var changed = request
        changed.method = "post"
        #expect(try changed.base() != request.base())
    }

    /// A line break in a value would let one component pass for two.
    @Test(arguments: ["\n", "a\nb", "a\r", "\u{0}", "\t", "é", "\u{7F}", "\u{2028}"])
    func `a value that is not printable ASCII is refused`(_ value: String) {
        #expect(throws: ContractError.self) {
            try SignatureBase(lines: [("x", value)], parameters: "()")
        }
    }

    @Test func `the base digest does not depend on the signature`() throws {
        let base = try request.base()
        #expect(base.digest.count == 32)
        #expect(try base.digest == request.base().digest)
        var another = request
        another.nonce = "123e4567-e89b-42d3-a456-426614174000"
        #expect(try base.digest != another.base().digest)
    }
}
