internal import AppAttest
internal import StrictJSON

/// `app-attest-assertion`: without a public key, or without what was signed, there is nothing that could verify it.
struct AppAttestAssertionFormat: AttestationFormat {
    static let name = "app-attest-assertion"

    func verify(_ line: JSONFields, options: VerificationOptions) throws -> Verdict {
        let input = try AppAttestInput(line, using: AppAttestInput.assertion)
        let asked: AppAttestOptions
        do { asked = try AppAttestOptions(options, line, input) } catch {
            return .unusable("policy", code: "POLICY_UNREADABLE", error)
        }
        guard let bytes = input.object else { return .nothingToCheck }
        var list = CheckList(unchecked: [
            input.publicKey == nil || input.clientDataHash == nil ? "signature" : nil,
            asked.appIDs == nil ? "app-id" : nil,
        ])
        let object: AssertionObject
        do throws(AppAttestError) {
            object = try list.check("format") { () throws(AppAttestError) in try AssertionObject(parsing: bytes) }
        } catch {
            return Verdict(error, list: list)
        }
        var facts = AppAttestFacts.facts(of: object)
        if facts["extensions"] != nil { facts["extensions_proven"] = .bool(input.attestedExtensions) }
        if let publicKey = input.publicKey {
            facts["key_id"] = .string(KeyID(of: publicKey).base64)
        }
        do throws(AppAttestError) {
            try check(object, input, asked, &list)
        } catch {
            return Verdict(error, facts: facts, list: list)
        }
        let outcome: Verdict.Outcome = list.unchecked.contains("signature") ? .couldNotCheck : .verified
        return Verdict(outcome, unchecked: list.unchecked, facts: facts, checks: list.checks)
    }

    func inspect(_ object: [UInt8]) -> JSONValue? {
        (try? AssertionObject(parsing: object)).map { JSONValue($0.described) }
    }

    /// The steps of `AssertionVerifier`, each as far as the line allows.
    private func check(
        _ object: AssertionObject, _ input: AppAttestInput, _ asked: AppAttestOptions, _ list: inout CheckList
    ) throws(AppAttestError) {
        if let publicKey = input.publicKey, let clientDataHash = input.clientDataHash {
            try list.check("signature") { () throws(AppAttestError) in
                try AssertionSteps.verifySignature(object, clientDataHash, publicKey)
            }
        } else {
            list.skip("signature", "public_key_x963, or client_data and client_data_hash, are not given")
        }
        if let appIDs = asked.appIDs {
            try list.check("app-id") { () throws(AppAttestError) in try AssertionSteps.verifyAppID(object, appIDs) }
        } else {
            list.skip("app-id", "app_id is not given")
        }
        try list.check("counter") { () throws(AppAttestError) in
            try AssertionSteps.verifyCounter(object, input.previousCounter)
        }
        _ = try list.check("extensions") { () throws(AppAttestError) in
            try AssertionSteps.verifyExtensions(
                object, asked.policy, attestedExtensions: input.attestedExtensions)
        }
    }
}
