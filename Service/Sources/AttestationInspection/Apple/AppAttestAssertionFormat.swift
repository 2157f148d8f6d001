internal import AppAttest
internal import StrictJSON

/// `app-attest-assertion`. Without the public key or the signed data it cannot be verified.
struct AppAttestAssertionFormat: AttestationFormat {
    static let name = "app-attest-assertion"

    func verify(_ line: JSONFields, options: VerificationOptions) throws -> Verdict {
        let ours = options.trustsLine ? AppAttestInput.expectedChallenge : []
        let input = try AppAttestInput(line, using: AppAttestInput.assertion + ours)
        let asked: AppAttestOptions
        do { asked = try AppAttestOptions(options, line, input) } catch {
            return .unusable("policy", code: "POLICY_UNREADABLE", error)
        }
        guard let bytes = input.object else { return .nothingToCheck }
        let audit = AssertionVerifier(policy: asked.policy).audit(bytes, against: AppAttestExpectations(input, asked))
        var facts = JSONObject()
        if let object = audit.object {
            facts = AppAttestFacts.facts(of: object)
            if facts["extensions"] != nil { facts["extensions_proven"] = .bool(input.attestedExtensions) }
            if let publicKey = input.publicKey { facts["key_id"] = .string(KeyID(of: publicKey).base64) }
        }
        var verdict = Verdict(audit, facts: facts)
        if verdict.outcome == .verified, audit.unchecked.contains(.signature) { verdict.outcome = .couldNotCheck }
        return verdict
    }

    func inspect(_ object: [UInt8]) -> JSONValue? {
        (try? AssertionObject(parsing: object)).map { .object($0.json) }
    }
}
