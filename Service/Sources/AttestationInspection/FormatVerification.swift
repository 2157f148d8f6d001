internal import AndroidKeyAttestation
internal import AppAttest
internal import PlayIntegrity
package import StrictJSON
package import Verification

extension EvidenceFormat {
    /// Verifies one input line.
    ///
    /// - Throws: for a line that cannot be read (`UNREADABLE`) or roots that cannot be used.
    package func verify(_ line: JSONFields, options: VerificationOptions) throws -> Verdict {
        do { return try judge(line, options) } catch let error as NothingVerified { return error.verdict }
    }

    private func judge(_ line: JSONFields, _ options: VerificationOptions) throws -> Verdict {
        switch self {
        case .attestation:
            let evidence = try AppAttestEvidence(line, as: self, isTrusted: options.trustsLine)
            let audit = try evidence.auditAttestation(under: options)
            let apple = try options.appleVerifiers()
            var facts = audit.object.map { AppAttestFacts.facts(of: $0) } ?? JSONObject()
            facts["receipt"] = audit.object.map { Self.receipt(of: $0, evidence, apple) }
            return Verdict(audit, facts: facts)
        case .assertion:
            let evidence = try AppAttestEvidence(line, as: self, isTrusted: options.trustsLine)
            let audit = try evidence.auditAssertion(under: options)
            let facts = audit.object.map { AppAttestFacts.facts(of: $0, evidence) } ?? JSONObject()
            var verdict = Verdict(audit, facts: facts)
            // Without the public key or the signed data, an assertion cannot be verified.
            if verdict.outcome == .verified, audit.unchecked.contains(.signature) { verdict.outcome = .couldNotCheck }
            return verdict
        case .receipt:
            let evidence = try AppAttestEvidence(line, as: self, isTrusted: options.trustsLine)
            var verdict = Self.verdict(try evidence.auditReceipt(under: options))
            if let left = evidence.trailingBytes { verdict.facts["trailing_bytes"] = .integer(left) }
            return verdict
        case .keyAttestation:
            let audit = try KeyAttestationEvidence(line).audit(under: options)
            return Verdict(audit, facts: KeyAttestationFacts.facts(audit))
        case .playIntegrity:
            let audit = try PlayIntegrityEvidence(line, isTrusted: options.trustsLine).audit(under: options)
            return Verdict(audit, facts: PlayIntegrityFacts.facts(audit))
        }
    }

    /// The verdict on the receipt in an attestation object. The receipt is also compared with the attestation. The
    /// verdict becomes the member `receipt` of the attestation's facts. It never causes a refusal of the attestation.
    private static func receipt(
        of object: AttestationObject, _ evidence: AppAttestEvidence, _ apple: AppleVerifiers
    ) -> JSONValue {
        let claims = object.unverifiedClaims
        var expected = AppAttestExpectations()
        expected.appIDs = claims.leaf?.appID.map { Set([AppleAppID($0)].compactMap(\.self)) }
        expected.keyID = claims.credential.flatMap { KeyID($0.identifier) }
        expected.clientDataHash = evidence.expected.clientDataHash
        expected.environments = claims.credential?.environment.map { [$0] }
        var verifier = apple.receipts
        verifier.policy = .stored
        let verdict = verdict(verifier.audit(object.receipt, against: expected))
        return [
            "outcome": .string(verdict.outcome.rawValue), "code": verdict.code.map { .string($0) } ?? .null,
            "step": verdict.step.map { .string($0) } ?? .null, "facts": .object(verdict.facts),
        ]
    }

    private static func verdict(_ audit: AppAttestAudit<Receipt>) -> Verdict {
        Verdict(audit, facts: audit.object.map { AppAttestFacts.facts(of: $0) } ?? JSONObject())
    }
}
