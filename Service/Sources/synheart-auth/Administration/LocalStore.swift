import AuthServer
import AuthService

/// Administration directly on the database. A service may be running.
struct LocalStore: Administration {
    private let stores: any StoreEngine
    private let key: StoreKey
    private let administration: LocalAdministration

    /// Opens the stores of the configuration under their service key.
    ///
    /// - Parameter creating: whether to create what does not exist: a SQLite file and its key, or the tables in PostgreSQL.
    static func open(_ configuration: ServiceConfiguration, creating: Bool) async throws -> LocalStore {
        let opened = try await OpenedStores.forCommand(configuration, creating: creating)
        do { try await opened.key.admitCommand(to: opened.engine, writing: false) } catch {
            await opened.engine.close()
            throw error
        }
        return LocalStore(opened, archive: configuration.auditArchive)
    }

    private init(_ opened: OpenedStores, archive: AuditArchiveFolder?) {
        (stores, key) = (opened.engine, opened.key)
        var service = AuthService(stores: stores.all, key: key.key)
        service.auditTrail.folder = archive
        administration = LocalAdministration(service: service, stores: stores.all, actor: SystemUser.actor)
    }

    func answer(_ call: AdminCall) async throws -> AdminResponse {
        if call.route.method != "GET" { try await key.admitCommand(to: stores, writing: true) }
        return await administration.answer(call)
    }

    func close() async { await stores.close() }
}
