/// The service refuses a configuration.
public struct ConfigurationError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The key at fault as in a file, such as `server.port`.
    public let key: String
    /// What is wrong with it. It never has the value of a secret.
    public let reason: String

    /// An error about a key.
    public init(_ key: String, _ reason: String) {
        self.key = key
        self.reason = reason
    }

    public var description: String { "\(key): \(reason)" }
}
