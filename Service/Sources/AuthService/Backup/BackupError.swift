/// The reason why a backup is refused.
package struct BackupError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The kind of a fault.
    package enum Code: Sendable, Hashable {
        /// The file is no backup of this service.
        case notABackup
        /// A newer version of this software wrote the backup.
        case newerVersion
        /// The backup was sealed with another service key.
        case anotherKey
        /// Bytes were changed, removed, moved or added.
        case damaged
        /// The audit log was changed before the backup was taken.
        case brokenAudit
    }

    package let code: Code
    /// The fault, and the remedy if one is known. The caller puts the file's name before this text.
    package let description: String

    init(_ code: Code, _ description: String) {
        self.code = code
        self.description = description
    }
}
