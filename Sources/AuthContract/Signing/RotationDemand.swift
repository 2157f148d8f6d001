/// The value of `X-Synheart-Rotate`: the service demands a rotation.
public struct RotationDemand: Sendable, Hashable {
    /// The deadline.
    public let by: UnixTime
    /// The reason. If it is `compromise`, the key can no longer rotate after the deadline ``by``.
    public let reason: RotationReason

    /// Memberwise initializer.
    public init(by: UnixTime, reason: RotationReason) {
        self.by = by
        self.reason = reason
    }

    /// The field's value: `required; by=1780272000; reason=scheduled`.
    public var headerValue: String { "required; by=\(by); reason=\(reason.rawValue)" }

    /// Reads the field's value. An unknown or absent reason is read as `scheduled`.
    public init(headerValue: String) throws(ContractError) {
        let parts = headerValue.split(separator: ";").map { $0.drop { $0 == " " } }
        func value(_ name: String) -> String? {
            parts.first { $0.hasPrefix(name + "=") }.map { String($0.dropFirst(name.count + 1)) }
        }
        guard parts.first == "required", let by = value("by") else {
            throw ContractError("\(HeaderName.rotate) must say required and by when")
        }
        self.by = try UnixTime(header: by)
        reason = value("reason").flatMap(RotationReason.init(rawValue:)) ?? .scheduled
    }
}
