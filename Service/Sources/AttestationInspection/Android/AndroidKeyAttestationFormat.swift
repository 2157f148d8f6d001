internal import AndroidKeyAttestation
internal import Bytes
internal import Crypto
internal import Foundation
package import StrictJSON

/// Android key attestations: `chain_pem` (leaf first), compared with `challenge_hex`, `package` and `public_key_spki` if
/// given. Dates are judged at `valid_at` if the policy asks for it.
package struct AndroidKeyAttestationFormat: AttestationFormat {
    package static let name = "android-key-attestation"

    /// The format.
    package init() {}

    package func verify(_ line: JSONFields, options: VerificationOptions) throws -> Verdict {
        let pem = try line.optionalString("chain_pem")
        let challenge = try AndroidInputLine.hexadecimal("challenge_hex", in: line)
        let package = try line.optionalString("package")
        let publicKey = try line.optionalParsed("public_key_spki") { text in
            try P256.Signing.PublicKey(derRepresentation: Base64.url.decode(Base64.normalized(text)) ?? [])
        }
        let time = try AndroidInputLine.time("valid_at", in: line)
        guard let pem else { return .missing("chain_pem") }

        let verifier: KeyAttestationVerifier
        do { verifier = try Self.verifier(options, line) } catch {
            return .unusable(error.option, code: error.code, error.cause)
        }

        var expected = KeyAttestationExpectations()
        (expected.challenge, expected.publicKey, expected.package) = (challenge, publicKey, package)
        expected.date = time
        let audit = verifier.audit(pem: pem, against: expected)
        var facts = audit.chain.map { KeyAttestationFacts.facts($0) } ?? JSONObject()
        if let findings = audit.findings { KeyAttestationFacts.add(findings, to: &facts) }
        return Verdict(audit, facts: facts)
    }

    package func inspect(_ object: [UInt8]) -> JSONValue? {
        let text = String(decoding: object, as: UTF8.self)
        let chain = (try? KeyAttestationChain(pem: text)) ?? (try? KeyAttestationChain(der: [object]))
        guard let chain, chain.hasKeyDescription else { return nil }
        return .object(KeyAttestationFacts.facts(chain))
    }

    private struct Unusable: Error {
        let option: String
        let code: String
        let cause: any Error
    }

    private static func verifier(
        _ options: VerificationOptions, _ line: JSONFields
    ) throws(Unusable) -> KeyAttestationVerifier {
        var verifier = KeyAttestationVerifier(policy: .audit, statusList: nil)
        do {
            for layer in try options.layers(of: .keyAttestation, over: line.ownPolicy) {
                if let members = layer.members { verifier.policy = try verifier.policy.applying(members) }
            }
        } catch {
            throw Unusable(option: "policy", code: "POLICY_UNREADABLE", cause: error)
        }
        do {
            if let pem = options.rootsPEM {
                let roots = try KeyAttestationTrustAnchors(pem: pem)
                verifier.trustAnchors =
                    options.keepsBuiltInRoots ? KeyAttestationTrustAnchors.google.adding(roots) : roots
            }
        } catch {
            throw Unusable(option: "roots", code: "ROOTS_UNREADABLE", cause: error)
        }
        do {
            if let list = options.statusList { verifier.statusList = try RevocationStatusList(list) }
        } catch {
            throw Unusable(option: "status_list", code: "STATUS_LIST_UNREADABLE", cause: error)
        }
        return verifier
    }
}

extension Verdict {
    /// The result of an audit. The interface is stable and does not list a missing public key as unchecked.
    fileprivate init(_ audit: KeyAttestationAudit, facts: JSONObject) {
        self.init(
            audit.refusal == nil ? .verified : .refused, code: audit.refusal?.code.rawValue,
            step: audit.refusal?.step.rawValue,
            unchecked: audit.unchecked.filter { $0 != .publicKey }.map(\.rawValue), facts: facts,
            checks: audit.steps.map { Check($0.step, $0.outcome, $0.detail) })
    }
}
