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
        /// The file is no SQLite database, or one of another program.
        case notADatabase
        /// Written by a newer version of this software.
        case newerVersion
        /// Another service has it open.
        case inUse
        /// The file has more than one hard link.
        case severalNames
        /// What it holds is damaged.
        case damaged
        /// Anything else that the system refuses.
        case unavailable
    }

    public let code: Code
    /// What happened to which file, and what to do.
    public let description: String

    init(_ code: Code, _ description: String) {
        self.code = code
        self.description = description
    }
}
