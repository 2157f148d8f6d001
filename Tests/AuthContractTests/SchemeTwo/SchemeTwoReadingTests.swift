import AuthContract
import Crypto
import Foundation
import Testing

@Suite struct SchemeTwoReading {
    let request = SchemeTwoRequest()
    let good: [(String, String)]

    init() throws { good = try request.lines() }

    static let list =
        #"("@method" "@scheme" "@authority" "@path" "@query" "content-digest" "x-app-id" "x-device-id")"#
    static let keyID = "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"
    static let parameters =
        #";created=1700000000;nonce="n";keyid="\#(keyID)";tag="synheart-auth-v2";alg="ecdsa-p256-sha256""#

    func reading(_ name: String, _ value: String) -> HeaderFields {
        HeaderFields(good.map { $0.0 == name ? (name, value) : $0 })
    }

    func code(_ fields: HeaderFields) -> ErrorCode? {
        do {
            _ = try SignatureHeaders(fields)
            return nil
        } catch { return error.code }
    }

    @Test func `a signature of our profile is read`() {
        #expect(code(reading("Signature-Input", "synheart=" + Self.list + Self.parameters)) == nil)
    }

    /// The `Signature-Input` of our profile with one part replaced.
    static func input(_ part: String, as other: String) -> String {
        (list + parameters).replacingOccurrences(of: part, with: other)
    }

    static let otherProfiles: [String] = [
        // Another list of components
        "()" + parameters, input(#""@method" "#, as: ""), input(#""@method" "@scheme""#, as: #""@scheme" "@method""#),
        input(")", as: #" "date")"#), input(#""@path""#, as: #""@path";req"#),
        input(#""content-digest""#, as: #""content-digest";sf"#), input(#""x-app-id""#, as: #""X-App-ID""#),
        input(#""@path""#, as: "path"), input(#""@path""#, as: #""@path" "@path""#),
        // Another set of parameters
        list, list + parameters + ";expires=1800000000", list + parameters + ";x", input(";created=1700000000", as: ""),
        input(#";nonce="n""#, as: ""), input(#";keyid="\#(keyID)""#, as: ""),
        input(#";tag="synheart-auth-v2""#, as: ""), input(#";alg="ecdsa-p256-sha256""#, as: ""),
        // Another tag or algorithm
        input("auth-v2", as: "auth-v1"), input(#""synheart-auth-v2""#, as: "synheart-auth-v2"),
        input("p256-sha256", as: "p384-sha384"), input("ecdsa-p256-sha256", as: "hmac-sha256"),
        // No inner list at all
        "1", ":AAAA:", "?1",
    ]

    @Test(arguments: otherProfiles)
    func `another profile is unsupported`(_ input: String) {
        #expect(code(reading("Signature-Input", "synheart=" + input)) == .unsupportedSigVersion)
    }

    static let partsOutOfForm: [(String, String)] = [
        ("created=1700000000", "created=-1"), ("created=1700000000", #"created="1700000000""#),
        ("created=1700000000", "created=1700000000.0"), ("created=1700000000", "created=@1700000000"),
        ("created=1700000000", "created"), (#"nonce="n""#, #"nonce="""#), (#"nonce="n""#, #"nonce="a b""#),
        (#"nonce="n""#, "nonce=n"), (#"nonce="n""#, "nonce=1"),
        (#"nonce="n""#, "nonce=\"" + String(repeating: "n", count: 129) + "\""), (keyID, ""), (keyID, keyID + "="),
        (keyID, String(keyID.dropLast())), (keyID, keyID + "A"), (keyID, "test-key-ecc-p256"),
        (keyID, String(keyID.dropLast()) + "J"), ("created=1700000000", "created=1700000000;created=1700000000"),
    ]

    @Test(arguments: partsOutOfForm)
    func `a malformed parameter is invalid`(_ good: String, _ bad: String) {
        let parameters = Self.parameters.replacingOccurrences(of: good, with: bad)
        #expect(parameters != Self.parameters)
        #expect(code(reading("Signature-Input", "synheart=" + Self.list + parameters)) == .invalidRequest)
    }

    @Test(arguments: [0, 999_999_999_999_999] as [Int64])
    func `a time is a number of up to 15 digits, from 1970 on`(seconds: Int64) throws {
        let input =
            Self.list + Self.parameters.replacingOccurrences(of: "created=1700000000", with: "created=\(seconds)")
        let headers = try SchemeTwoHeaders(reading("Signature-Input", "synheart=" + input))
        #expect(headers.parameters.created == UnixTime(seconds))
    }

    @Test(arguments: ["n", #"\"\\"#, "!~", String(repeating: "n", count: 128)])
    func `a nonce may have any visible characters`(_ nonce: String) throws {
        let input = Self.list + Self.parameters.replacingOccurrences(of: #"nonce="n""#, with: "nonce=\"\(nonce)\"")
        let headers = try SchemeTwoHeaders(reading("Signature-Input", "synheart=" + input))
        let unescaped = nonce.replacingOccurrences(of: #"\""#, with: "\"").replacingOccurrences(of: #"\\"#, with: #"\"#)
        #expect(headers.parameters.nonce == unescaped)
        // The parameters are signed and sent in the form in which they were received.
        #expect(headers.fields[3].value == "synheart=" + input)
    }

    @Test func `parameters are read in any order`() throws {
        let input =
            Self.list
            + #";tag="synheart-auth-v2";alg="ecdsa-p256-sha256";keyid="\#(Self.keyID)";nonce="n";created=1700000000"#
        let headers = try SchemeTwoHeaders(reading("Signature-Input", "synheart=" + input))
        #expect(headers.fields[3].value == "synheart=" + input)
    }

    /// Spaces that RFC 9651 allows between items are not signed.
    @Test func `spaces in the list do not matter`() throws {
        let spaced = good.map { line in
            line.0 == "Signature-Input"
                ? (
                    line.0,
                    line.1.replacingOccurrences(of: #"" ""#, with: #""   ""#).replacingOccurrences(of: ";", with: "; ")
                )
                : line
        }
        #expect(try request.verifies(with: spaced))
    }

    @Test(arguments: [
        "", "synheart", "synheart=", "synheart=()", "synheart=::", "synheart=:AAAA:", "synheart=AAAA",
        "synheart=:\(Base64.standard.encode([UInt8](repeating: 1, count: 63))):",
        "synheart=:\(Base64.standard.encode([UInt8](repeating: 1, count: 65))):",
        "synheart=:\(Base64.url.encode([UInt8](repeating: 1, count: 64))):",
        "synheart=:\(Base64.standard.encode([UInt8](repeating: 1, count: 64))):;x",
        "other=:\(Base64.standard.encode([UInt8](repeating: 1, count: 64))):",
        "synheart=\"\(Base64.standard.encode([UInt8](repeating: 1, count: 64)))\"",
    ])
    func `a signature that is not 64 bytes is refused`(_ signature: String) {
        #expect(code(reading("Signature", signature)) == .invalidRequest)
    }

    @Test func `a request without a signature is invalid`() {
        #expect(code(HeaderFields(good.filter { $0.0 != "Signature" })) == .invalidRequest)
    }

    @Test func `a request without our label is unsupported`() {
        let relabelled = good.map { ($0.0, $0.1.replacingOccurrences(of: "synheart=", with: "sig1=")) }
        #expect(code(HeaderFields(relabelled)) == .unsupportedSigVersion)
        #expect(code(reading("Signature-Input", "")) == .unsupportedSigVersion)
    }

    /// A proxy's signature next to ours, in the same line or in another one, is ignored.
    @Test func `signatures under other labels are ignored`() throws {
        let input = #"proxy=("@method";req "forwarded");created=1;expires=2.5;alg=x;q=?0;b=::"#
        let inOneLine = good.map { line in
            switch line.0 {
            case "Signature-Input": (line.0, "\(input), \(line.1)")
            case "Signature": (line.0, "\(line.1), proxy=:AAAA:, bare")
            default: line
            }
        }
        #expect(try request.verifies(with: inOneLine))
        let inTheirOwn = [("signature-input", input)] + good + [("SIGNATURE", "proxy=:AAAA:")]
        #expect(try request.verifies(with: inTheirOwn))
    }

    @Test func `a second signature with our label is refused`() throws {
        for name in ["Signature-Input", "Signature"] {
            let line = try #require(good.first { $0.0 == name })
            #expect(code(HeaderFields(good + [line])) == .invalidRequest)
            #expect(code(reading(name, "\(line.1), \(line.1)")) == .invalidRequest)
            #expect(code(reading(name, "\(line.1), synheart")) == .invalidRequest)
        }
    }

    @Test func `every other header must be present once`() throws {
        for name in ["X-App-ID", "X-Device-ID", "Content-Digest"] {
            let line = try #require(good.first { $0.0 == name })
            #expect(code(HeaderFields(good + [line])) == .invalidRequest)
            #expect(code(HeaderFields(good.filter { $0.0 != name })) == .invalidRequest)
            #expect(code(reading(name, "\(line.1), \(line.1)")) == .invalidRequest)
            #expect(code(reading(name, "")) == .invalidRequest)
        }
    }

    @Test func `a field that is not a structured field is invalid`() {
        for name in ["Signature-Input", "Signature"] {
            for value in ["synheart=(", ",", "Synheart=1", "é", "a=1,", String(repeating: "a", count: 9000)] {
                #expect(code(reading(name, value)) == .invalidRequest)
            }
        }
    }
}

@Suite struct ContentDigests {
    /// RFC 9530 Appendix B.1.
    static let rfcBody = Array("{\"hello\": \"world\"}\n".utf8)
    static let rfcField = "sha-256=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=:"

    @Test func `the digest is the one of the RFC`() throws {
        #expect(ContentDigest(of: Self.rfcBody).field == Self.rfcField)
        #expect(try ContentDigest(field: Self.rfcField) == ContentDigest(of: Self.rfcBody))
    }

    @Test func `body, digest and field give the same value`() throws {
        let digest = ContentDigest(of: [1, 2, 3])
        #expect(try ContentDigest(sha256: digest.sha256) == digest)
        #expect(try ContentDigest(field: digest.field) == digest)
        #expect(digest.sha256 == Array(SHA256.hash(data: [1, 2, 3] as [UInt8])))
        #expect(ContentDigest(of: [1, 2, 3] as ArraySlice) == digest)
    }

    static let text = rfcField.dropFirst("sha-256=:".count).dropLast()

    @Test(arguments: [
        "", "sha-256", "sha-256=", "sha-256=::", "sha-256=:\(text)", "sha-256=\(text)", "sha-256=\"\(text)\"",
        "SHA-256=:\(text):", "sha-512=:\(text):", "sha-256=:\(text.dropLast()):", "sha-256=:\(text.dropLast(2))h=:",
        "sha-256=:\(text)=:", "sha-256=:\(text):;a", "sha-256=:\(text):, sha-512=:AAAA:", " sha-256=:\(text):",
        "sha-512=:AAAA:, sha-256=:\(text):", "sha-256=:\(text): ", "sha-256 =:\(text):", "sha-256=:AAAA:",
        "sha-256=:\(text.replacingOccurrences(of: "/", with: "_")):", "id-sha-256=:\(text):",
    ])
    func `a malformed digest field is refused`(_ field: String) {
        #expect(throws: ContractError.self) { try ContentDigest(field: field) }
    }

    @Test(arguments: [0, 31, 33, 64]) func `a digest of another length is refused`(count: Int) {
        #expect(throws: ContractError.self) { try ContentDigest(sha256: [UInt8](repeating: 0, count: count)) }
    }
}

@Suite struct RequestOrigins {
    @Test(arguments: [
        ("https", "example.com", "https://example.com"), ("https", "EXAMPLE.com", "https://example.com"),
        ("HTTPS", "example.com:443", "https://example.com"), ("http", "example.com:80", "http://example.com"),
        ("http", "example.com:443", "http://example.com:443"), ("https", "example.com:80", "https://example.com:80"),
        ("https", "example.com:65535", "https://example.com:65535"), ("https", "a_b-c.~d", "https://a_b-c.~d"),
        ("http", "127.0.0.1:8080", "http://127.0.0.1:8080"), ("https", "[::1]", "https://[::1]"),
        ("https", "[2001:DB8::1]:443", "https://[2001:db8::1]"),
        ("http", "[::ffff:1.2.3.4]:1", "http://[::ffff:1.2.3.4]:1"),
        ("https", "localhost", "https://localhost"), ("https", "example.com.", "https://example.com."),
    ])
    func `an origin is normalised`(_ scheme: String, _ authority: String, _ text: String) throws {
        let origin = try RequestOrigin(scheme: scheme, authority: authority)
        #expect(origin.description == text)
        #expect(try RequestOrigin(text) == origin)
        #expect(try RequestOrigin("\(scheme)://\(authority)") == origin)
    }

    @Test(arguments: [
        "", ":", ":443", "example.com:", "example.com:0", "example.com:00443", "example.com:0443", "example.com:65536",
        "example.com:+443", "example.com:-1", "example.com:44a", "example.com:443:443", "user@example.com",
        "user:pw@example.com", "exämple.com", "example.com/", "example.com?", "example.com#", "example com",
        " example.com", "example.com\n", "ex%61mple.com", "a,b", "[::1", "::1", "[]", "[1]", "[::1]x", "[::1]:",
        "[[::1]]", "[::1%25eth0]", "[::g]", "[::1]]", "]", "[", "x[::1]", String(repeating: "a", count: 256),
        "\u{212A}.example",
    ])
    func `a malformed authority is refused`(_ authority: String) {
        #expect(throws: ContractError.self) { try RequestOrigin(scheme: "https", authority: authority) }
        #expect(throws: ContractError.self) { try RequestOrigin("https://\(authority)") }
    }

    @Test(arguments: [
        ("localhost", true), ("LOCALHOST:8080", true), ("127.0.0.1", true), ("127.255.0.1:1", true), ("[::1]", true),
        ("[::1]:8443", true), ("localhost.example.com", false), ("127.0.0.1.example.com", false), ("127.0.0", false),
        ("127.0.0.256", false), ("128.0.0.1", false), ("[::2]", false), ("[::1:1]", false), ("example.com", false),
        ("127.0.0.", false), ("0.0.0.0", false), ("alocalhost", false),
    ])
    func `only local authorities are loopback`(_ authority: String, _ isLoopback: Bool) throws {
        #expect(try RequestOrigin(scheme: "http", authority: authority).isLoopback == isLoopback)
    }

    @Test(arguments: [
        ("https", "example.com", true), ("https", "localhost", true), ("http", "localhost:80", true),
        ("http", "[::1]:8080", true), ("http", "example.com", false), ("http", "127.0.0.1.example.com", false),
    ])
    func `an origin is secure over https and on this machine`(_ scheme: String, _ host: String, isSecure: Bool) throws {
        #expect(try RequestOrigin(scheme: scheme, authority: host).isSecure == isSecure)
    }

    @Test func `a host has 255 characters at most`() throws {
        let host = String(repeating: "a", count: 255)
        #expect(try RequestOrigin(scheme: "https", authority: host).authority == host)
        #expect(throws: ContractError.self) { try RequestOrigin(scheme: "https", authority: host + "a") }
    }

    @Test(arguments: ["", "ftp", "wss", "https:", "http ", "httpſ"]) func `another scheme is refused`(_ scheme: String)
    {
        #expect(throws: ContractError.self) { try RequestOrigin(scheme: scheme, authority: "example.com") }
    }

    @Test(arguments: ["https://a.example/", "https://a.example/v1", "https://a.example?b", "https://a.example#b"])
    func `an origin with a path is refused for its path`(_ text: String) {
        let error = #expect(throws: ContractError.self) { try RequestOrigin(text) }
        #expect(error?.description.contains("no path") == true)
    }

    @Test(arguments: ["", "https", "https:", "https:/", "https:/a", "https//a", "//a", "a", "a:b", "https://a/"])
    func `a malformed origin is refused`(_ text: String) {
        #expect(throws: ContractError.self) { try RequestOrigin(text) }
    }
}
