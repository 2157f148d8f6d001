internal import AppAttest
package import StrictJSON

/// `app-attest-attestation`: an attestation object. Its receipt has a verdict of its own.
package struct AppAttestAttestationFormat: AttestationFormat {
    package static let name = "app-attest-attestation"

    package func verify(_ line: JSONFields, options: VerificationOptions) throws -> Verdict {
        let input = try AppAttestInput(line, using: AppAttestInput.attestation)
        let asked: AppAttestOptions
        do { asked = try AppAttestOptions(options, line, input) } catch {
            return .unusable("policy", code: "POLICY_UNREADABLE", error)
        }
        let apple = try options.appleVerifiers()
        guard let bytes = input.object else { return .nothingToCheck }
        var verifier = apple.attestations
        verifier.policy = asked.policy
        let audit = verifier.audit(bytes, against: AppAttestExpectations(input, asked))
        var facts = JSONObject()
        if let object = audit.object {
            facts = AppAttestFacts.facts(of: object)
            facts["receipt"] = Self.receipt(of: object, input, apple)
        }
        return Verdict(audit, facts: facts)
    }

    package func inspect(_ object: [UInt8]) -> JSONValue? {
        (try? AttestationObject(parsing: object)).map { .object($0.json) }
    }

    /// The receipt in an attestation object, as it is; nil if the bytes are no attestation object.
    package static func receipt(in attestation: [UInt8]) -> [UInt8]? {
        try? AttestationObject(parsing: attestation).receipt
    }

    /// The verdict on the receipt, compared with the attestation. It is one of the facts, and never refuses the
    /// attestation.
    private static func receipt(
        of object: AttestationObject, _ input: AppAttestInput, _ apple: AppleVerifiers
    ) -> JSONValue {
        let claims = object.unverifiedClaims
        var expected = AppAttestExpectations()
        expected.appIDs = claims.leaf?.appID.map { Set([AppleAppID($0)].compactMap(\.self)) }
        expected.keyID = claims.credential.flatMap { KeyID($0.identifier) }
        expected.clientDataHash = input.clientDataHash
        expected.environments = claims.credential?.environment.map { [$0] }
        let verdict = AppAttestReceiptFormat.verdict(on: object.receipt, expected, .stored, apple)
        return [
            "outcome": .string(verdict.outcome.rawValue), "code": verdict.code.map { .string($0) } ?? .null,
            "step": verdict.step.map { .string($0) } ?? .null, "facts": .object(verdict.facts),
        ]
    }
}
