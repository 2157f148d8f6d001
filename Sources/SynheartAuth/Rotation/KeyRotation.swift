public import AuthContract

/// The result of a rotation.
public struct KeyRotation: Sendable, Hashable {
    /// The device id, which does not change.
    public let deviceId: String
    /// The time when the new key became the current one, on the service's clock.
    public let effectiveAt: UnixTime

    /// Memberwise initializer.
    public init(deviceId: String, effectiveAt: UnixTime) {
        self.deviceId = deviceId
        self.effectiveAt = effectiveAt
    }
}
