import AppAttest
import Crypto
import Foundation
import StrictJSON
import Testing

@Suite struct RealAssertions {
    static let valid = Vector.kind("assertion", "valid")
    static let unknownApp = Vector.kind("assertion", "signature valid")

    @Test func `every real assertion is there`() {
        #expect(Self.valid.count == 15)
        #expect(Self.unknownApp.count == 1)
    }

    @Test(arguments: valid) func `a real assertion verifies once and not again`(_ vector: Vector) throws {
        let verifier = AssertionVerifier(policy: try vector.policy())
        let object = try AssertionObject(parsing: vector.object)
        let key = try #require(vector.publicKey)
        let hash = try #require(vector.clientDataHash)
        let assertion = try verifier.verify(
            object, clientDataHash: hash, publicKey: key, attestedExtensions: true, previousCounter: vector.counter - 1)
        #expect(assertion.counter == vector.counter)
        let extensions = try vector.fields.optionalObject("extensions")
        #expect(assertion.extensions?.bundleVersion == (try extensions?.optionalString("apple_bundle_version_01")))

        for counter in [vector.counter, vector.counter + 1, .max] {
            #expect(
                code {
                    try verifier.verify(
                        object, clientDataHash: hash, publicKey: key, attestedExtensions: true, previousCounter: counter
                    )
                }
                    == .counterNotGreater)
        }
        #expect(
            code {
                try verifier.verify(
                    object, clientDataHash: ClientDataHash([]), publicKey: key, attestedExtensions: true,
                    previousCounter: 0)
            }
                == .signatureInvalid)
        let otherKey = P256.Signing.PrivateKey().publicKey
        #expect(
            code {
                try verifier.verify(
                    object, clientDataHash: hash, publicKey: otherKey, attestedExtensions: true, previousCounter: 0)
            }
                == .signatureInvalid)
        let otherApp = AssertionVerifier(policy: AppAttestPolicy(appIDs: [try #require(AppleAppID("A.b"))]))
        #expect(
            code {
                try otherApp.verify(
                    object, clientDataHash: hash, publicKey: key, attestedExtensions: true, previousCounter: 0)
            }
                == .appIDNotAllowed)
    }

    @Test(arguments: valid.filter { $0.bytes("client_data") != nil })
    func `a real assertion is held to its challenge`(_ vector: Vector) throws {
        let verifier = AssertionVerifier(policy: try vector.policy())
        let clientData = try #require(vector.bytes("client_data"))
        let key = try #require(vector.publicKey)
        func refusal(_ challenge: ChallengeCheck) -> AppAttestError.Code? {
            code {
                try verifier.verify(
                    vector.object, clientData: clientData, challenge: challenge, publicKey: key,
                    attestedExtensions: true, previousCounter: 0)
            }
        }
        #expect(refusal(.clientDataIs(clientData)) == nil)
        #expect(refusal(.clientDataIs(clientData + [0])) == .challengeMismatch)
        #expect(refusal(.clientData(holds: [1]) { _ in [1] }) == nil)
        #expect(refusal(.clientData(holds: [1]) { _ in [2] }) == .challengeMismatch)
        #expect(refusal(.clientData(holds: [1]) { _ in nil }) == .challengeMismatch)
    }

    /// The assertion is from macOS 27.2. Its extension map has only the validation category, which is development.
    @Test(arguments: unknownApp) func `an assertion of an unknown app verifies except for the app`(
        _ vector: Vector
    ) throws {
        let object = try AssertionObject(parsing: vector.object)
        let key = try #require(vector.publicKey)
        try AssertionSteps.verifySignature(object, try #require(vector.clientDataHash), key)
        let verifier = AssertionVerifier(policy: AppAttestPolicy(appIDs: []))
        let hash = try #require(vector.clientDataHash)
        #expect(
            code {
                try verifier.verify(
                    object, clientDataHash: hash, publicKey: key, attestedExtensions: true, previousCounter: 0)
            }
                == .appIDNotAllowed)
        let extensions = try AssertionSteps.verifyExtensions(
            object, AppAttestPolicy(appIDs: []), attestedExtensions: true)
        #expect(extensions?.category == .development)
        #expect(extensions?.names == ["apple_validation_category_01"])
    }

    @Test(arguments: Vector.kind("assertion", "signature not reproduced"))
    func `an assertion whose client data is lost can still be read`(_ vector: Vector) throws {
        #expect(try AssertionObject(parsing: vector.object).claimedCounter == vector.counter)
    }

    @Test(arguments: Vector.kind("assertion", "invalid"))
    func `an assertion whose authenticator data is text is refused`(_ vector: Vector) throws {
        #expect(code { try AssertionObject(parsing: vector.object) } == .malformedAuthenticatorData)
    }
}
