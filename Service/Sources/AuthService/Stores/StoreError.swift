/// A store failed, or did not answer in time. The service answers 503, because it never accepts a request that it could not
/// check.
public struct StoreError: Error, Sendable, CustomStringConvertible {
    /// The kind of a failure.
    public struct Code: RawRepresentable, Sendable, Hashable, CaseIterable {
        /// A short name for logs.
        public let rawValue: String

        /// A code with this raw value.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The store is down, full, read-only or broken.
        public static let unavailable = Self(rawValue: "unavailable")
        /// The store did not answer within its deadline.
        public static let tooSlow = Self(rawValue: "tooSlow")
        /// The stored data cannot be read: a newer version wrote it, or it is damaged.
        public static let unreadable = Self(rawValue: "unreadable")

        /// Every code of this version, in the order above.
        public static let allCases: [Self] = [.unavailable, .tooSlow, .unreadable]
    }

    /// The kind of the failure, for metrics and for callers that retry.
    public let code: Code
    /// Why the store failed. It is logged.
    public let reason: String

    /// Memberwise initializer.
    public init(_ code: Code, _ reason: String) {
        self.code = code
        self.reason = reason
    }

    public var description: String { "\(code.rawValue): \(reason)" }
}
