import AppAttest
import AttestationTestKit
import CBOR
import Crypto
import Foundation
import Testing

/// Receipts with one fault, each refused for that fault.
@Suite struct ForgedReceipts {
    static let now = Date(timeIntervalSince1970: 1_790_000_000)
    typealias Field = AppleReceiptOptions.Field

    struct Forgery: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let code: AppAttestError.Code?
        var authority: (@Sendable (inout AppleAuthority.Options) -> Void)?
        let change: @Sendable (inout AppleReceiptOptions) -> Void

        init(
            _ name: String, _ code: AppAttestError.Code?,
            _ change: @escaping @Sendable (inout AppleReceiptOptions) -> Void = { _ in }
        ) {
            testDescription = name
            self.code = code
            self.change = change
        }

        func makeAuthority() throws -> AppleAuthority {
            guard let authority else { return try #require(ForgedReceipts.authority) }
            var options = AppleAuthority.Options()
            authority(&options)
            return try AppleAuthority(from: ForgedReceipts.now - 30 * 86400, options: options)
        }

        static func authority(
            _ name: String, _ code: AppAttestError.Code?,
            _ change: @escaping @Sendable (inout AppleAuthority.Options) -> Void
        ) -> Self {
            var forgery = Self(name, code)
            forgery.authority = change
            return forgery
        }
    }

    static let authority = try? AppleAuthority(from: now - 30 * 86400)
    static let other = try? AppleAuthority(from: now - 30 * 86400)

    /// Signer, intermediate and root of the other authority.
    static let otherCertificates: [[UInt8]] = {
        nonisolated(unsafe) var certificates: [[UInt8]] = []
        guard let other else { return [] }
        var options = AppleReceiptOptions()
        options.certificates = { list in
            certificates = list
            return list
        }
        let device = AppleDevice(
            system: .iOS("27.0"), app: AppleApp(appID: "TEAMID1234.com.example.app"), authority: other)
        _ = try? device.exchangedReceipt(
            for: AppleAttestKey(), clientDataHash: [], riskMetric: 1, at: now, options: options)
        return certificates
    }()

    static func fields(
        _ name: String, _ code: AppAttestError.Code?, _ change: @escaping @Sendable ([Field]) -> [Field]
    ) -> Forgery {
        Forgery(name, code) { $0.fields = change }
    }

    static func replaced(_ name: String, _ code: AppAttestError.Code?, _ field: Field) -> Forgery {
        fields(name, code) { $0.map { $0.type == field.type ? field : $0 } }
    }

    static func without(_ type: Int) -> Forgery {
        fields("no field \(type)", type == 7 ? nil : .fieldMissing) { $0.filter { $0.type != type } }
    }

    static let forgeries: [Forgery] = [
        Forgery("nothing wrong", nil),
        Forgery("chunks of one byte", nil) { $0.chunkSize = 1 },
        Forgery("one chunk of any size", nil) { $0.chunkSize = 65536 },
        Forgery("DER instead of BER", nil) { $0.isIndefinite = false },
        Forgery("the chain without its root", nil) { $0.certificates = { Array($0.prefix(2)) } },
        Forgery("the chain in another order", nil) { $0.certificates = { $0.reversed() } },
        fields("the fields in another order", nil) { $0.reversed() },
        fields("an unknown field", nil) { $0 + [Field(99, "new")] },
        fields("no token", nil) { $0.filter { $0.type != 5 } },

        Forgery("attributes that are signed", .malformedSignedAttributes) { $0.signedAttributes = .signed },
        // Apple's receipts until September 2020 had four attributes that no signature covers. The verifier accepts only
        // exactly these four, and only in receipts from before November 2020.
        Forgery("two unsigned attributes instead of Apple's four", .malformedSignedAttributes) {
            $0.signedAttributes = .unsigned
        },
        Forgery("attributes about other content", .malformedSignedAttributes) {
            $0.signedAttributes = .unsignedOfOtherContent
        },
        Forgery("a byte after it", .malformedReceipt) { $0.appended = [0] },
        Forgery("two signers", .wrongSignerCount) { $0.signerInfos = 2 },
        Forgery("no signer", .malformedReceipt) { $0.signerInfos = 0 },
        .authority("a signer that is not for receipts", .signerNotForReceipts) { $0.signerIsForReceipts = false },
        .authority("a signer that had expired", .certificateExpired) { $0.signerLife = 30 * 86400 - 1 },
        Forgery("SHA-1", .algorithmNotAllowed) { $0.algorithm = .sha1 },
        Forgery("SHA-384", .algorithmNotAllowed) { $0.algorithm = .sha384 },
        Forgery("another root", .untrustedChain) { $0.signedBy = other },
        Forgery("another signer's certificates", .signerMismatch) { options in
            options.certificates = { _ in [] }
        },
        Forgery("no intermediate", .untrustedChain) { $0.certificates = { [$0[0], $0[2]] } },
        Forgery("an intermediate twice", .untrustedChain) { $0.certificates = { [$0[0], $0[1], $0[1]] } },
        Forgery("a signer twice", .signerMismatch) { $0.certificates = { [$0[0], $0[0], $0[1]] } },
        Forgery("a root that is another's", .untrustedChain) { options in
            options.certificates = { [$0[0], $0[1], other?.receiptRoot ?? []] }
        },
        Forgery("a root twice", .untrustedChain) { $0.certificates = { $0 + [$0[2]] } },
        Forgery("signer's information that names another issuer", .signerMismatch) {
            $0.namedIssuer = [0x30, 0x0D, 0x31, 0x0B, 0x30, 0x09, 0x06, 0x03, 0x55, 0x04, 0x03, 0x0C, 0x02, 0x63, 0x61]
        },
        Forgery("signer's information that names another serial number", .signerMismatch) {
            $0.namedSerialNumber = [0x01]
        },
        Forgery("another authority's certificates of the same names", .signerMismatch) { options in
            options.certificates = { _ in otherCertificates }
        },
        Forgery("a second intermediate of the same name", .untrustedChain) { options in
            options.certificates = { $0 + [otherCertificates[1]] }
        },
        Forgery("a second intermediate of the same name before the first", .untrustedChain) { options in
            options.certificates = { [otherCertificates[1]] + $0 }
        },
        Forgery("five certificates", .malformedReceipt) { $0.certificates = { $0 + $0 } },
        Forgery("a certificate that is none", .malformedReceipt) { $0.certificates = { [$0[0], $0[1], [0x30, 0]] } },

        without(2), without(3), without(4), without(6), without(7), without(12), without(21),
        fields("field 21 twice", .fieldDuplicated) { $0 + [$0[$0.count - 1]] },
        fields("field 6 twice", .fieldDuplicated) { $0 + [Field(6, "ATTEST")] },
        replaced("an unknown kind", .fieldMalformed, Field(6, "OTHER")),
        replaced("a time that is none", .fieldMalformed, Field(12, "yesterday")),
        replaced("an App ID that is not UTF-8", .fieldMalformed, Field(2, [0xFF])),
        replaced("another app", .appIDNotAllowed, Field(2, "TEAMID1234.com.example.other")),
        replaced("a key that is none", .fieldMalformed, Field(3, [1, 2, 3])),
        replaced("another hash", .clientDataHashMismatch, Field(4, [UInt8](repeating: 0, count: 32))),
        replaced("the sandbox in production", .environmentMismatch, Field(7, "sandbox")),
        Forgery("six minutes old", .receiptTooOld) { $0.age = -360 },
        Forgery("from the future", .createdInFuture) { $0.age = 120 },

        Forgery("a metric", nil) { $0.riskMetric = 3 },
        Forgery("a metric twice", .fieldDuplicated) {
            $0.riskMetric = 3
            $0.fields = { $0 + [Field(17, "3")] }
        },
        Forgery("no metric where there must be one", .fieldMissing) {
            $0.riskMetric = 3
            $0.fields = { $0.filter { $0.type != 17 } }
        },
        Forgery("a metric that is no number", .fieldMalformed) {
            $0.riskMetric = 3
            $0.fields = { $0.map { $0.type == 17 ? Field(17, "many") : $0 } }
        },
        Forgery("no not-before where there must be one", .fieldMissing) {
            $0.riskMetric = 3
            $0.fields = { $0.filter { $0.type != 19 } }
        },
        fields("64 fields", nil) { $0 + (100..<100 + 64 - $0.count).map { Field($0, "") } },
        fields("65 fields", .malformedReceipt) { $0 + (100..<100 + 65 - $0.count).map { Field($0, "") } },
        replaced("another token", nil, Field(5, "token")),
        Forgery("a metric of 0", nil) { $0.riskMetric = 0 },
        Forgery("a negative metric", .fieldMalformed) { $0.riskMetric = -1 },
        fields("more than 16 KiB", .tooLarge) { $0 + [Field(99, [UInt8](repeating: 0, count: 16 * 1024))] },
    ]

    @Test(arguments: forgeries) func `a receipt in which one thing is wrong is refused for it`(
        _ forgery: Forgery
    ) throws {
        #expect(try refusal(forgery) { _ in } == forgery.code)
    }

    func refusal(
        _ forgery: Forgery, _ change: (inout ReceiptExpectations) throws -> Void
    ) throws -> AppAttestError.Code? {
        let authority = try forgery.makeAuthority()
        let appID = "TEAMID1234.com.example.app"
        let device = AppleDevice(system: .iOS("27.0.1"), app: AppleApp(appID: appID), authority: authority)
        let key = AppleAttestKey()
        var options = AppleAttestationOptions()
        forgery.change(&options.receipt)
        options.encode = { map in map.entries[1].value.map?["receipt"]?.bytes ?? [] }
        let receipt = try device.attest(key, clientDataHash: [7], at: Self.now, options: options)
        let anchors = try #require(
            TrustAnchors(attestationRoots: [authority.attestationRoot], receiptRoots: [authority.receiptRoot]))
        var expectations = ReceiptExpectations(
            appIDs: [try #require(AppleAppID(appID))], keyID: try #require(KeyID(key.keyID)),
            clientDataHash: ClientDataHash([7]), environment: .production)
        try change(&expectations)
        return code { try ReceiptVerifier(trustAnchors: anchors).verify(receipt, against: expectations, at: Self.now) }
    }

    @Test func `a receipt of another key is refused`() throws {
        let key = AppleAttestKey()
        #expect(try refusal(Forgery("", nil)) { $0.keyID = try #require(KeyID(key.keyID)) } == .publicKeyMismatch)
    }

    /// The attestation verifies, whatever is wrong with its receipt.
    @Test func `a receipt that fails does not fail its attestation`() throws {
        let authority = try AppleAuthority(from: Self.now - 30 * 86400)
        let app = try #require(AppleAppID("TEAMID1234.com.example.app"))
        let device = AppleDevice(system: .iOS("27.0.1"), app: AppleApp(appID: app.text), authority: authority)
        let key = AppleAttestKey()
        var options = AppleAttestationOptions()
        options.receipt.signedBy = Self.other
        let object = try device.attest(key, clientDataHash: [7], at: Self.now, options: options)
        let anchors = try #require(
            TrustAnchors(attestationRoots: [authority.attestationRoot], receiptRoots: [authority.receiptRoot]))
        let attestation = try AttestationVerifier(policy: AppAttestPolicy(appIDs: [app]), trustAnchors: anchors)
            .verify(object, keyID: #require(KeyID(key.keyID)), clientDataHash: ClientDataHash([7]), at: Self.now)
        #expect(
            code {
                try ReceiptVerifier(trustAnchors: anchors)
                    .verify(attestation.receipt, against: ReceiptExpectations(of: attestation), at: Self.now)
            } == .untrustedChain)
    }
}
