public import AuthContract
internal import Verification

/// The verified content of a registration's proofs.
struct VerifiedEvidence: Sendable {
    var assurance: Assurance
    /// The version of the app (``DeviceRecord/appVersion``).
    var appVersion: String?
    /// The App Attest data to store; nil: no App Attest attestation was verified.
    var appAttest: AppAttestKeyState?
    /// The refused receipt of the attestation, which does not fail the registration. Nil: no receipt was refused.
    var refusedReceipt: (@Sendable () -> RefusedProof)?
}

/// The inputs of a verification.
struct EvidenceInput: Sendable {
    let platform: Platform
    let proof: String?
    let keyAttestation: [[UInt8]]?
    let challenge: [UInt8]
    let key: DevicePublicKey
    /// The nonce that binds the proof to the challenge and the key.
    let nonce: BindingNonce
    let at: UnixTime
    /// Whether a provider may have judged this proof before: the proof was held because no answer came.
    var isHeld = false
}

extension EvidenceInput {
    /// The inputs of a registration, judged at the time `at`.
    init(_ request: RegisterRequest, key: DevicePublicKey, nonce: BindingNonce, at: UnixTime) {
        self.init(
            platform: request.platform, proof: request.proof, keyAttestation: request.keyAttestation,
            challenge: request.challenge, key: key, nonce: nonce, at: at)
    }
}

extension Assurance {
    /// The assurance of a device whose provider has not answered yet.
    public static let unproven = Assurance(app: .none, key: .unattested)

    /// The assurance of a device that an operator approved although its proof never verified.
    static let approvedUnproven = Assurance(app: .none, key: .unattested, labels: [unprovenLabel])

    static let unprovenLabel = "unproven"

    /// Whether nothing is proven about the device.
    public var isUnproven: Bool { app == .none && key == .unattested }
}
