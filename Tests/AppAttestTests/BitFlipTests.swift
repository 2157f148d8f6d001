import AppAttest
import Crypto
import Foundation
import StrictJSON
import Testing

/// The verifier refuses an object in which one bit was changed, whichever bit it is. So every part of an object is
/// read and authenticated. The only exception is the last digit of the signing time's seconds in a receipt of 2020.
///
/// Every 211th bit is changed by default. With `APP_ATTEST_EVERY_BIT=1` every bit is changed. Use a release build for
/// that.
@Suite struct BitFlips {
    static let stride = ProcessInfo.processInfo.environment["APP_ATTEST_EVERY_BIT"] == nil ? 211 : 1

    /// Objects of different forms: the last one, the first one with extensions, and the first one without.
    static func sample(_ vectors: [Vector]) -> [Vector] {
        let old = vectors.first { $0.fields.optionalValue("extensions") == nil }
        let new = vectors.first { $0.fields.optionalValue("extensions") != nil }
        return [vectors.last, new, old].compactMap(\.self)
    }

    /// The bits whose change is not detected.
    func unnoticed(_ object: [UInt8], offset: Int, _ accepts: ([UInt8]) -> Bool) -> [Int] {
        Swift.stride(from: offset % Self.stride, to: object.count * 8, by: Self.stride).filter { bit in
            var changed = object
            changed[bit / 8] ^= 1 << (bit % 8)
            return accepts(changed)
        }
    }

    /// A published attestation whose receipt does not verify: one bit in the signer's certificate differs, and flipping
    /// it makes the receipt genuine. A test that flips every bit found this bit.
    static let damaged = "Mikedan37__AppAttestDecoder/attestation-4949301dc9d2"

    @Test func `the one damaged bit of a published receipt is found`() throws {
        let vector = try #require(Vector.all.first { $0["name"] == Self.damaged })
        let date = try #require(vector.date("valid_at"))
        let verifier = AttestationVerifier(policy: try vector.policy())
        func receiptVerifies(_ object: [UInt8]) throws -> Bool {
            let attestation = try verifier.verify(
                object, keyID: #require(vector.keyID), clientDataHash: #require(vector.clientDataHash), at: date)
            let receipts = ReceiptVerifier(policy: .stored)
            return (try? receipts.verify(attestation.receipt, against: .init(of: attestation), at: date + 86400)) != nil
        }
        var repaired = vector.object
        #expect(try !receiptVerifies(repaired))
        repaired[29202 / 8] ^= 1 << (29202 % 8)
        #expect(try receiptVerifies(repaired))
    }

    @Test(arguments: zip(sample(Vector.kind("attestation", "valid").filter { $0["name"] != damaged }), [0, 20, 40]))
    func `an attestation with one bit flipped is refused`(_ vector: Vector, offset: Int) throws {
        let verifier = AttestationVerifier(policy: try vector.policy())
        let keyID = try #require(vector.keyID)
        let hash = try #require(vector.clientDataHash)
        let date = try #require(vector.date("valid_at"))
        let receipts = ReceiptVerifier(policy: .stored)
        // The inner receipt is verified separately, which detects a changed bit in it.
        let unnoticed = unnoticed(vector.object, offset: offset) { changed in
            guard let attestation = try? verifier.verify(changed, keyID: keyID, clientDataHash: hash, at: date) else {
                return false
            }
            return (try? receipts.verify(attestation.receipt, against: .init(of: attestation), at: date + 86400)) != nil
        }
        #expect(unnoticed == [])
    }

    @Test(arguments: zip(sample(Vector.kind("assertion", "valid")), [0, 1, 2]))
    func `an assertion with one bit flipped is refused`(_ vector: Vector, offset: Int) throws {
        let verifier = AssertionVerifier(policy: try vector.policy())
        let key = try #require(vector.publicKey)
        let hash = try #require(vector.clientDataHash)
        let unnoticed = unnoticed(vector.object, offset: offset) { changed in
            guard let object = try? AssertionObject(parsing: changed) else { return false }
            return
                (try? verifier.verify(
                    object, clientDataHash: hash, publicKey: key, attestedExtensions: true, previousCounter: 0)) != nil
        }
        #expect(unnoticed == [])
    }

    static let current = Vector.kind("receipt", "valid").filter { ($0["creation_time"] ?? "") > "2020-10" }

    /// Two receipts from attestations, and one from Apple's server.
    static let receipts = [
        current.first, current.last, current.first { $0["receipt_type"] == "RECEIPT" },
    ].compactMap(\.self)

    @Test(arguments: zip(receipts, [0, 20, 40])) func `a receipt with one bit flipped is refused`(
        _ vector: Vector, offset: Int
    ) throws {
        let unnoticed = try unnoticedInReceipt(vector, offset: offset)
        #expect(unnoticed == [])
    }

    /// No signature covers the attributes in receipts of 2020, so they must be exactly those that Apple wrote. Only their signing
    /// time has two accepted values: the second in which the receipt was created, and the next one.
    @Test(arguments: Vector.kind("receipt", "valid").filter { ($0["creation_time"] ?? "") < "2020-10" }.prefix(1))
    func `a flipped bit in a receipt of 2020 is noticed, except in its signing second`(_ vector: Vector) throws {
        let object = vector.object
        let signingTime: [UInt8] = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x09, 0x05, 0x31, 0x0F, 0x17, 0x0D]
        let start = try #require(object.indices.last { object[$0...].starts(with: signingTime) })
        let second = (start + 24) * 8..<(start + 25) * 8
        let unnoticed = try unnoticedInReceipt(vector, offset: 0)
        #expect(unnoticed.allSatisfy(second.contains))
    }

    func unnoticedInReceipt(_ vector: Vector, offset: Int) throws -> [Int] {
        let verifier = ReceiptVerifier(policy: .stored)
        let expectations = try vector.receiptExpectations()
        let date = try #require(vector.date("creation_time"))
        return unnoticed(vector.object, offset: offset) { changed in
            (try? verifier.verify(changed, against: expectations, at: date)) != nil
        }
    }
}
