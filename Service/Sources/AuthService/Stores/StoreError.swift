/// A store failed, or did not answer in time. The service answers 503: it never accepts what it could not check.
public struct StoreError: Error, Sendable, CustomStringConvertible {
    /// What kind of failure.
    public enum Code: String, Sendable, Hashable, CaseIterable {
        /// It is down, full, read-only or broken.
        case unavailable
        /// It did not answer within its deadline.
        case tooSlow
        /// What it holds cannot be read: written by a newer version, or damaged.
        case unreadable
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
