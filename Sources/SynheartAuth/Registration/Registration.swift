/// What `registerDevice` found or did.
public struct Registration: Sendable, Hashable {
    /// How the device stands.
    public enum Status: String, Sendable, Hashable, CaseIterable {
        /// Registered by this call.
        case registered
        /// Was registered before; nothing was sent.
        case alreadyRegistered
        /// The service has not decided yet; call again later.
        case pending
    }

    /// How it stands.
    public let status: Status
    /// The id that the service issued, a lower-case UUID.
    public let deviceId: String

    /// A result of its parts.
    public init(status: Status, deviceId: String) {
        self.status = status
        self.deviceId = deviceId
    }
}
