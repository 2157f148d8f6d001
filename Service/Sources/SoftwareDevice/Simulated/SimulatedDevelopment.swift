internal import AuthContract
internal import SynheartAuth

/// Development mode, as in a debug build of the SDK. A service accepts it only for apps on channels dev and staging that allow
/// it, and only with the header `HeaderName.developmentMode`. `FleetDevice` adds this header to its requests.
struct SimulatedDevelopment: AttestationProvider {
    let platform = Platform.ios

    func attest(_ subject: AttestationSubject) async throws(AttestationError) -> AttestationEvidence {
        AttestationEvidence(proof: RegisterRequest.developmentProof)
    }
}
