public import AuthContract
public import AuthService

extension MemoryStores: PendingProofStore {
    /// See `PendingProofStore`.
    public func keep(_ proof: PendingProof) throws(StoreError) {
        try check(.keepProof)
        proofs[proof.deviceID] = proof
    }

    /// See `PendingProofStore`.
    public func pendingProofs(after device: DeviceID?, limit: Int) throws(StoreError) -> [PendingProof] {
        try check(.pendingProofs)
        let later = proofs.values.filter { proof in device.map { $0.text < proof.deviceID.text } ?? true }
        return Array(later.sorted { $0.deviceID.text < $1.deviceID.text }.prefix(max(limit, 0)))
    }

    /// See `PendingProofStore`.
    public func erasePendingProof(of device: DeviceID) throws(StoreError) {
        try check(.eraseProof)
        proofs[device] = nil
    }
}
