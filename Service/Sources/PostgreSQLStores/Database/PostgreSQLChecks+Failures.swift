internal import AuthService

/// Failures to connect that the server describes only in its message.
extension PostgreSQLChecks {
    /// The result for a server that has no free connection; nil: the failure is another one. The server reports a lack of
    /// connections only in its message.
    func connectionsExhausted(_ sentence: String) -> StoreCheckResult? {
        let words = ["too many clients", "connection slots are reserved", "too many connections for"]
        guard words.contains(where: sentence.contains) else { return nil }
        return .failure(
            "postgresql_connections", sentence,
            do:
                "Raise max_connections of the server, or a CONNECTION LIMIT of the user or the database, or stop programs that hold connections. This node opens up to \(connections + 1)."
        )
    }

    /// The result for a server that was reached and takes no writes; nil: the failure is another one.
    func readOnly(_ sentence: String) -> StoreCheckResult? {
        guard ["session is read-only", "server is in hot standby mode"].contains(where: sentence.contains) else {
            return nil
        }
        return .failure(
            "postgresql_writes",
            "The server takes no writes: it is a standby, or the user or the database is read-only. \(sentence)",
            do:
                "Name the primary in the URL too, or set default_transaction_read_only to off for this user and database."
        )
    }
}
