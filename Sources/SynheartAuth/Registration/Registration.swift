/// The result of `registerDevice`.
public struct Registration: Sendable, Hashable {
    /// The status of the device.
    public enum Status: String, Sendable, Hashable, CaseIterable {
        /// This call registered the device, or learned that the service has approved it.
        case registered
        /// The device was registered before. Nothing was sent.
        case alreadyRegistered
        /// The service has not decided yet. Call `registerDevice` again later.
        case pending
    }

    /// The status of the device.
    public let status: Status
    /// The id that the service issued, a lower-case UUID.
    public let deviceId: String

    /// Memberwise initializer.
    public init(status: Status, deviceId: String) {
        self.status = status
        self.deviceId = deviceId
    }
}
