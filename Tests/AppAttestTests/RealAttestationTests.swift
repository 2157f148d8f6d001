import AppAttest
import Crypto
import Foundation
import StrictJSON
import Testing

@Suite struct RealAttestations {
    static let valid = Vector.kind("attestation", "valid")

    func verify(
        _ vector: Vector, at date: Date? = nil, change: (inout AppAttestPolicy) -> Void = { _ in }
    )
        throws -> VerifiedAttestation
    {
        var policy = try vector.policy()
        change(&policy)
        return try AttestationVerifier(policy: policy).verify(
            vector.object, keyID: try #require(vector.keyID), clientDataHash: try #require(vector.clientDataHash),
            at: try date ?? #require(vector.date("valid_at")))
    }

    func refusal(
        _ vector: Vector, at date: Date? = nil, change: (inout AppAttestPolicy) -> Void = { _ in }
    ) -> AppAttestError.Code? {
        do {
            _ = try verify(vector, at: date, change: change)
            return nil
        } catch {
            return (error as? AppAttestError)?.code
        }
    }

    @Test func `every real attestation is there`() {
        #expect(Vector.all.count == 104)
        #expect(Self.valid.count == 31)
    }

    @Test(arguments: valid) func `a real attestation verifies and says what the device is`(_ vector: Vector) throws {
        let attestation = try verify(vector)
        #expect(attestation.keyID == vector.keyID)
        #expect(attestation.appID == vector.appID)
        #expect(attestation.environment == vector.environment)
        #expect(attestation.systemVersion == vector["os_version"])
        #expect(attestation.publicKey.rawRepresentation == vector.publicKey?.rawRepresentation)
        #expect(attestation.counter == vector.counter)
        let extensions = try vector.fields.optionalObject("extensions")
        #expect(attestation.bundleVersion == (try extensions?.optionalString("apple_bundle_version_01")))
        let category = try extensions?.optionalString("apple_validation_category_01")
        #expect(attestation.category?.rawValue == category.flatMap { UInt32($0.prefix(2), radix: 16) })
    }

    @Test(arguments: valid) func `a real attestation is valid until the last second of its leaf`(
        _ vector: Vector
    ) throws {
        let first = try #require(vector.date("leaf_not_before"))
        let last = try #require(vector.date("leaf_not_after"))
        #expect(refusal(vector, at: first) == nil)
        #expect(refusal(vector, at: last) == nil)
        #expect(refusal(vector, at: first - 1) == .certificateNotYetValid)
        #expect(refusal(vector, at: last + 1) == .certificateExpired)
        #expect(refusal(vector, at: last + 1) { $0.clockLeeway = 1 } == nil)
    }

    @Test(arguments: valid) func `a real attestation is refused for anything it was not made for`(
        _ vector: Vector
    ) throws {
        let verifier = AttestationVerifier(policy: try vector.policy())
        let date = try #require(vector.date("valid_at"))
        let keyID = try #require(vector.keyID)
        let clientDataHash = try #require(vector.clientDataHash)
        let object = vector.object

        #expect(
            code { try verifier.verify(object, keyID: keyID, clientDataHash: ClientDataHash([0]), at: date) }
                == .nonceMismatch)
        let other = KeyID(x963: [1])
        #expect(
            code { try verifier.verify(object, keyID: other, clientDataHash: clientDataHash, at: date) }
                == .keyIDMismatch)
        let app = try #require(AppleAppID("TEAMID1234.com.example.other"))
        #expect(refusal(vector) { $0.appIDs = [app] } == .appIDNotAllowed)
        #expect(refusal(vector) { $0.appIDs = [] } == .appIDNotAllowed)
        #expect(
            refusal(vector) { $0.environments.subtract([vector.environment].compactMap(\.self)) }
                == .environmentNotAllowed)
        #expect(
            code { try verifier.verify(object + [0], keyID: keyID, clientDataHash: clientDataHash, at: date) }
                == .malformedObject)
    }

    @Test(arguments: valid) func `a real attestation is held to the policy on what the device says`(
        _ vector: Vector
    ) throws {
        let sends = try vector.fields.optionalObject("extensions") != nil
        #expect(refusal(vector) { $0.requiresCategory = true } == (sends ? nil : .categoryMissing))
        #expect(refusal(vector) { $0.requiresBundleVersion = true } == (sends ? nil : .bundleVersionMissing))
        #expect(refusal(vector) { $0.categories = [.appStore] } == (sends ? .categoryNotAllowed : nil))
        #expect(
            refusal(vector) { $0.minimumBundleVersion = BundleVersion("99999") } == (sends ? .bundleVersionTooOld : nil)
        )
        #expect(refusal(vector) { $0.minimumBundleVersion = BundleVersion("1") } == nil)
    }

    @Test(arguments: valid) func `a real attestation holds a receipt that verifies by itself`(_ vector: Vector) throws {
        let attestation = try verify(vector)
        let verifier = ReceiptVerifier(policy: .stored)
        let date = try #require(vector.date("valid_at"))
        let receipt = Result {
            try verifier.verify(attestation.receipt, against: .init(of: attestation), at: date + 86400)
        }
        let known = Vector.kind("receipt").first { $0.object == attestation.receipt }
        if known?.expected != "valid" {
            // One bit of a certificate in this receipt is wrong: see `BitFlips.damaged`.
            #expect(throws: AppAttestError.self) { try receipt.get() }
        } else {
            #expect(try receipt.get().fields.kind == .attest)
        }
    }

    @Test(arguments: Vector.kind("attestation-malformed")) func `a malformed attestation is refused at the first step`(
        _ vector: Vector
    ) {
        do throws(AppAttestError) {
            _ = try AttestationObject(parsing: vector.object)
            Issue.record("read")
        } catch {
            #expect(error.step == .format)
            #expect(error.code == .malformedObject)
        }
    }

    @Test(arguments: valid.prefix(2)) func `an attestation does not chain to the root of receipts`(
        _ vector: Vector
    ) throws {
        let swapped = try #require(TrustAnchors(pem: try pem("AppleRootCA-G3")))
        let verifier = AttestationVerifier(policy: try vector.policy(), trustAnchors: swapped)
        let keyID = try #require(vector.keyID)
        let hash = try #require(vector.clientDataHash)
        let date = try #require(vector.date("valid_at"))
        #expect(
            code { try verifier.verify(vector.object, keyID: keyID, clientDataHash: hash, at: date) } == .untrustedChain
        )
    }
}

func pem(_ name: String) throws -> String {
    let url = try #require(Bundle.module.url(forResource: name, withExtension: "pem", subdirectory: "Vectors"))
    return try String(contentsOf: url, encoding: .utf8)
}
