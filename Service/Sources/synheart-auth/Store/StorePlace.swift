import AuthServer
import SQLiteStores

/// The place of the service's state.
enum StorePlace: CustomStringConvertible {
    /// A SQLite file, by its resolved path. The database's other files are next to it.
    case file(String)
    /// Servers that several nodes share, by their URLs: PostgreSQL, and optionally Redis for challenges, claims and rate limits.
    case servers(postgresql: String, redis: String?)

    /// The path of the SQLite file; nil: the stores are on servers.
    var file: String? {
        switch self {
        case .file(let path): path
        case .servers: nil
        }
    }

    /// The place, for messages, without secrets.
    var description: String {
        switch self {
        case .file(let path): path
        case .servers(_, redis: nil): "PostgreSQL"
        case .servers: "PostgreSQL and Redis"
        }
    }
}

extension ServiceConfiguration {
    /// The path of the SQLite database as configured.
    var databasePath: String { text(.database) ?? "synheart-auth.sqlite" }

    /// The place of the state: PostgreSQL if its URL is set, together with Redis if the URL of Redis is set. If the URL of
    /// PostgreSQL is not set, the place is the SQLite file.
    func storePlace() throws -> StorePlace {
        guard let postgresql = secret(.postgresql) else { return .file(try SQLiteStores.resolvedPath(databasePath)) }
        return .servers(postgresql: postgresql, redis: secret(.redis))
    }
}
