internal import AuthContract

/// The commands on an existing device. `DeviceRecord.applying(_:under:at:by:)` decides each of them.
enum DeviceCommand: Sendable {
    /// The device replaces its key.
    case rotate(KeyRotation)
    /// The device repeats its last rotation (to this key) with reason `compromise`. This ends the overlap, so the
    /// previous key is no longer accepted.
    case endOverlap(of: DevicePublicKey)
    /// The device ends its identity by a request that this key signed.
    case deregister(signedBy: DevicePublicKey)
    /// A new proof of this key verified. The decision combines it with the stored assurance. `wasSeen` says whether this
    /// node's `LastSeenBuffer` may still have the time of a verified request of the device.
    case proveAgain(VerifiedEvidence, of: DevicePublicKey, wasSeen: Bool)
    /// The device's pending proof verified.
    case settleProof(VerifiedEvidence)
    /// Policy admits a pending device. It is marked if that is only because the app observes.
    case admit
    /// The device's pending proof was refused, or waited too long.
    case refuseProof(outcome: String)
    /// The device becomes pending, because it was admitted only under observation and the app's mode is now `enforce`.
    case hold

    /// An operator admits a pending device. A device whose proof never verified needs `allowsUnproven`.
    case approve(allowsUnproven: Bool)
    /// An operator rejects a pending device.
    case reject
    /// An operator ends the identity permanently.
    case revoke(reason: String?)
    /// An operator demands a new key by a time.
    case demandRotation(RotationDemand)
    /// An operator lifts the demand for a new key.
    case liftRotationDemand
    /// An operator lets the device sign under an older scheme.
    case lowerScheme(to: SignatureScheme)
}

/// A rotation whose request, key proof and re-attestation verified.
struct KeyRotation: Sendable {
    let newKey: DevicePublicKey
    /// The key that signed the request.
    let signedBy: DevicePublicKey
    let reason: RotationReason
    /// Nil: the rotation has no re-attestation.
    var reattestation: Reattestation?
    /// The id of the App Attest key that the device had when `reattestation` was judged.
    var judgedAppAttestKey: [UInt8]?
}

/// The reason why a command does not apply to a device.
struct DeviceConflict: Error, Sendable, Hashable, CustomStringConvertible {
    /// The code of the refusal.
    let code: ErrorCode
    /// Why the command does not apply. It is logged, and with code `CONFLICT` also shown to the operator who gave the command.
    let description: String

    init(_ code: ErrorCode, _ description: String) {
        self.code = code
        self.description = description
    }

    /// The conflict if the device's status does not allow an operator's command.
    static func status(_ status: DeviceStatus, _ wanted: String) -> DeviceConflict {
        DeviceConflict(.conflict, "a device that is \(status.rawValue) cannot \(wanted)")
    }
}
