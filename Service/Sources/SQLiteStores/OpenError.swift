/// Why a database could not be opened, as a sentence for the person who starts the service.
public struct OpenError: Error, Sendable, Hashable, CustomStringConvertible {
    /// What kind of failure.
    public enum Code: String, Sendable, Hashable {
        /// The folder of the file does not exist.
        case noSuchFolder
        /// The file or its folder cannot be read.
        case notReadable
        /// The file or its folder cannot be written.
        case notWritable
        /// The file is not a SQLite database, or belongs to another program.
        case notADatabase
        /// Written by a newer version of this software.
        case newerVersion
        /// Another service has it open.
        case inUse
        /// The file has more than one hard link.
        case severalNames
        /// The content is damaged.
        case damaged
        /// Any other error of the system.
        case unavailable
    }

    public let code: Code
    /// What failed, on which file, and what to do.
    public let description: String

    init(_ code: Code, _ description: String) {
        self.code = code
        self.description = description
    }
}
