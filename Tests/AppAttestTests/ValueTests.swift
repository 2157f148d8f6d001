import AppAttest
import Crypto
import Foundation
import Testing

@Suite struct Values {
    @Test func `the built-in roots are Apple's`() throws {
        func fingerprints(_ certificates: [AppleCertificate]) -> [String] {
            certificates.map {
                SHA256.hash(data: $0.bytes).map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
            }
        }
        #expect(
            fingerprints(TrustAnchors.apple.attestation) == [
                "1cb9823ba28ba6ad2d33a006941de2ae4f513ef1d4e831b9f7e0fa7b6242c932"
            ])
        #expect(
            fingerprints(TrustAnchors.apple.receipts) == [
                "63343abfb89a6a03ebb57e9b3f5fa7be7c4f5c756f3017b3a8c488c3653e9179"
            ])
    }

    @Test func `trust anchors are never silently empty`() {
        #expect(TrustAnchors(pem: "") == nil)
        #expect(TrustAnchors(pem: "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n") == nil)
        #expect(TrustAnchors(attestationRoots: [], receiptRoots: []) == nil)
        #expect(TrustAnchors(attestationRoots: [[0x30, 0]], receiptRoots: [[0x30, 0]]) == nil)
    }

    @Test func `a Mac's access control is the value that Apple publishes`() {
        let published = "MEAMAjExMDowCQwCb2uhAwEB/zAJDAJvYaEDAQH/MAsMBG9kZWyhAwEB/zAVDARvc2duoAYMBHJzZWMwBaYDAgEB"
        #expect(Data(AttestationSteps.macAccessControl).base64EncodedString() == published)
    }

    @Test(arguments: [
        "", "nodot", ".bundle", "TEAM.", "TEAM.com.exa mple", "TEAM.é", String(repeating: "a.", count: 128),
    ])
    func `text of any other form is not an App ID`(_ text: String) { #expect(AppleAppID(text) == nil) }

    @Test func `a key id has 32 bytes and one text`() {
        #expect(KeyID([UInt8](repeating: 0, count: 31)) == nil)
        #expect(KeyID(base64: "not base64") == nil)
        #expect(
            KeyID(base64: "lQc/dOWrL7j4B2ZV0He+1XjrQfJNh/40V3bPbXDt7bI=")?.base64
                == "lQc/dOWrL7j4B2ZV0He+1XjrQfJNh/40V3bPbXDt7bI=")
        // Two other texts for the same 32 bytes: one has surplus bits after the last byte, the other has no padding. Both are
        // refused, so that a key id has only one text.
        #expect(KeyID(base64: "lQc/dOWrL7j4B2ZV0He+1XjrQfJNh/40V3bPbXDt7bJ=") == nil)
        #expect(KeyID(base64: "lQc/dOWrL7j4B2ZV0He+1XjrQfJNh/40V3bPbXDt7bI") == nil)
    }

    @Test func `bundle versions are compared by their numbers`() throws {
        func version(_ text: String) throws -> BundleVersion { try #require(BundleVersion(text)) }
        #expect(try version("9") < version("10"))
        #expect(try version("1.2") < version("1.10"))
        #expect(try version("1.2") == version("1.2.0"))
        #expect(try version("1.2") < version("1.2.1"))
        #expect(try version("1314") > version("2"))
        for text in ["", "1.", ".1", "1.2b3", "1..2", "-1", "1.2.3.4.5.6.7.8.9", String(repeating: "9", count: 19)] {
            #expect(BundleVersion(text) == nil)
        }
    }
}
