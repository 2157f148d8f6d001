import AuthServer
import AuthService
import Foundation
import Logging
import SQLiteStores

/// The opened stores that a configuration names, and the key that seals their secrets.
struct OpenedStores {
    let engine: any StoreEngine
    let key: StoreKey

    /// Opens the stores for the service. Creates SQLite's file and its key if they do not exist.
    static func forService(
        _ configuration: ServiceConfiguration, observer: any StoreObserver, logger: Logger
    ) async throws -> OpenedStores {
        try configuration.checkDatabasePlace()
        let place = try configuration.storePlace()
        // Create the key first: if the process ends in between, no database lacks its key.
        let key = try StoreKey(configuration, of: place, creating: true)
        switch place {
        case .file(let path):
            var options = SQLiteStores.Options()
            options.observer = observer
            return OpenedStores(engine: try SQLiteStores(path: path, options: options), key: key)
        case .servers(let postgresql, let redis):
            let engine = try await ServerStores.forService(
                postgresql: postgresql, redis: redis, isFailoverLossless: configuration.isFailoverLossless,
                observer: observer, logger: logger)
            return OpenedStores(engine: engine, key: key)
        }
    }

    /// Opens the stores for a command, while a service may be running.
    ///
    /// - Parameter creating: whether to create what does not exist: a SQLite file and its key, or the tables in PostgreSQL.
    static func forCommand(_ configuration: ServiceConfiguration, creating: Bool = false) async throws -> OpenedStores {
        let place = try configuration.storePlace()
        if let path = place.file {
            try configuration.checkDatabasePlace()
            guard creating || FileManager.default.fileExists(atPath: path) else {
                try SQLiteStores.requireNotLost(path)
                throw CommandFailure(
                    .impossible,
                    "there is no database at \(configuration.databasePath): start `serve` or `apps add` first")
            }
        }
        let key = try StoreKey(configuration, of: place, creating: creating)
        switch place {
        case .file(let path):
            // A command can wait longer for a busy database than a request can.
            var options = SQLiteStores.Options()
            options.deadline = .seconds(60)
            options.busyTimeout = .seconds(30)
            return OpenedStores(
                engine: try SQLiteStores(path: path, role: .administration, options: options), key: key)
        case .servers(let postgresql, let redis):
            return OpenedStores(
                engine: try await ServerStores.forCommand(postgresql: postgresql, redis: redis, creating: creating),
                key: key)
        }
    }
}
