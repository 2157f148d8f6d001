/// Why a PostgreSQL database could not be opened. The description is for the person who starts the service, and contains no
/// secret.
public struct PostgreSQLOpenError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The kind of a failure.
    public struct Code: RawRepresentable, Sendable, Hashable {
        /// A short name for logs.
        public let rawValue: String

        /// A code with this raw value.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The URL cannot be read.
        public static let malformedURL = Self(rawValue: "malformedURL")
        /// No server that takes writes answers.
        public static let unreachable = Self(rawValue: "unreachable")
        /// A server answers and refuses: the password, the user, the database, TLS.
        public static let refused = Self(rawValue: "refused")
        /// The server is older than PostgreSQL 15, or the database's encoding is not UTF-8.
        public static let unsupported = Self(rawValue: "unsupported")
        /// The tables do not exist, or are of an older version.
        public static let needsMigration = Self(rawValue: "needsMigration")
        /// A newer version of this software wrote the tables, and this version cannot work with them.
        public static let newerVersion = Self(rawValue: "newerVersion")
        /// A right of the user is missing.
        public static let notAllowed = Self(rawValue: "notAllowed")
        /// The database holds tables of another program.
        public static let notADatabase = Self(rawValue: "notADatabase")
        /// Any other error of the server.
        public static let unavailable = Self(rawValue: "unavailable")
    }

    /// The kind of the failure. Later versions may add codes.
    public let code: Code
    /// What failed, where, and what to do.
    public let description: String

    init(_ code: Code, _ description: String) {
        self.code = code
        self.description = description
    }
}
