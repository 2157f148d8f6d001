import ArgumentParser
import AuthServer

/// The flags that name the stores.
struct StoreOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The SQLite database.", discussion: "Default: that of the configuration, else synheart-auth.sqlite."))
    var database: String?
    @Option(
        help: ArgumentHelp(
            "A PostgreSQL URL, such as postgresql://auth@db.example.com/auth, in place of SQLite.",
            discussion: "Every process can read a flag: give a URL with a password as $SYNHEART_AUTH_STORES_POSTGRESQL."
        ))
    var postgresql: String?
    @Option(
        help: ArgumentHelp(
            "A Redis or Valkey URL, such as rediss://redis.example.com, beside PostgreSQL.",
            discussion: "It keeps challenges, claims and rates. With a password: $SYNHEART_AUTH_STORES_REDIS."))
    var redis: String?

    /// The flags that are given.
    var flags: [ConfigurationKey: [String]] {
        let given: [(ConfigurationKey, String?)] = [(.database, database), (.postgresql, postgresql), (.redis, redis)]
        return Dictionary(uniqueKeysWithValues: given.map { ($0, $1.map { [$0] } ?? []) })
    }

    /// Whether any of them is given.
    var isGiven: Bool { database != nil || postgresql != nil || redis != nil }
}
