/// Why Redis cannot be used. The description is for the person who starts the service, and contains no secrets.
public struct RedisOpenError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The kind of a failure.
    public struct Code: RawRepresentable, Sendable, Hashable {
        /// A short name for logs.
        public let rawValue: String

        /// A code with this raw value.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The URL is not one of the supported forms.
        public static let badURL = Self(rawValue: "badURL")
        /// A file of the TLS configuration cannot be used.
        public static let badTrust = Self(rawValue: "badTrust")
        /// No server could be reached, or none may be used.
        public static let unavailable = Self(rawValue: "unavailable")
    }

    /// The kind of the failure. Later versions may add codes.
    public let code: Code
    /// What failed, and what to do.
    public let description: String

    init(_ code: Code, _ description: String) {
        self.code = code
        self.description = description
    }
}
