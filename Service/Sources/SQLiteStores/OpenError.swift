/// Why a database could not be opened. The description is for the person who starts the service.
public struct OpenError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The kind of a failure.
    public struct Code: RawRepresentable, Sendable, Hashable {
        /// A short name for logs.
        public let rawValue: String

        /// A code with this raw value.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The folder of the file does not exist.
        public static let noSuchFolder = Self(rawValue: "noSuchFolder")
        /// The file or its folder cannot be read.
        public static let notReadable = Self(rawValue: "notReadable")
        /// The file or its folder cannot be written.
        public static let notWritable = Self(rawValue: "notWritable")
        /// The file is not a SQLite database, or belongs to another program.
        public static let notADatabase = Self(rawValue: "notADatabase")
        /// A newer version of this software wrote the file.
        public static let newerVersion = Self(rawValue: "newerVersion")
        /// Another service has the file open.
        public static let inUse = Self(rawValue: "inUse")
        /// The file has more than one hard link.
        public static let severalNames = Self(rawValue: "severalNames")
        /// The content is damaged.
        public static let damaged = Self(rawValue: "damaged")
        /// Any other error of the system.
        public static let unavailable = Self(rawValue: "unavailable")
    }

    /// The kind of the failure. Later versions may add codes.
    public let code: Code
    /// What failed, on which file, and what to do.
    public let description: String

    init(_ code: Code, _ description: String) {
        self.code = code
        self.description = description
    }
}
