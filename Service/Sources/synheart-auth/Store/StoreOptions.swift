import ArgumentParser
import AuthServer

/// The flags that name the stores.
struct StoreOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            ConfigurationKey.database.row.meaning,
            discussion: "Default: that of the configuration, else synheart-auth.sqlite."))
    var database: String?
    @Option(
        help: ArgumentHelp(
            ConfigurationKey.postgresql.row.meaning,
            discussion: "Every process can read a flag: give a URL with a password as $SYNHEART_AUTH_STORES_POSTGRESQL."
        ))
    var postgresql: String?
    @Option(
        help: ArgumentHelp(
            ConfigurationKey.redis.row.meaning,
            discussion: "It keeps challenges, claims and rates. With a password: $SYNHEART_AUTH_STORES_REDIS."))
    var redis: String?

    /// The value of each flag, as a list; empty: the flag is not given.
    var flags: [ConfigurationKey: [String]] {
        let given: [(ConfigurationKey, String?)] = [(.database, database), (.postgresql, postgresql), (.redis, redis)]
        return Dictionary(uniqueKeysWithValues: given.map { ($0, $1.map { [$0] } ?? []) })
    }

    /// Whether any of the flags is given.
    var isGiven: Bool { database != nil || postgresql != nil || redis != nil }
}
