public import AuthContract

/// What the proofs of a registration say, once every check of them passed.
struct VerifiedEvidence: Sendable {
    var assurance: Assurance
    /// What is kept of App Attest.
    var appAttest: AppAttestEvidence?
    /// The receipt that came along, where it was refused: that fails nothing.
    var refusedReceipt: (@Sendable () -> RefusedProof)?
}

/// What a proof is judged with.
struct EvidenceInput: Sendable {
    let platform: Platform
    let proof: String?
    let keyAttestation: [[UInt8]]?
    let challenge: [UInt8]
    let key: DevicePublicKey
    /// What binds the proof to the challenge and the key.
    let nonce: BindingNonce
    let at: UnixTime
}

extension EvidenceInput {
    /// What a registration sends, judged as of `at`.
    init(_ request: RegisterRequest, key: DevicePublicKey, nonce: BindingNonce, at: UnixTime) {
        self.init(
            platform: request.platform, proof: request.proof, keyAttestation: request.keyAttestation,
            challenge: request.challenge, key: key, nonce: nonce, at: at)
    }
}

extension Assurance {
    /// Of a device whose provider could not be asked yet.
    public static let unproven = Assurance(app: .none, key: .unattested)

    /// Of a device that an operator approved though its proof never verified.
    static let approvedUnproven = Assurance(app: .none, key: .unattested, labels: [unprovenLabel])

    static let unprovenLabel = "unproven"

    /// Whether nothing at all is proven of the device.
    public var isUnproven: Bool { app == .none && key == .unattested }
}
