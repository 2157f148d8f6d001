import AuthServer
import AuthService
import Foundation
import SQLiteStores

/// Administration straight on the database, beside a service that may be running.
struct LocalStore: Administration {
    private let stores: SQLiteStores
    private let administration: LocalAdministration

    /// Opens the database that the configuration names.
    ///
    /// - Parameter creating: whether to make it where there is none.
    init(_ configuration: ServiceConfiguration, creating: Bool) throws {
        let path = configuration.databasePath
        try configuration.checkDatabasePlace()
        guard creating || FileManager.default.fileExists(atPath: path) else {
            throw CommandFailure(.impossible, "there is no database at \(path): start `serve` or `apps add` first")
        }
        stores = try SQLiteStores(path: path, role: .administration)
        let service = AuthService(stores: stores.all, key: try configuration.storeKey())
        administration = LocalAdministration(service: service, stores: stores.all, actor: SystemUser.actor)
    }

    func answer(_ call: AdminCall) async throws -> AdminAnswer { await administration.answer(call) }

    func close() async { await stores.close() }
}
