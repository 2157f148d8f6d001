package import AndroidKeyAttestation
internal import Bytes
package import Crypto
package import Foundation
package import StrictJSON

/// A chain of Android's key attestation with its expected values, as an input line of a batch names them. A nil value is not
/// compared.
package struct KeyAttestationEvidence: Sendable {
    /// The chain in PEM, leaf first; nil if the input line has none.
    private let pem: String?
    private var expected = KeyAttestationExpectations()
    /// The policy in the input line.
    private var ownPolicy: JSONValue?

    /// A chain that the service judged.
    package init(_ chain: [[UInt8]], challenge: [UInt8], publicKey: P256.Signing.PublicKey, at date: Date) {
        pem = chain.map { PEM.encode($0, label: "CERTIFICATE") }.joined()
        (expected.challenge, expected.publicKey, expected.date) = (challenge, publicKey, date)
    }

    /// Reads an input line: `chain_pem`, compared with `challenge_hex`, `package` and `public_key_spki` if given. If
    /// the policy judges dates or patch levels, it judges them at `valid_at`. A member that cannot be read throws.
    package init(_ line: JSONFields) throws(JSONError) {
        pem = try line.optionalString("chain_pem")
        expected.challenge = try line.optionalHexadecimal("challenge_hex")
        expected.package = try line.optionalString("package")
        expected.publicKey = try line.optionalParsed("public_key_spki") { text in
            try P256.Signing.PublicKey(derRepresentation: Base64.decodeEitherForm(text) ?? [])
        }
        expected.date = try line.optionalTime("valid_at")
        ownPolicy = line.ownPolicy
    }

    /// The input line for this evidence.
    package var line: JSONObject {
        var line = JSONObject(.keyAttestation)
        line["chain_pem"] = pem.map { .string($0) }
        line["challenge_hex"] = expected.challenge.map { .string(Hexadecimal.encode($0)) }
        line["package"] = expected.package.map { .string($0) }
        line.set("public_key_spki", base64: expected.publicKey?.derRepresentation)
        line.set("valid_at", expected.date)
        return line
    }

    /// Runs the steps of the verification.
    package func audit(under options: VerificationOptions) throws(NothingVerified) -> KeyAttestationAudit {
        guard let pem else { throw .missing("chain_pem") }
        var verifier = KeyAttestationVerifier(policy: .audit, statusList: nil)
        verifier.policy = try NothingVerified.unlessReadable("policy") {
            try options.overriding(.audit, .keyAttestation, with: ownPolicy)
        }
        verifier.trustAnchors = try NothingVerified.unlessReadable("roots") { try options.keyAttestationAnchors() }
        verifier.statusList = try NothingVerified.unlessReadable("status_list") {
            try options.statusList.map { try RevocationStatusList($0) }
        }
        return verifier.audit(pem: pem, against: expected)
    }
}
