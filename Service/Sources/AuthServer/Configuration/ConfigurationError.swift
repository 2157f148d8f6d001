/// A configuration that the service refuses to start with.
public struct ConfigurationError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The key at fault, as it stands in a file, such as `server.port`.
    public let key: String
    /// What is wrong with it. Never the value of a secret.
    public let reason: String

    /// An error about a key.
    public init(_ key: String, _ reason: String) {
        self.key = key
        self.reason = reason
    }

    public var description: String { "\(key): \(reason)" }
}
