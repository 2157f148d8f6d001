internal import AppAttest
internal import Foundation
internal import StrictJSON

/// What a receipt must say; what is nil is not compared.
struct ReceiptClaims {
    var appIDs: Set<AppID>?
    var keyID: KeyID?
    var clientDataHash: ClientDataHash?
    var environments: Set<AttestEnvironment>?
    var validAt: Date?
}

/// `app-attest-receipt`: the chain is judged at the receipt's creation, its age at `valid_at`.
struct AppAttestReceiptFormat: AttestationFormat {
    static let name = "app-attest-receipt"

    func verify(_ line: JSONFields, options: VerificationOptions) throws -> Verdict {
        let input = try AppAttestInput(line, using: AppAttestInput.receipt)
        let asked: AppAttestOptions
        do { asked = try AppAttestOptions(options, line, input) } catch {
            return .unusable("policy", code: "POLICY_UNREADABLE", error)
        }
        guard let bytes = input.object else { return .nothingToCheck }
        let claims = ReceiptClaims(
            appIDs: asked.appIDs,
            keyID: input.publicKey.map { KeyID(of: $0) },
            clientDataHash: input.clientHash, environments: asked.environments, validAt: input.validAt)
        // Collections hold receipts with bytes of the attestation that they were cut out of.
        let isWhole = try line.optionalBool("whole_object") ?? false
        let receipt = isWhole ? bytes : Receipt.prefix(of: bytes)
        var verdict = Self.verdict(on: receipt, claims, asked.receiptPolicy, try options.appleSteps())
        if receipt.count < bytes.count { verdict.facts["trailing_bytes"] = .integer(bytes.count - receipt.count) }
        return verdict
    }

    func inspect(_ object: [UInt8]) -> JSONValue? {
        (try? Receipt(parsing: Receipt.prefix(of: object))).map { JSONValue($0.described) }
    }

    /// The steps of `ReceiptVerifier`, each as far as is known what the receipt must say.
    static func verdict(
        on bytes: [UInt8], _ claims: ReceiptClaims, _ policy: ReceiptVerifier.Policy, _ apple: AppleSteps
    ) -> Verdict {
        var list = CheckList(unchecked: [
            claims.appIDs == nil ? "app-id" : nil, claims.keyID == nil ? "public-key" : nil,
            claims.clientDataHash == nil ? "client-data-hash" : nil, claims.environments == nil ? "environment" : nil,
            claims.validAt == nil ? "times" : nil,
        ])
        var facts = JSONObject()
        do throws(AppAttestError) {
            let receipt = try list.check("format") { () throws(AppAttestError) in try Receipt(parsing: bytes) }
            facts = AppAttestFacts.facts(of: receipt)
            try check(receipt, claims, policy, apple.receipt, &list)
            return Verdict(.verified, unchecked: list.unchecked, facts: facts, checks: list.checks)
        } catch {
            return Verdict(error, facts: facts, list: list)
        }
    }

    private static func check(
        _ receipt: Receipt, _ claims: ReceiptClaims, _ policy: ReceiptVerifier.Policy, _ steps: ReceiptSteps,
        _ list: inout CheckList
    ) throws(AppAttestError) {
        try list.check("signature") { () throws(AppAttestError) in try steps.verifySignature(receipt) }
        try list.check("certificate-chain") { () throws(AppAttestError) in try steps.verifyCertificateChain(receipt) }
        if let appIDs = claims.appIDs {
            try list.check("app-id") { () throws(AppAttestError) in try steps.verifyAppID(receipt, appIDs) }
        } else {
            list.skip("app-id", "app_id is not given")
        }
        if let keyID = claims.keyID {
            try list.check("public-key") { () throws(AppAttestError) in try steps.verifyPublicKey(receipt, keyID) }
        } else {
            list.skip("public-key", "public_key_x963 is not given")
        }
        if let clientDataHash = claims.clientDataHash {
            try list.check("client-data-hash") { () throws(AppAttestError) in
                try steps.verifyClientDataHash(receipt, clientDataHash)
            }
        } else {
            list.skip("client-data-hash", "client_hash_b64 is not given")
        }
        if let environments = claims.environments {
            try list.check("environment") { () throws(AppAttestError) in
                try steps.verifyEnvironment(receipt, environments)
            }
        } else {
            list.skip("environment", "environment is not given")
        }
        if let date = claims.validAt {
            try list.check("times") { () throws(AppAttestError) in try steps.verifyTimes(receipt, policy, at: date) }
        } else {
            list.skip("times", "valid_at is not given")
        }
    }
}
