import ArgumentParser
import AuthServer
import AuthService
import PostgreSQLStores
import StrictJSON

/// Migrates the tables in PostgreSQL to this version.
struct MigrateCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "migrate", abstract: "Create the tables in PostgreSQL, or bring them to this version.",
        discussion: """
            Nodes of the version before may go on running. Make a backup first: there is no way back. Run at once by several \
            nodes, one migrates and the others wait. A SQLite file needs no command: the service migrates it when it starts.

              synheart-auth migrate --config /etc/synheart-auth.yaml
              SYNHEART_AUTH_STORES_POSTGRESQL=postgresql://… synheart-auth migrate
            """)
    @OptionGroup var stores: StoreOptions
    @Option(help: "The service's configuration file, for stores and service key. Default: $SYNHEART_AUTH_CONFIG.")
    var config: String?
    @OptionGroup var output: OutputOptions

    func run() async throws {
        try await reporting {
            let configuration = try ServiceConfiguration.inEffect(config: config, flags: stores.flags, for: .store)
            guard let url = configuration.secret(.postgresql) else {
                throw CommandFailure(
                    .impossible,
                    "there is no stores.postgresql. The service migrates a SQLite file itself when it starts")
            }
            let isChanged = try await PostgreSQLStores.migrate(url)
            try output.done(
                isChanged ? "the tables have this version now" : "the tables had this version already",
                JSONObject([("migrated", .bool(isChanged))]))
        }
    }
}
