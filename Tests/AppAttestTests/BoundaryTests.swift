import AppAttest
import AttestationTestKit
import Bytes
import CBOR
import Crypto
import Foundation
import Testing

/// The last accepted and the first refused value of every bound.
@Suite("Bounds")
struct BoundaryTests {
    private static let appID = "TEAMID1234.com.example.app"
    /// 2020-11-01T00:00:00Z: from then on a receipt must have no signed attributes.
    private static let endOfAttributes = Date(timeIntervalSince1970: 1_604_188_800)
    private static let authority = try? AppleAuthority(from: endOfAttributes - 30 * 86400)

    private func device(_ system: AppleSystem = .iOS("14.0")) throws -> AppleDevice {
        AppleDevice(system: system, app: AppleApp(appID: Self.appID), authority: try #require(Self.authority))
    }

    /// Makes an attestation at this time, and verifies its receipt for the same time. Returns the code of the refusal, or nil if
    /// the receipt is accepted.
    private func receipt(
        at date: Date, _ change: (inout AppleReceiptOptions) -> Void
    ) throws -> AppAttestError.Code? {
        let key = AppleAttestKey()
        var options = AppleAttestationOptions()
        change(&options.receipt)
        let object = try AttestationObject(
            parsing: device().attest(key, clientDataHash: [7], at: date, options: options))
        let expectations = ReceiptExpectations(
            appIDs: [try #require(AppleAppID(Self.appID))], keyID: try #require(KeyID(key.keyID)),
            clientDataHash: ClientDataHash([7]), environment: .production)
        let authority = try #require(Self.authority)
        let anchors = try #require(TrustAnchors(pem: authority.rootsPEM))
        return code {
            try ReceiptVerifier(trustAnchors: anchors).verify(object.receipt, against: expectations, at: date)
        }
    }

    @Test("attributes without a signature are tolerated until the last millisecond of October 2020")
    func endOfSignedAttributes() throws {
        for seconds in [-86400, -1, -0.001] {
            #expect(
                try receipt(at: Self.endOfAttributes + seconds) { $0.signedAttributes = .appleUntil2020() } == nil)
        }
        for seconds in [0, 0.001, 86400] {
            #expect(
                try receipt(at: Self.endOfAttributes + seconds) { $0.signedAttributes = .appleUntil2020() }
                    == .malformedSignedAttributes)
        }
    }

    @Test(
        "attributes name the second of creation or the next one",
        arguments: [(-1, false), (0, true), (1, true), (2, false)] as [(TimeInterval, Bool)])
    func signingTime(delay: TimeInterval, isAccepted: Bool) throws {
        for fraction in [0, 0.001, 0.999] {
            #expect(
                try receipt(at: Self.endOfAttributes - 3600 + fraction) {
                    $0.signedAttributes = .appleUntil2020(delay: delay)
                } == (isAccepted ? nil : .contentDigestMismatch))
        }
    }

    @Test("a fraction of a second is not rounded up to the next one")
    func fractionOfASecond() throws {
        // Apple writes the creation time with milliseconds. The parser accepts up to nine digits of a second.
        let date = Self.endOfAttributes - 3600
        func accepted(_ text: String, delay: TimeInterval) throws -> AppAttestError.Code? {
            try receipt(at: date) { options in
                options.signedAttributes = .appleUntil2020(delay: delay)
                options.fields = { fields in fields.map { $0.type == 12 ? .init(12, text) : $0 } }
            }
        }
        #expect(try accepted("2020-10-31T23:00:00.999999Z", delay: 0) == nil)
        #expect(try accepted("2020-10-31T23:00:00.999999Z", delay: 2) == .contentDigestMismatch)
    }

    @Test("attributes other than Apple's, and about other content, are refused in 2020 too")
    func otherAttributes() throws {
        let date = Self.endOfAttributes - 3600
        #expect(try receipt(at: date) { $0.signedAttributes = .unsigned } == .malformedSignedAttributes)
        #expect(try receipt(at: date) { $0.signedAttributes = .signed } == .malformedSignedAttributes)
    }

    @Test("a root allows the intermediate only if its path length does")
    func rootPathLength() throws {
        let now = Self.endOfAttributes
        for (length, isAccepted) in [(0, false), (1, true), (2, true)] {
            var options = AppleAuthority.Options()
            options.rootPathLength = length
            let authority = try AppleAuthority(from: now - 86400, options: options)
            let device = AppleDevice(system: .iOS("27.0"), app: AppleApp(appID: Self.appID), authority: authority)
            let key = AppleAttestKey()
            let object = try device.attest(key, clientDataHash: [1], at: now)
            let policy = AppAttestPolicy(appIDs: [try #require(AppleAppID(Self.appID))])
            let verifier = AttestationVerifier(
                policy: policy, trustAnchors: try #require(TrustAnchors(pem: authority.rootsPEM)))
            let keyID = try #require(KeyID(key.keyID))
            #expect(
                code { try verifier.verify(object, keyID: keyID, clientDataHash: ClientDataHash([1]), at: now) }
                    == (isAccepted ? nil : .issuerNotAuthority))
        }
    }

    @Test("objects are read up to their largest size")
    func sizes() throws {
        func refusal(_ count: Int, _ read: ([UInt8]) throws -> Void) -> AppAttestError.Code? {
            code { try read([UInt8](repeating: 0, count: count)) }
        }
        #expect(refusal(16 * 1024) { _ = try AttestationObject(parsing: $0) } == .malformedObject)
        #expect(refusal(16 * 1024 + 1) { _ = try AttestationObject(parsing: $0) } == .tooLarge)
        #expect(refusal(4 * 1024) { _ = try AssertionObject(parsing: $0) } == .malformedObject)
        #expect(refusal(4 * 1024 + 1) { _ = try AssertionObject(parsing: $0) } == .tooLarge)
        #expect(refusal(16 * 1024) { _ = try Receipt(parsing: $0) } == .malformedReceipt)
        #expect(refusal(16 * 1024 + 1) { _ = try Receipt(parsing: $0) } == .tooLarge)
    }

    @Test("an assertion has 37 bytes of authenticator data at least, and may have no more")
    func authenticatorData() throws {
        let appID = try #require(AppleAppID(Self.appID))
        func refusal(_ count: Int) throws -> AppAttestError.Code? {
            var key = AppleAttestKey()
            var options = AppleAssertionOptions()
            options.authenticatorData = { Array($0.prefix(count)) }
            let bytes = try device(.iOS("27.0")).assert(&key, clientDataHash: [1], options: options)
            let publicKey = key.privateKey.publicKey
            return code {
                try AssertionVerifier(policy: AppAttestPolicy(appIDs: [appID])).verify(
                    AssertionObject(parsing: bytes), clientDataHash: ClientDataHash([1]), publicKey: publicKey,
                    attestedExtensions: true, previousCounter: 0)
            }
        }
        #expect(try refusal(36) == .malformedAuthenticatorData)
        #expect(try refusal(37) == nil)
        #expect(try refusal(38) == .malformedAuthenticatorData)
    }

    @Test("values are read up to their largest size")
    func values() {
        #expect(AppleAppID("T." + String(repeating: "a", count: 253)) != nil)
        #expect(AppleAppID("T." + String(repeating: "a", count: 254)) == nil)
        #expect(BundleVersion("1.2.3.4.5.6.7.8") != nil)
        #expect(BundleVersion(String(repeating: "9", count: 18)) != nil)
        #expect(RFC3339.date("2026-04-21T18:13:12.123456789Z") != nil)
        #expect(RFC3339.date("2024-02-29T23:59:59Z") != nil)
        #expect(RFC3339.date("2000-02-29T00:00:00Z") != nil)
        #expect(RFC3339.date("1900-02-29T00:00:00Z") == nil)
        for end in ["01-31", "03-31", "04-30", "06-30", "09-30", "11-30", "12-31"] {
            #expect(RFC3339.date("2026-\(end)T00:00:00Z") != nil)
        }
        for end in ["01-32", "06-31", "09-31", "11-31", "12-32", "00-01"] {
            #expect(RFC3339.date("2026-\(end)T00:00:00Z") == nil)
        }
    }
}
