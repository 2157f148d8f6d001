import AuthContract
import Testing

@testable import SynheartAuth

/// Which header lines a host may add to a request.
@Suite struct HostHeadersTests {
    private func isAllowed(_ name: String, _ value: String, _ scheme: SignatureScheme) -> Bool {
        HostHeaders.problem(HeaderFields([("X-First", "1"), (name, value)]), scheme) == nil
    }

    @Test(
        arguments: [
            "Accept", "Content-Type", "Authorization", "Cookie", "Range", "X-Synheart-Other", "Signature-Agent",
        ],
        SignatureScheme.allCases)
    func `any other header is the host's own, under either scheme`(name: String, scheme: SignatureScheme) {
        #expect(isAllowed(name, "a b", scheme))
    }

    @Test(arguments: ["Content-Digest", "content-digest", "CONTENT-DIGEST"])
    func `Content-Digest is part of a scheme 2 signature alone`(name: String) {
        #expect(isAllowed(name, "a", .one) && !isAllowed(name, "a", .two))
    }

    @Test(
        arguments: [
            (0x00, false), (0x08, false), (0x09, true), (0x0A, false), (0x0D, false), (0x1F, false), (0x20, true),
            (0x21, true), (0x7E, true), (0x7F, false), (0xC3, true),
        ] as [(UInt32, Bool)], SignatureScheme.allCases)
    func `a value has no control character but the tab`(character: (UInt32, Bool), scheme: SignatureScheme) throws {
        let value = "a\(Character(try #require(Unicode.Scalar(character.0))))b"
        #expect(isAllowed("X-Mine", value, scheme) == character.1)
    }

    @Test func `an empty value and no header at all are allowed`() {
        #expect(isAllowed("X-Mine", "", .two))
        #expect(HostHeaders.problem(HeaderFields(), .two) == nil)
    }

    @Test(arguments: SignatureScheme.allCases)
    func `a problem names the header`(scheme: SignatureScheme) {
        for (name, problem) in [
            ("Host", "host is for the transport to write"), ("X-Device-ID", "x-device-id is part of the signature"),
        ] {
            #expect(HostHeaders.problem(HeaderFields([(name, "1")]), scheme) == problem)
        }
        #expect(
            HostHeaders.problem(HeaderFields([("X-Mine", "1\n2")]), scheme)
                == "the value of X-Mine has a control character")
    }
}
