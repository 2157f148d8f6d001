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
            on standard error. SIGTERM finishes what is in flight.

              synheart-auth serve --database /var/lib/synheart-auth/db.sqlite
              synheart-auth serve --port 0 --operations-port 0        two free ports, for tests
            """)

    @Option(help: "The public listener's address.") var host: String?
    @Option(help: "The public listener's port; 0 picks a free one.") var port: Int?
    @Option(name: .customLong("operations-port"), help: "The operations listener's port, on loopback; 0 picks a free one.")
    var operationsPort: Int?
    @Flag(name: .customLong("insecure-http"), help: "Serve another address than loopback without TLS.")
    var insecureHTTP = false
    @Option(name: .customLong("log-level"), help: "trace, debug, info, notice, warning, error or critical.")
    var logLevel = Logger.Level.info
    @OptionGroup var database: DatabaseOptions

    func run() async throws {
        try await reporting {
            LoggingSystem.bootstrap { [logLevel] in JSONLogHandler(label: $0, level: logLevel) }
            let logger = Logger(label: "synheart-auth")
            var settings = ServerSettings()
            settings.host = host ?? environment("HOST") ?? settings.host
            settings.port = try port ?? environmentPort("PORT") ?? settings.port
            settings.operationsPort = try operationsPort ?? environmentPort("OPERATIONS_PORT") ?? settings.operationsPort
            settings.insecureHTTP = insecureHTTP

            let stores = try SQLiteStores(path: database.path)
            let key = try ServiceKeyFile(database: database.path).load()
            let service = AuthService(stores: try stores.serving(), key: key)
            let server = AuthServer(
                service: service, settings: settings,
                readiness: Readiness([.init("database") { _ = try await service.apps.records() }]), logger: logger)
            try await server.run { addresses in
                print("ready public=\(addresses.publicURL) operations=\(addresses.operationsURL)")
                fflush(nil)
            }
        }
    }

    private func environment(_ name: String) -> String? {
        ProcessInfo.processInfo.environment["SYNHEART_AUTH_\(name)"]
    }

    private func environmentPort(_ name: String) throws -> Int? {
        guard let text = environment(name) else { return nil }
        guard let port = UInt16(text) else {
            throw CommandFailure(.impossible, "SYNHEART_AUTH_\(name) is not a port: \(text)")
        }
        return Int(port)
    }
}

extension Logger.Level: @retroactive ExpressibleByArgument {}
