public import StrictJSON

/// A proof that a check refused, with everything needed to repeat the check.
public struct RefusedProof: Sendable {
    /// The stable code of the refusal.
    public let code: String
    /// The check that refused.
    public let step: String
    /// The inputs, as an input line of a batch (DocC article *Verifying in batches* of AttestationInspection).
    public let line: JSONObject
    /// The policy, the trust anchors and the list of revoked keys for the check. The list has only the entries for
    /// the refused chain. `playKeys` are only for decoding the token once, and must not be stored.
    public let options: VerificationOptions

    /// A refused proof.
    public init(code: String, step: String, line: JSONObject, options: VerificationOptions = VerificationOptions()) {
        self.code = code
        self.step = step
        self.line = line
        self.options = options
    }
}
