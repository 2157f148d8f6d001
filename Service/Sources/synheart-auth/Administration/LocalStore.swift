import AuthServer
import AuthService
import Foundation
import SQLiteStores

/// Administration directly on the database. A service may be running.
struct LocalStore: Administration {
    private let stores: SQLiteStores
    private let key: StoreKey
    private let administration: LocalAdministration

    /// Opens the database of the configuration under its service key.
    ///
    /// - Parameter creating: whether to create it if there is none.
    static func open(_ configuration: ServiceConfiguration, creating: Bool) async throws -> LocalStore {
        let path = configuration.databasePath
        try configuration.checkDatabasePlace()
        guard creating || FileManager.default.fileExists(atPath: path) else {
            throw CommandFailure(.impossible, "there is no database at \(path): start `serve` or `apps add` first")
        }
        let key = try StoreKey(configuration, creating: creating)
        let stores = try SQLiteStores(path: key.database, role: .administration, options: options)
        do { try await key.admitCommand(to: stores, writing: false) } catch {
            await stores.close()
            throw error
        }
        return LocalStore(stores, key)
    }

    /// A person can wait longer for a busy database than a request.
    static var options: SQLiteStores.Options {
        var options = SQLiteStores.Options()
        options.deadline = .seconds(60)
        options.busyTimeout = .seconds(30)
        return options
    }

    private init(_ stores: SQLiteStores, _ key: StoreKey) {
        self.stores = stores
        self.key = key
        let service = AuthService(stores: stores.all, key: key.key)
        administration = LocalAdministration(service: service, stores: stores.all, actor: SystemUser.actor)
    }

    func answer(_ call: AdminCall) async throws -> AdminAnswer {
        if call.route.method != "GET" { try await key.admitCommand(to: stores, writing: true) }
        return await administration.answer(call)
    }

    func close() async { await stores.close() }
}
