import AppAttest
import Foundation
import StrictJSON
import Testing

@Suite struct RealReceipts {
    static let valid = Vector.kind("receipt", "valid")
    static let invalid = Vector.kind("receipt", "invalid")

    @Test func `every real receipt is there`() {
        #expect(Self.valid.count == 51)
        #expect(Self.invalid.count == 1)
    }

    /// Some publishers extracted receipts from an attestation together with bytes after the receipt.
    static let followed = valid.filter { Receipt.prefix(of: $0.bytes("object") ?? []) != $0.bytes("object") }

    @Test(arguments: followed) func `a receipt with something after it is refused as it is`(_ vector: Vector) throws {
        let object = try #require(vector.bytes("object"))
        #expect(code { try Receipt(parsing: object) } == .malformedReceipt)
    }

    /// Apple's signer used signed attributes until September 2020.
    @Test func `the vectors contain real receipts with and without signed attributes`() throws {
        #expect(Self.followed.count == 10)
        let withAttributes = try Self.valid.filter {
            try Receipt(parsing: $0.object).json["hasSignedAttributes"] == true
        }
        #expect(withAttributes.count == 8)
        #expect(withAttributes.allSatisfy { ($0["creation_time"] ?? "") < "2020-10" })
    }

    /// No signature covers the attributes of these receipts, so the verifier accepts only the exact form that Apple wrote.
    @Test func `a receipt with attributes that do not fit is refused`() throws {
        for vector in Self.valid where try Receipt(parsing: vector.object).json["hasSignedAttributes"] == true {
            let object = vector.object
            let head: [UInt8] = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x09, 0x05, 0x31, 0x0F, 0x17, 0x0D]
            let time = try #require(object.indices.last { object[$0...].starts(with: head) }) + head.count
            for (place, expected) in [
                (time - 2, .malformedSignedAttributes), (time + 5, .contentDigestMismatch),
                (time + 13 + 25, .malformedSignedAttributes), (time + 13 + 40, .malformedSignedAttributes),
                (time + 13 + 61, .contentDigestMismatch),
            ] as [(Int, AppAttestError.Code)] {
                var changed = object
                changed[place] ^= 4
                let expectations = try vector.receiptExpectations()
                let created = try #require(vector.date("creation_time"))
                #expect(code { try ReceiptVerifier().verify(changed, against: expectations, at: created) } == expected)
            }
        }
    }

    @Test(arguments: valid) func `a real receipt verifies and says what Apple knows`(_ vector: Vector) throws {
        let created = try #require(vector.date("creation_time"))
        let expectations = try vector.receiptExpectations()
        let receipt = try ReceiptVerifier().verify(vector.object, against: expectations, at: created + 299)
        let fields = receipt.fields
        #expect(fields.kind.rawValue == vector["receipt_type"])
        #expect(fields.creationTime == created)
        #expect(fields.expirationTime == vector.date("expiration_time"))
        #expect(fields.notBefore == vector.date("not_before"))
        #expect(fields.riskMetric == vector["risk_metric"].flatMap { Int($0) })
        #expect(fields.environment == vector["environment"])
        #expect(fields.unknownTypes.isEmpty)
    }

    @Test(arguments: valid) func `a real receipt is fresh for five minutes and can be stored for ever`(
        _ vector: Vector
    ) throws {
        let created = try #require(vector.date("creation_time"))
        let expectations = try vector.receiptExpectations()
        func refusal(_ policy: ReceiptVerifier.Policy, at date: Date) -> AppAttestError.Code? {
            code {
                try ReceiptVerifier(policy: policy).verify(vector.object, against: expectations, at: date)
            }
        }
        #expect(refusal(.init(), at: created + 300) == nil)
        #expect(refusal(.init(), at: created + 301) == .receiptTooOld)
        #expect(refusal(.init(), at: created - 60) == nil)
        #expect(refusal(.init(), at: created - 61) == .createdInFuture)
        #expect(refusal(.init(maximumAge: .infinity), at: created + 91 * 86400) == .receiptExpired)
        #expect(refusal(.stored, at: created + 20 * 365 * 86400) == nil)
    }

    @Test(arguments: valid) func `a real receipt is refused for anything it was not made for`(_ vector: Vector) throws {
        let created = try #require(vector.date("creation_time"))
        let original = try vector.receiptExpectations()
        func refusal(_ change: (inout ReceiptExpectations) throws -> Void) rethrows -> AppAttestError.Code? {
            var expectations = original
            try change(&expectations)
            return code {
                try ReceiptVerifier().verify(vector.object, against: expectations, at: created)
            }
        }
        #expect(refusal { _ in } == nil)
        #expect(refusal { $0.clientDataHash = nil } == nil)
        #expect(try refusal { $0.appIDs = [try #require(AppleAppID("A.b"))] } == .appIDNotAllowed)
        #expect(refusal { $0.keyID = KeyID(x963: []) } == .publicKeyMismatch)
        #expect(refusal { $0.clientDataHash = ClientDataHash([]) } == .clientDataHashMismatch)
        #expect(
            refusal { $0.environment = $0.environment == .production ? .development : .production }
                == .environmentMismatch)
    }

    @Test(arguments: invalid) func `a receipt whose certificates were changed is refused`(_ vector: Vector) throws {
        let created = try #require(vector.date("creation_time"))
        let expectations = try vector.receiptExpectations()
        do throws(AppAttestError) {
            _ = try ReceiptVerifier().verify(vector.object, against: expectations, at: created)
            Issue.record("verified")
        } catch {
            print("the changed receipt:", error)
            #expect(error.step == .certificateChain)
        }
    }

    @Test(arguments: valid.prefix(2)) func `a receipt does not chain to the root of attestations`(
        _ vector: Vector
    ) throws {
        let swapped = try #require(TrustAnchors(pem: try pem("Apple_App_Attestation_Root_CA")))
        let created = try #require(vector.date("creation_time"))
        let expectations = try vector.receiptExpectations()
        #expect(
            code {
                try ReceiptVerifier(trustAnchors: swapped).verify(vector.object, against: expectations, at: created)
            } == .untrustedChain)
    }
}
