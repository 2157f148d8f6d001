public import AuthContract
public import AuthService

/// The data that remains of a forgotten device, in addition to the bindings of its keys.
struct Tombstone: Sendable {
    let appID: AppID
    let attestedKeyID: [UInt8]?
}

extension MemoryStores: EndedDeviceStore {
    /// See `EndedDeviceStore`.
    public func forgetDevices(
        endedBefore time: UnixTime, now: UnixTime, limit: Int, recording event: AuditEvent
    ) throws(StoreError) -> Int {
        try check(.forgetDevices)
        let ended = deviceRecords.values.filter { $0.status.mayBeForgotten }
        for device in ended where ends[device.deviceID] == nil { ends[device.deviceID] = now }
        let due = ended.filter { device in ends[device.deviceID].map { $0 < time } ?? false }
            .prefix(min(max(limit, 1), 1000))
        for device in due {
            tombstones[device.deviceID] = Tombstone(
                appID: device.appID, attestedKeyID: device.appAttest?.keyID)
            (deviceRecords[device.deviceID], ends[device.deviceID], proofs[device.deviceID]) = (nil, nil, nil)
        }
        if !due.isEmpty { record(event) }
        return due.count
    }
}
