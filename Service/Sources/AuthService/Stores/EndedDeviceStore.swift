public import AuthContract

/// Forgets devices that were deregistered or rejected long ago.
///
/// A forgotten device keeps its ids, its state, the thumbprints of all keys that were ever bound to it, and the id of its App
/// Attest key: none of them can be registered again. All other data are deleted, and the device is neither read nor listed.
public protocol EndedDeviceStore: Sendable {
    /// Forgets devices that were deregistered or rejected before a time. A row that an older version of the service wrote has no
    /// end time: the first call that reads such a row sets its end time to `now`.
    ///
    /// - Parameters:
    ///   - time: only devices that ended before it.
    ///   - now: the current time.
    ///   - limit: the largest number of devices, 1 to 1000.
    ///   - event: appended in the same transaction if a device was forgotten.
    /// - Returns: the number of forgotten devices.
    func forgetDevices(
        endedBefore time: UnixTime, now: UnixTime, limit: Int, recording event: AuditEvent
    ) async throws(StoreError) -> Int
}

extension DeviceStatus {
    /// Whether a device with this status may be forgotten, because a device never leaves this status. A revoked device is
    /// kept all the same, so that the service can still report that it is revoked.
    package var mayBeForgotten: Bool { self == .deregistered || self == .rejected }
}

extension DeviceChange {
    /// The end time that the change gives the device. Nil: the change keeps the status and the end time. `.some(nil)`: the
    /// device gets no end time, because a device with the new status may not be forgotten.
    package var endedAt: UnixTime?? {
        guard before.status != after.status else { return nil }
        return .some(after.status.mayBeForgotten ? event.at : nil)
    }
}
