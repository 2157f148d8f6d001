internal import AuthContract
internal import SynheartAuth

/// Development mode as a debug build of the SDK has it. A service takes it of apps of its channels dev and staging that
/// allow it, and with the header beside it that the fleet's transport adds.
struct SimulatedDevelopment: AttestationProvider {
    let platform = Platform.ios

    func attest(_ subject: AttestationSubject) async throws(AttestationError) -> AttestationEvidence {
        AttestationEvidence(proof: RegisterRequest.developmentProof)
    }
}
