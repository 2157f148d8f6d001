internal import AttestationInspection
internal import AuthContract
internal import StrictJSON

/// What a check refused, and what it takes to make that check again.
struct RefusedProof: Sendable {
    /// The stable code of the refusal and the check that refused.
    let code: String
    let step: String
    /// The inputs, as an input line of a batch.
    let line: JSONObject
    /// What they were judged by.
    let options: VerificationOptions

    /// The document.
    func file(about: JSONObject) throws -> EvidenceFile {
        try EvidenceFile(of: line, options: options, about: about, refusal: (code, step))
    }
}

extension Refusal {
    /// The refusal with what it is about, which is put together only where somebody wants to keep it.
    func about(_ proof: @escaping @Sendable () -> RefusedProof) -> Refusal {
        var refusal = self
        refusal.proof = proof
        return refusal
    }
}
