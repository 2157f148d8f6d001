/// The formats of evidence. The raw value is the value of the member `format` in an input line.
package enum EvidenceFormat: String, Sendable, Hashable, CaseIterable {
    case attestation = "app-attest-attestation"
    case assertion = "app-attest-assertion"
    case receipt = "app-attest-receipt"
    case keyAttestation = "android-key-attestation"
    case playIntegrity = "play-integrity"

    /// The kind of policy for this format.
    package var policy: PolicyKind {
        switch self {
        case .attestation, .assertion, .receipt: .ios
        case .keyAttestation: .keyAttestation
        case .playIntegrity: .playIntegrity
        }
    }

    /// The name of the member of an input line that has the object.
    package var objectMember: String {
        switch self {
        case .attestation, .assertion, .receipt: "object"
        case .keyAttestation: "chain_pem"
        case .playIntegrity: "token"
        }
    }

    /// The name of the member of an input line that has the time of the check.
    package var timeMember: String { self == .playIntegrity ? "evaluate_at" : "valid_at" }
}
