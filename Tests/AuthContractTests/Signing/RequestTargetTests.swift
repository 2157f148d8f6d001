import AuthContract
import Testing

@Suite struct RequestPaths {
    @Test(arguments: [
        "/", "//", "/v1/hsi", "/v1/hsi/", "/a//b", "/%0A", "/%2F%2f", "/a%", "/...", "/..a", "/a..", "/.well-known",
        "/%2e%2e%2e", "/a%2e", "/~user/!$&'()*+,;=:@", "/\\", "/%252e%252e/", "/.%2", "/%2ea", "/a;v=1.", "/a%2f.b",
        "/a;.b", "/...;", "/%5c%3B", "/a%0", "/%01",
    ])
    func `a valid path stays as it was sent`(_ text: String) throws {
        #expect(try RequestPath(text).text == text)
        #expect(try RequestPath(text).description == text)
    }

    @Test(arguments: [
        "", "v1", "*", "http://example.com/v1", " /v1", "/v1 ", "/a b", "/a\n", "/a\r\nb", "/a\u{0}", "/a\u{7F}", "/ä",
        "/a#b", "/a?b", "/e\u{301}",
    ])
    func `a malformed path is refused`(_ text: String) {
        #expect(throws: ContractError.self) { try RequestPath(text) }
    }

    @Test(arguments: [
        "/.", "/..", "/./a", "/../a", "/a/.", "/a/..", "/a/./b", "/a/../b", "/%2e", "/%2E", "/%2e%2e", "/%2E%2e/a",
        "/.%2e", "/%2e.", "/a/%2E./b", "//..", "/a/..//", "/..;x/", "/a;../", "/a;..", "/;./a", "/a/..\\pay", "/\\..",
        "/x/..%2fpay", "/x%2F..%2Fpay", "/x%2f%2e%2E", "/x/..%5Cpay", "/x%5c.", "/x/..%3bpay", "/x%3B.%3Ba", "/.;",
    ])
    func `a path with dot segments is refused`(_ text: String) {
        #expect(throws: ContractError.self) { try RequestPath(text) }
    }

    @Test(arguments: ["/%00", "/a%00", "/pay%00", "/a%00/b", "/%2e%00"])
    func `a path with an escaped zero byte is refused`(_ text: String) {
        #expect(throws: ContractError.self) { try RequestPath(text) }
    }

    @Test func `a path is below its own prefixes alone`() throws {
        let path = try RequestPath("/ingest/v1")
        for prefix in ["/ingest", "/ingest/", "/ingest/v1", "", "/"] { #expect(path.isBelow(prefix)) }
        for prefix in ["/ing", "/ingest/v", "/ingest/v1/", "/ingest/v1/x", "/Ingest"] {
            #expect(!path.isBelow(prefix))
        }
    }

    /// Any bytes: a path is accepted unchanged or refused, but never corrected.
    @Test func `any path is accepted unchanged or refused`() {
        var random = SeededNumbers(seed: 7)
        let alphabet = Array("/.%2eE?#a\\ ~;fFcC35bB0".utf8) + [0x00, 0x0A, 0x7F, 0xC3, 0xA9]
        for _ in 0..<20_000 {
            let bytes = (0..<Int.random(in: 0...10, using: &random)).compactMap { _ in
                alphabet.randomElement(using: &random)
            }
            let text = String(decoding: [UInt8(ascii: "/")] + bytes, as: UTF8.self)
            guard let path = try? RequestPath(text) else { continue }
            #expect(path.text == text)
            var decoded = text.lowercased()
            #expect(!decoded.contains("%00"))
            for (escape, meant) in [("%2e", "."), ("%2f", "/"), ("%5c", "\\"), ("%3b", ";")] {
                decoded = decoded.split(separator: escape, omittingEmptySubsequences: false).joined(separator: meant)
            }
            let segments = decoded.split { "/\\;".contains($0) }
            #expect(!segments.contains(".") && !segments.contains(".."), "\(text)")
        }
    }
}

@Suite struct RequestTargets {
    @Test(
        arguments: [
            ("/a", "/a", nil), ("/a?", "/a", ""), ("/a?b", "/a", "b"), ("/a?b?c", "/a", "b?c"),
            ("/?../%2e", "/", "../%2e"), ("/a?!~", "/a", "!~"), ("/a?~\"!", "/a", "~\"!"),
        ] as [(String, String, String?)])
    func `a target is split at the first question mark`(_ text: String, _ path: String, _ query: String?) throws {
        let target = try RequestTarget(text)
        #expect(target.path.text == path)
        #expect(target.query == query)
    }

    @Test(arguments: [
        "", "?", "?a", "*", "a", "http://example.com/", "example.com:443", "/a?b c", "/a?b#c", "/a?é", "/a?\u{7F}",
        "/a?\n", "/..?a",
    ])
    func `a malformed target is refused`(_ text: String) {
        #expect(throws: ContractError.self) { try RequestTarget(text) }
    }
}
