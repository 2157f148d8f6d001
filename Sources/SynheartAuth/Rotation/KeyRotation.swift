public import AuthContract

/// A key that was replaced.
public struct KeyRotation: Sendable, Hashable {
    /// The device, the same as before.
    public let deviceId: String
    /// When the new key became the current one, on the service's clock.
    public let effectiveAt: UnixTime
}
