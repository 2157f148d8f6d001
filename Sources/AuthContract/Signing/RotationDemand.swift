/// The value of `X-Synheart-Rotate`: the service demands a rotation.
public struct RotationDemand: Sendable, Hashable {
    /// The deadline.
    public let by: UnixTime
    /// The reason. After the deadline a key that may be compromised can no longer rotate.
    public let reason: RotationReason

    /// Memberwise initializer.
    public init(by: UnixTime, reason: RotationReason) {
        self.by = by
        self.reason = reason
    }

    /// The field's value: `required; by=1780272000; reason=scheduled`.
    public var headerValue: String { "required; by=\(by); reason=\(reason.rawValue)" }
}
