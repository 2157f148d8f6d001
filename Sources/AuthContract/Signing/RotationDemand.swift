/// A demand to rotate: the value of `X-Synheart-Rotate`.
public struct RotationDemand: Sendable, Hashable {
    /// By when the device must rotate.
    public let by: UnixTime
    /// Why it must: past `by` a key that may be compromised can no longer rotate.
    public let reason: RotationReason

    /// A demand.
    public init(by: UnixTime, reason: RotationReason) {
        self.by = by
        self.reason = reason
    }

    /// The field's value: `required; by=1780272000; reason=scheduled`.
    public var headerValue: String { "required; by=\(by); reason=\(reason.rawValue)" }
}
