import Foundation
import Testing

@testable import AuthProxy

/// The target that the backend receives.
@Suite struct `The forwarded target` {
    @Test(arguments: [
        "/", "//a", "/a/../b", "/./a", "/%2Fx", "/%2e%2E/a", "/;x=1", "/a;b/c", "/a?", "/?", "/a?b?c", "/a?x=a+b&c='",
        "///",
        "/a!$&'()*+,;=:@-._~", "/a%00b", "/a?%0d%0a", "/*", "/a//b//", "/a/..", "/a?x=//..;%2F",
    ])
    func `arrives as it was signed`(target: String) {
        #expect(ForwardedTarget.escaped(target) == target)
    }

    @Test(arguments: [
        ("/a?q[size]=1", "/a?q%5Bsize%5D=1"), ("/[x]|{y}", "/%5Bx%5D%7C%7By%7D"), ("/a\\b^c`", "/a%5Cb%5Ec%60"),
        ("/\"<>\"", "/%22%3C%3E%22"),
    ])
    func `has escapes where a URL may not have the character`(target: String, expected: String) {
        #expect(ForwardedTarget.escaped(target) == expected)
    }

    @Test(arguments: [
        "", "a", "*", "?x", "http://a/b", "example.com:443", "/a%", "/a%2", "/a%zz", "/a?x=%", "/a#b", "/a b", "/a\tb",
        "/é",
        "/a\u{0}", "/a\u{7F}", "/%FF", "/a%E9/b", "/%80?x", "/%C3",
    ])
    func `is refused where servers differ about it`(target: String) {
        #expect(ForwardedTarget.escaped(target) == nil)
    }

    /// The HTTP client parses the target as a URL, and sends the URL's parts.
    @Test(arguments: [
        "//a", "/a/../b", "/%2Fx;y", "/a?", "/a?q[size]=1", "/[x]|{y}\\^`\"<>", "/a?b?c=%5B", "/..", "/*",
        "/%C3%A9", "/%00", "/?%FF",
    ])
    func `is not changed by the HTTP client's URL`(target: String) throws {
        let escaped = try #require(ForwardedTarget.escaped(target))
        let url = try #require(URL(string: "http://127.0.0.1:1" + escaped))
        let path = try #require(URLComponents(url: url, resolvingAgainstBaseURL: true)?.percentEncodedPath)
        // AsyncHTTPClient sends `/` if `URL.path` is empty.
        #expect(!url.path.isEmpty)
        #expect(path + (url.query.map { "?" + $0 } ?? "") == escaped)
        #expect(url.host == "127.0.0.1" && url.port == 1)
    }
}
