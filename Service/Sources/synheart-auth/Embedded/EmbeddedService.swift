import AuthContract
import AuthServer
import AuthService
import Logging
import SQLiteStores

/// A service inside this process, on free ports and with a fresh database in a folder.
struct EmbeddedService {
    let service: AuthService
    let addresses: AuthServer.Addresses

    /// Starts the service with one app, and stops it when `body` returns.
    static func run(
        in folder: String, app: AppRecord, providers: any EvidenceProviders = NoProviders(),
        protection: ProtectionSettings = ProtectionSettings(),
        _ body: @escaping @Sendable (EmbeddedService) async throws -> Void
    ) async throws {
        let configuration = try ServiceConfiguration(
            flags: [.database: [folder + "/service.sqlite"]], for: .store)
        let place = try configuration.storePlace()
        let key = try StoreKey(configuration, of: place, creating: true)
        let stores = try SQLiteStores(path: place.description)
        try await key.admitService(to: stores)
        let service = AuthService(
            stores: stores.all, key: key.key, providers: providers, recordings: RecordingFiles(), protection: protection
        )
        _ = try await service.apps.add(app, actor: "embedded")
        var settings = ServerSettings()
        (settings.port, settings.operations.port) = (0, 0)
        let server = AuthServer(
            service: service, stores: stores.all, settings: settings, logger: Logger(label: "embedded"))
        try await closing(stores.close) {
            try await run(server, service, body)
        }
    }

    private static func run(
        _ server: AuthServer, _ service: AuthService,
        _ body: @escaping @Sendable (EmbeddedService) async throws -> Void
    ) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            let (ready, announce) = AsyncStream.makeStream(of: AuthServer.Addresses.self)
            group.addTask { try await server.run(stopsOnSignals: false) { announce.yield($0) } }
            group.addTask {
                guard let addresses = await ready.first(where: { _ in true }) else { return }
                try await body(EmbeddedService(service: service, addresses: addresses))
            }
            // Wait for the first task that ends: `body`, or the server if it cannot start. Then stop the other task.
            try await group.next()
            group.cancelAll()
        }
    }
}
