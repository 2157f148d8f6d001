public import AuthContract

/// The proof of a pending device, sealed with the service key. It waits until the attestation provider can be reached again.
public struct PendingProof: Sendable, Hashable {
    /// The app of the device.
    public let appID: AppID
    /// The pending device.
    public let deviceID: DeviceID
    /// When the proof arrived. Its age and the validity of its certificates are judged as of this time.
    public let arrivedAt: UnixTime
    /// The registration's body, sealed; at most about 64 KiB.
    public let sealedRequest: [UInt8]

    /// Memberwise initializer.
    public init(appID: AppID, deviceID: DeviceID, arrivedAt: UnixTime, sealedRequest: [UInt8]) {
        self.appID = appID
        self.deviceID = deviceID
        self.arrivedAt = arrivedAt
        self.sealedRequest = sealedRequest
    }
}

/// Keeps proofs until the service erases them: when their attestation provider has answered, or after about a day.
///
/// Guarantee: a proof stays until it is erased or replaced. It is sealed, so that a copy of an erased proof, in a
/// file system or a backup, is useless without the service key.
public protocol PendingProofStore: Sendable {
    /// Keeps a proof. A device has one: a second proof replaces the first.
    func keep(_ proof: PendingProof) async throws(StoreError)

    /// Proofs in the order of their device ids' texts.
    ///
    /// - Parameters:
    ///   - device: only proofs after this device's, which need not exist; nil: from the first on.
    ///   - limit: 1 to 1000.
    func pendingProofs(after device: DeviceID?, limit: Int) async throws(StoreError) -> [PendingProof]

    /// Erases a device's proof. Does nothing if there is none.
    func erasePendingProof(of device: DeviceID) async throws(StoreError)
}
