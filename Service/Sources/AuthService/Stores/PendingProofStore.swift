public import AuthContract

/// The proof of a pending device whose provider could not be asked, sealed with the service key.
public struct PendingProof: Sendable, Hashable {
    public let appID: AppID
    public let deviceID: DeviceID
    /// When it arrived: what its age is judged by.
    public let arrivedAt: UnixTime
    /// The registration's body, sealed; at most about 64 KiB.
    public let sealedRequest: [UInt8]

    /// A proof of its parts.
    public init(appID: AppID, deviceID: DeviceID, arrivedAt: UnixTime, sealedRequest: [UInt8]) {
        self.appID = appID
        self.deviceID = deviceID
        self.arrivedAt = arrivedAt
        self.sealedRequest = sealedRequest
    }
}

/// Keeps proofs until their provider can be asked, for a day at most.
///
/// What it guarantees: a proof that was kept is there until it is erased. It is sealed, so that what a file system or a
/// backup keeps of an erased one is of no use without the service key.
public protocol PendingProofStore: Sendable {
    /// Keeps a proof; one for each device.
    func keep(_ proof: PendingProof) async throws(StoreError)

    /// At most `limit` proofs, by the text of their device ids, after the one of `device`.
    func pendingProofs(after device: DeviceID?, limit: Int) async throws(StoreError) -> [PendingProof]

    /// Erases a device's proof; nothing happens where there is none.
    func erasePendingProof(of device: DeviceID) async throws(StoreError)
}
