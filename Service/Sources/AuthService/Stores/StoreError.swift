/// A store failed, or did not answer in time. The service answers 503: it never accepts what it could not check.
public struct StoreError: Error, Sendable, CustomStringConvertible {
    /// What kind of failure.
    public struct Code: RawRepresentable, Sendable, Hashable, CaseIterable {
        /// A short name for logs.
        public let rawValue: String

        /// By its raw value.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// It is down, full, read-only or broken.
        public static let unavailable = Self(rawValue: "unavailable")
        /// It did not answer within its deadline.
        public static let tooSlow = Self(rawValue: "tooSlow")
        /// What it holds cannot be read: written by a newer version, or damaged.
        public static let unreadable = Self(rawValue: "unreadable")

        /// Every code of this version, in the order above.
        public static let allCases: [Self] = [.unavailable, .tooSlow, .unreadable]
    }

    public let code: Code
    /// For the log.
    public let reason: String

    /// Memberwise initializer.
    public init(_ code: Code, _ reason: String) {
        self.code = code
        self.reason = reason
    }

    public var description: String { "\(code.rawValue): \(reason)" }
}
