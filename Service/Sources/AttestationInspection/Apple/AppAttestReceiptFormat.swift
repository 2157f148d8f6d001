internal import AppAttest
internal import StrictJSON

/// `app-attest-receipt`. The chain is judged at the receipt's creation, and the age at `valid_at`.
struct AppAttestReceiptFormat: AttestationFormat {
    static let name = "app-attest-receipt"

    func verify(_ line: JSONFields, options: VerificationOptions) throws -> Verdict {
        let input = try AppAttestInput(line, using: AppAttestInput.receipt)
        let asked: AppAttestOptions
        do { asked = try AppAttestOptions(options, line, input) } catch {
            return .unusable("policy", code: "POLICY_UNREADABLE", error)
        }
        guard let bytes = input.object else { return .nothingToCheck }
        var expected = AppAttestExpectations(input, asked)
        expected.keyID = input.publicKey.map { KeyID(of: $0) }
        expected.clientDataHash = input.clientHash
        // Receipts in collections may be followed by other bytes of their attestation.
        let isWhole = try line.optionalBool("whole_object") ?? false
        let receipt = isWhole ? bytes : Receipt.prefix(of: bytes)
        var verdict = Self.verdict(on: receipt, expected, asked.receiptPolicy, try options.appleVerifiers())
        if receipt.count < bytes.count { verdict.facts["trailing_bytes"] = .integer(bytes.count - receipt.count) }
        return verdict
    }

    func inspect(_ object: [UInt8]) -> JSONValue? {
        (try? Receipt(parsing: Receipt.prefix(of: object))).map { .object($0.json) }
    }

    /// The verdict on a receipt. Only expectations that are given are compared.
    static func verdict(
        on bytes: [UInt8], _ expected: AppAttestExpectations, _ policy: ReceiptVerifier.Policy,
        _ apple: AppleVerifiers
    ) -> Verdict {
        var verifier = apple.receipts
        verifier.policy = policy
        let audit = verifier.audit(bytes, against: expected)
        return Verdict(audit, facts: audit.object.map { AppAttestFacts.facts(of: $0) } ?? JSONObject())
    }
}
