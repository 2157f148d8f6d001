internal import AuthContract

/// What the proofs of a registration say, once every check of them passed.
struct VerifiedEvidence: Sendable {
    var assurance: Assurance
    /// What is kept of App Attest.
    var appAttest: AppAttestEvidence?
}

/// What a proof is judged with.
struct EvidenceInput: Sendable {
    let request: RegisterRequest
    let key: DevicePublicKey
    let nonce: BindingNonce
    let at: UnixTime
}
