import ArgumentParser
import AuthContract
import AuthServer
import AuthService
import PostgreSQLStores
import RedisStores
import StrictJSON

/// The commands for the store that keeps the history of replay claims.
struct KeeperCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "keeper", abstract: "Show or change the store that keeps the history of replay claims.",
        discussion: """
            All nodes on one PostgreSQL keep their replay claims in one place: in PostgreSQL itself, or in one Redis. PostgreSQL \
            names that place. A node that is configured for another one makes no claims, is not ready, and says why.

            To change it while nodes run, such as to move to another Redis:

              1. Run `keeper set` with the new configuration. Nodes with the old one stop
                 accepting signed requests within 5 s.
              2. Restart each node with the new configuration.

            Claims stay behind, so the nodes refuse signed requests for 6 s longer, with 503; for up to two minutes if PostgreSQL \
            was started or failed over, or nodes could not read it, in the last 12 minutes.
            """,
        subcommands: [Show.self, Set.self])

    /// The options of both subcommands.
    struct Deployment: ParsableArguments {
        @OptionGroup var stores: StoreOptions
        @Option(
            help: "The service's configuration file, for stores and service key. Default: $SYNHEART_AUTH_CONFIG.")
        var config: String?

        /// Opens the database, and runs `body` with it and with the place of the claims that the configuration names.
        ///
        /// - Parameter checksPlace: whether to refuse a Redis that cannot be used from this machine.
        func use(checksPlace: Bool = false, _ body: (PostgreSQLStores, ClaimPlace) async throws -> Void) async throws {
            let configuration = try ServiceConfiguration.inEffect(config: config, flags: stores.flags, for: .store)
            guard let url = configuration.secret(.postgresql) else {
                throw CommandFailure(
                    .impossible, "there is no stores.postgresql. A SQLite file keeps its claims beside it, for one node"
                )
            }
            let redis = configuration.secret(.redis)
            let place = try redis.map { try RedisStores.place(of: $0) } ?? .postgresql
            if checksPlace, let redis, let fault = await RedisStores.obstacle(redis) {
                throw CommandFailure(
                    .impossible,
                    "nothing was changed: \(fault.sentence) With this keeper, every node would refuse signed requests. Run the command "
                        + "where this Redis can be used")
            }
            let opened = try await ServerStores.forCommand(postgresql: url, redis: nil, creating: false)
            try await closing(opened.close) { try await body(opened.postgresql, place) }
        }
    }

    struct Show: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show the keeper, and whether it is the one that is configured here.",
            discussion: """
                  synheart-auth keeper show --config /etc/synheart-auth.yaml
                  synheart-auth keeper show --json | jq -r .keeper
                """)
        @OptionGroup var deployment: Deployment
        @OptionGroup var output: OutputOptions

        func run() async throws {
            try await reporting {
                try await deployment.use { stores, configured in
                    let keeper = try await stores.namedKeeper()
                    try output.show(
                        JSONObject([
                            ("keeper", keeper.place.map { .string($0.description) } ?? .null),
                            ("id", .string(keeper.id)),
                            ("renewed_at", keeper.renewedAt.map { .string($0.iso8601) } ?? .null),
                            ("configured", .string(configured.description)),
                            ("is_configured", .bool(keeper.place == configured)),
                        ]))
                }
            }
        }
    }

    struct Set: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Make the store that is configured here the keeper, under a new id.",
            discussion: """
                Run it while nodes use the former keeper: then they refuse signed requests for 6 s, because the claims stay behind. \
                Otherwise, and where the keeper stays the same, it may be two minutes. It always makes a new id, and the nodes \
                forget which PostgreSQL primary was the newest: after an older primary was made the only one again, run it with \
                the configuration of before. A Redis that cannot be used from here is refused.

                  synheart-auth keeper set --config /etc/synheart-auth.yaml
                  synheart-auth keeper set --postgresql postgresql://… \\
                      --redis rediss://redis-2.example.com
                """)
        @OptionGroup var deployment: Deployment
        @OptionGroup var output: OutputOptions

        func run() async throws {
            try await reporting {
                try await deployment.use(checksPlace: true) { stores, place in
                    let before = try await stores.setKeeper(place, actor: SystemUser.actor)
                    let name = before.place?.description
                    try output.done(
                        "the claims are kept in \(place) now, before in \(name ?? "no store")",
                        JSONObject([
                            ("keeper", .string(place.description)), ("before", name.map { .string($0) } ?? .null),
                        ]))
                }
            }
        }
    }
}
