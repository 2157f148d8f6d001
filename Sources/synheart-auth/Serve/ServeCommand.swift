import ArgumentParser
import AuthContract
import AuthServer
import AuthService
import Foundation
import Logging
import SQLiteStores

/// Runs the service.
struct ServeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve", abstract: "Run the auth service.",
        discussion: """
            Says `ready public=… operations=…` on standard output once both listeners accept connections; logs are JSON lines
            on standard error. SIGTERM or SIGINT finishes what is in flight; a second one stops at once.

              synheart-auth serve --database /var/lib/synheart-auth/db.sqlite
              synheart-auth serve --config /etc/synheart-auth.yaml
              synheart-auth serve --port 0 --operations-port 0        two free ports, for tests
            """)

    @OptionGroup var options: ServiceOptions
    @Flag(
        name: .customLong("print-admin-credential"),
        help: "Where the database has no credential yet, make one of role admin and print it before the ready line.")
    var printAdminCredential = false

    func run() async throws {
        try await reporting {
            let configuration = try options.configuration()
            let level = configuration.text(.logLevel).flatMap(Logger.Level.init(rawValue:)) ?? .info
            LoggingSystem.bootstrap { JSONLogHandler(label: $0, level: level) }
            let logger = Logger(label: "synheart-auth")

            let path = configuration.text(.database) ?? "synheart-auth.sqlite"
            let stores = try SQLiteStores(path: path)
            let key = try configuration.serviceKey ?? ServiceKeyFile(database: path).load()
            let providers = try await Providers(configuration, stores: stores, database: path)
            let service = AuthService(
                stores: stores.all, key: key, publicOrigin: try configuration.publicOrigin,
                providers: providers.evidence, protection: configuration.protection)
            let server = AuthServer(
                service: service, stores: stores.all, settings: try configuration.server,
                readiness: Readiness(service: service, stores: stores.all, further: [providers.readiness]),
                logger: logger)
            let credential = printAdminCredential ? try await firstCredential(service, logger) : nil
            try await server.run(background: { await providers.run(for: service) }) { addresses in
                if let credential { print("admin-credential \(credential.exposed)") }
                print("ready public=\(addresses.publicURL) operations=\(addresses.operationsURL)")
                fflush(nil)
            }
            await providers.shutdown()
            await stores.close()
        }
    }

    /// The first credential of a fresh database; nil where there is one already.
    private func firstCredential(_ service: AuthService, _ logger: Logger) async throws -> Secret? {
        guard try await service.credentials.list().isEmpty else {
            logger.notice("no admin credential is printed: the database has credentials")
            return nil
        }
        return try await service.credentials.create(
            name: "first admin", role: .admin, apps: [], life: 30 * 86_400, actor: "cli"
        ).text
    }
}
