/// The error for a configuration that the service refuses.
package struct ConfigurationError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The setting at fault: its name in a file, such as `server.port`, its variable or its flag; `config` for a whole file.
    package let key: String
    /// The reason. It never contains the value of a secret.
    package let reason: String

    /// An error about a key.
    package init(_ key: String, _ reason: String) {
        self.key = key
        self.reason = reason
    }

    package var description: String { "\(key): \(reason)" }
}
