internal import AttestationInspection
internal import AuthContract
internal import StrictJSON

/// A proof that a check refused, with everything that repeats the check.
struct RefusedProof: Sendable {
    /// The stable code of the refusal and the check that refused.
    let code: String
    let step: String
    /// The inputs, as an input line of a batch.
    let line: JSONObject
    /// The policies and anchors of the check.
    let options: VerificationOptions

    /// The document.
    ///
    /// - Parameter subject: the app, the device and the occasion.
    func file(of subject: JSONObject) throws -> EvidenceFile {
        try EvidenceFile(of: line, options: options, about: subject, refusal: (code, step))
    }
}

/// Why the evidence of a registration, a rotation or an assertion is refused.
struct EvidenceRefusal: Error {
    let refusal: Refusal
    /// Makes the record of the refused proof; nil if the refusal is not about a proof. Most apps record nothing, so the
    /// record is made on demand.
    let proof: (@Sendable () -> RefusedProof)?

    init(_ refusal: Refusal, proof: (@Sendable () -> RefusedProof)? = nil) {
        self.refusal = refusal
        self.proof = proof
    }

    init(_ code: ErrorCode, _ reason: String, retryAfter: Int64? = nil) {
        self.init(Refusal(code, reason, retryAfter: retryAfter))
    }
}
