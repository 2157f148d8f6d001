/// The reason why a store could not be opened. The description is for the person who starts the service, and contains no
/// secret.
public struct StoreOpenError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The kind of a failure.
    public struct Code: RawRepresentable, Sendable, Hashable {
        /// A short name for logs.
        public let rawValue: String

        /// A code with this raw value.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The file is not a database, or the database belongs to another program.
        public static let notADatabase = Self(rawValue: "notADatabase")
        /// A newer version of this software wrote the data, and this version cannot work with them.
        public static let newerVersion = Self(rawValue: "newerVersion")
        /// Any other error of the system or of the server.
        public static let unavailable = Self(rawValue: "unavailable")

        /// The folder of the file does not exist.
        public static let noSuchFolder = Self(rawValue: "noSuchFolder")
        /// A file or its folder cannot be read.
        public static let notReadable = Self(rawValue: "notReadable")
        /// The file or its folder cannot be written.
        public static let notWritable = Self(rawValue: "notWritable")
        /// Another process uses the file, or a restore would replace an existing file.
        public static let inUse = Self(rawValue: "inUse")
        /// The file has more than one hard link.
        public static let severalNames = Self(rawValue: "severalNames")
        /// The file is missing, but other files that belong to it are still there.
        public static let lost = Self(rawValue: "lost")
        /// The rows were moved to another database. The file still has the rows as they were before the move.
        public static let moved = Self(rawValue: "moved")
        /// The content is damaged.
        public static let damaged = Self(rawValue: "damaged")

        /// The URL of the store cannot be parsed.
        public static let malformedURL = Self(rawValue: "malformedURL")
        /// No connection to a server that accepts writes can be opened.
        public static let unreachable = Self(rawValue: "unreachable")
        /// The server is older than PostgreSQL 15, or the database's encoding is not UTF-8.
        public static let unsupported = Self(rawValue: "unsupported")
        /// The tables do not exist, or are of an older version.
        public static let needsMigration = Self(rawValue: "needsMigration")
        /// The database user lacks a privilege.
        public static let notAllowed = Self(rawValue: "notAllowed")
    }

    /// The kind of failure.
    public let code: Code
    /// The failure, its place, and the remedy.
    public let description: String

    /// An error with a description for a person.
    public init(_ code: Code, _ description: String) {
        self.code = code
        self.description = description
    }
}
