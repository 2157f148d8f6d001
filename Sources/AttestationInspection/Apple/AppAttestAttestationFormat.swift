internal import AppAttest
internal import Foundation
internal import StrictJSON

/// `app-attest-attestation`: an attestation object, with the receipt inside judged by itself.
struct AppAttestAttestationFormat: AttestationFormat {
    static let name = "app-attest-attestation"

    func verify(_ line: JSONFields, options: VerificationOptions) throws -> Verdict {
        let input = try AppAttestInput(line, using: AppAttestInput.attestation)
        let asked: AppAttestOptions
        do { asked = try AppAttestOptions(options, line, input) } catch {
            return .unusable("policy", code: "POLICY_UNREADABLE", error)
        }
        let apple = try options.appleSteps()
        guard let bytes = input.object else { return .nothingToCheck }
        var list = CheckList(unchecked: [
            input.validAt == nil ? "validity" : nil, input.clientDataHash == nil ? "nonce" : nil,
            input.keyID == nil ? "key-id" : nil, asked.appIDs == nil ? "app-id" : nil,
            asked.environments == nil ? "environment" : nil,
        ])
        let object: AttestationObject
        do throws(AppAttestError) {
            object = try list.check("format") { () throws(AppAttestError) in try AttestationObject(parsing: bytes) }
        } catch {
            return Verdict(error, list: list)
        }
        var facts = AppAttestFacts.facts(of: object)
        facts["receipt"] = receipt(of: object, input, apple)
        do throws(AppAttestError) {
            try check(object, input, asked, apple.attestation, &list)
            return Verdict(.verified, unchecked: list.unchecked, facts: facts, checks: list.checks)
        } catch {
            return Verdict(error, facts: facts, list: list)
        }
    }

    func inspect(_ object: [UInt8]) -> JSONValue? {
        (try? AttestationObject(parsing: object)).map { JSONValue($0.described) }
    }

    /// The steps of `AttestationVerifier`, each as far as the line allows.
    private func check(
        _ object: AttestationObject, _ input: AppAttestInput, _ asked: AppAttestOptions, _ steps: AttestationSteps,
        _ list: inout CheckList
    ) throws(AppAttestError) {
        let policy = asked.policy
        let leaf = try list.check("certificate-chain") { () throws(AppAttestError) in
            // Without a time the chain is judged at the leaf's first moment, so that its dates refuse nothing.
            let firstMoment = try AttestationSteps.leaf(of: object).notBefore
            let date = input.validAt ?? firstMoment
            return try steps.verifyCertificateChain(object, at: date, leeway: policy.clockLeeway)
        }
        if input.validAt == nil { list.skip("validity", "valid_at is not given") }
        if let clientDataHash = input.clientDataHash {
            try list.check("nonce") { () throws(AppAttestError) in try steps.verifyNonce(object, leaf, clientDataHash) }
        } else {
            list.skip("nonce", "neither client_data nor client_data_hash is given")
        }
        if input.keyID == nil {
            list.skip("key-id", "key_id is not given: the object's parts are compared with each other")
        }
        _ = try list.check("key-id") { () throws(AppAttestError) in try steps.verifyKey(object, leaf, input.keyID) }
        if asked.appIDs == nil {
            list.skip("app-id", "app_id is not given: the object's parts are compared with each other")
        }
        _ = try list.check("app-id") { () throws(AppAttestError) in try steps.verifyAppID(object, leaf, asked.appIDs) }
        try list.check("counter") { () throws(AppAttestError) in try steps.verifyCounter(object) }
        if asked.environments == nil { list.skip("environment", "environment is not given") }
        _ = try list.check("environment") { () throws(AppAttestError) in
            try steps.verifyEnvironment(object, policy.environments)
        }
        _ = try list.check("extensions") { () throws(AppAttestError) in try steps.verifyExtensions(object, leaf, policy)
        }
        try list.check("platform") { () throws(AppAttestError) in try steps.verifyPlatform(leaf, policy) }
    }

    /// The receipt inside, against what the attestation itself says. Its outcome is a fact, and refuses nothing.
    private func receipt(
        of object: AttestationObject, _ input: AppAttestInput, _ apple: AppleSteps
    ) -> JSONValue {
        let claimed = ReceiptClaims(
            appIDs: (AppAttestFacts.facts(of: object)["app_id"]?.string).map { Set([AppID($0)].compactMap(\.self)) },
            keyID: object.authenticatorData.credential.flatMap { KeyID($0.identifier) },
            clientDataHash: input.clientDataHash,
            environments: object.authenticatorData.claimedEnvironment.map { [$0] }, validAt: nil)
        let verdict = AppAttestReceiptFormat.verdict(
            on: object.receipt, claimed, .stored, apple)
        return [
            "outcome": .string(verdict.outcome.rawValue), "code": verdict.code.map { .string($0) } ?? .null,
            "step": verdict.step.map { .string($0) } ?? .null, "facts": .object(verdict.facts),
        ]
    }
}
