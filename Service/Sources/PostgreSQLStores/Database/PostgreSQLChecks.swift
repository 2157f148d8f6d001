internal import AuthContract
internal import AuthService

/// Checks a server and a database, with results for the operator.
struct PostgreSQLChecks: Sendable {
    let address: ServerAddress
    let connections: Int
    /// The store in which this node keeps its claims.
    let claims: ClaimPlace
    let isFailoverLossless: Bool
    let clock: any ServiceClock

    /// The server's properties.
    private struct Facts: Sendable {
        let version: Int64
        let versionName: String
        let encoding: String
        let usesTLS: Bool
        let isStandby: Bool
        let isReadOnly: Bool
        let settings: [String: String]
        let time: Int64
        let free: Int64
        let replicas: Int64
        let mayCreate: Bool
        let missingRights: [String]
        let schema: Migrator.State
        /// The keeper of the claims, and how many seconds ago a node renewed the keeper's lease; nil: the database has no
        /// table `claim_keeper`, or the user may not read it.
        let keeper: (place: ClaimPlace?, renewed: Int64?)?
        let server: ServerAddress.Server?
    }

    func findings() async -> [StoreCheckResult] {
        let facts: Facts
        do throws(StoreOpenError) {
            facts = try await DatabaseCheck.withConnection(address, deadline: .seconds(10)) {
                (connection) throws(StoreOpenError) in
                try DatabaseCheck.call(connection) { (connection) throws(StoreError) in try Self.facts(connection) }
            }
        } catch {
            let isRight = error.code == .notAllowed
            if let known = connectionsExhausted(error.description) ?? readOnly(error.description) { return [known] }
            return [
                .failure(
                    isRight ? "postgresql_rights" : "postgresql_connection", error.description,
                    do: isRight
                        ? "Make the user the owner of the tables."
                        : "Check the hosts, ports, user, password and TLS of the URL, and that a server runs there.")
            ]
        }
        return [
            .good("postgresql_connection", "PostgreSQL answers at \(facts.server?.name ?? "its address")."),
            version(facts), encoding(facts), tls(facts), writes(facts), schema(facts), rights(facts),
            durability(facts), replication(facts), clocks(facts), connectionLimit(facts), keeper(facts),
        ].compactMap { $0 }
    }

    private static func facts(_ connection: isolated Connection) throws(StoreError) -> Facts {
        let schema = try Migrator.state(connection)
        let row = try connection.row(
            """
            SELECT current_setting('server_version_num')::bigint AS version,
              current_setting('server_version') AS version_name, current_setting('server_encoding') AS encoding,
              coalesce((SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()), FALSE) AS tls,
              pg_is_in_recovery() AS standby, current_setting('transaction_read_only') = 'on' AS read_only,
              extract(epoch FROM clock_timestamp())::bigint AS time,
              current_setting('max_connections')::bigint - current_setting('superuser_reserved_connections')::bigint
                - (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend') AS free,
              (SELECT count(*) FROM pg_stat_replication) AS replicas,
              coalesce(has_schema_privilege(current_schema(), 'CREATE'), FALSE) AS may_create
            """)
        guard let row else { throw StoreError(.unreadable, "the server says nothing about itself") }
        var settings: [String: String] = [:]
        for setting in try connection.rows(
            "SELECT name, current_setting(name) AS value FROM unnest($1) AS name",
            [.texts(["fsync", "full_page_writes", "synchronous_commit", "synchronous_standby_names"])]
        ).rows { settings[try setting.text("name")] = try setting.optionalText("value") ?? "" }
        return Facts(
            version: try row.integer("version"), versionName: try row.text("version_name"),
            encoding: try row.text("encoding"), usesTLS: try row.bool("tls"), isStandby: try row.bool("standby"),
            isReadOnly: try row.bool("read_only"), settings: settings, time: try row.integer("time"),
            free: try row.integer("free"), replicas: try row.integer("replicas"),
            mayCreate: try row.bool("may_create"),
            missingRights: schema == .empty ? [] : try missingRights(connection), schema: schema,
            keeper: try keeper(connection, at: try row.integer("time")), server: connection.server)
    }

    private static func keeper(
        _ connection: isolated Connection, at now: Int64
    ) throws(StoreError) -> (place: ClaimPlace?, renewed: Int64?)? {
        let isThere = try connection.row(
            "SELECT coalesce(has_table_privilege(to_regclass('claim_keeper'), 'SELECT'), FALSE) AS known")?.bool(
                "known")
        guard isThere == true, let row = try connection.row("SELECT place, renewed_at FROM claim_keeper") else {
            return nil
        }
        let renewed = try row.optionalInteger("renewed_at")
        return (
            try row.optionalText("place").map { ClaimPlace($0) }, renewed.map { now.subtractingReportingOverflow($0).0 }
        )
    }

    /// The tables that the user may not read and change, the tables that it may not truncate, and the functions that it may not
    /// execute. Trigger functions are not among them: a trigger runs even if the user may not execute its function.
    private static func missingRights(_ connection: isolated Connection) throws(StoreError) -> [String] {
        try connection.rows(
            """
            SELECT name FROM unnest($1) AS name WHERE to_regclass(name) IS NOT NULL AND NOT (
              has_table_privilege(name, 'SELECT') AND has_table_privilege(name, 'INSERT')
              AND has_table_privilege(name, 'UPDATE') AND has_table_privilege(name, 'DELETE'))
            UNION ALL
            SELECT name FROM unnest($2) AS name
            WHERE to_regclass(name) IS NOT NULL AND NOT has_table_privilege(name, 'TRUNCATE')
            UNION ALL
            SELECT oid::regprocedure::text FROM pg_proc
            WHERE proname = ANY($3) AND pronamespace = to_regnamespace(current_schema())
              AND NOT has_function_privilege(oid, 'EXECUTE') AND prorettype <> 'trigger'::regtype
            ORDER BY name
            """,
            [
                .texts(Set(StoredTable.allCases.map(\.place)).union(Schema.tablesOfNoBackup).sorted()),
                .texts(Schema.ringTables), .texts(Schema.functions),
            ]
        ).rows.map { (row) throws(StoreError) in try row.text("name") }
    }

    // MARK: One finding each

    private func version(_ facts: Facts) -> StoreCheckResult {
        facts.version >= DatabaseCheck.minimumVersion
            ? .good("postgresql_version", "The server is PostgreSQL \(facts.versionName).")
            : .failure(
                "postgresql_version", "The server is PostgreSQL \(facts.versionName), and 15 or newer is needed.",
                do: "Upgrade the server.")
    }

    private func encoding(_ facts: Facts) -> StoreCheckResult? {
        facts.encoding == "UTF8"
            ? nil
            : .failure(
                "postgresql_encoding", "The database's encoding is \(facts.encoding), and UTF-8 is needed.",
                do: "Create the database with ENCODING 'UTF8' TEMPLATE template0.")
    }

    private func tls(_ facts: Facts) -> StoreCheckResult {
        guard let server = facts.server, !server.isLocal else {
            return .good("postgresql_tls", "The server is on this machine.")
        }
        guard facts.usesTLS else {
            return .failure(
                "postgresql_tls", "The connection to \(server.name) is not encrypted.",
                do: "Switch TLS on in the server, and remove sslmode from the URL or set it to verify-full.")
        }
        return server.isVerified
            ? .good("postgresql_tls", "The connection is encrypted, and the server's certificate and name are checked.")
            : .warning(
                "postgresql_tls",
                "The connection is encrypted, but nothing checks that \(server.name) is the right server.",
                do: "Set sslmode=verify-full and sslrootcert in the URL.")
    }

    private func writes(_ facts: Facts) -> StoreCheckResult {
        if facts.isStandby {
            return .failure(
                "postgresql_writes", "The server is a standby, which takes no writes.",
                do: "Name the primary in the URL too, and leave target_session_attrs out.")
        }
        return facts.isReadOnly
            ? .failure(
                "postgresql_writes", "Transactions are read-only by default.",
                do: "Set default_transaction_read_only to off for this user and database.")
            : .good("postgresql_writes", "The server takes writes.")
    }

    private func schema(_ facts: Facts) -> StoreCheckResult {
        if facts.schema == .empty, facts.mayCreate {
            return .warning(
                "postgresql_schema", "The database has no tables yet.",
                do: "Nothing: the service creates them. Or run `synheart-auth migrate`.")
        }
        do throws(StoreOpenError) { try DatabaseCheck.check(facts.schema) } catch {
            return .failure(
                "postgresql_schema", error.description,
                do: error.code == .newerVersion ? "Install the newer version." : "Run `synheart-auth migrate`.")
        }
        return .good("postgresql_schema", "The tables have version \(Schema.version).")
    }

    private func rights(_ facts: Facts) -> StoreCheckResult {
        if facts.schema == .empty, !facts.mayCreate {
            return .failure(
                "postgresql_rights", "The user may not create tables.",
                do: "Make it the owner of the database, or grant it CREATE on the schema.")
        }
        return facts.missingRights.isEmpty
            ? .good("postgresql_rights", "The user has the rights that it needs.")
            : .failure(
                "postgresql_rights",
                "The user may not read, change or truncate these tables, or execute these functions: \(facts.missingRights.joined(separator: ", ")).",
                do: "Make it the owner of the tables, or grant it these rights.")
    }

    private func durability(_ facts: Facts) -> StoreCheckResult {
        let off = ["fsync", "full_page_writes"].filter { facts.settings[$0] != "on" }
        guard off.isEmpty else {
            return .failure(
                "postgresql_durability",
                "\(off.joined(separator: " and ")) \(off.count == 1 ? "is" : "are") off: a loss of power may damage the database and lose registrations.",
                do: "Switch them on in postgresql.conf.")
        }
        return SessionSettings.tooWeak.contains(facts.settings["synchronous_commit"] ?? "")
            ? .warning(
                "postgresql_durability",
                "synchronous_commit is \(facts.settings["synchronous_commit"] ?? ""). The service switches it on for itself.",
                do: "Set it to on, so that other programs' changes of this database are durable too.")
            : .good("postgresql_durability", "Commits are on the disk before they are acknowledged.")
    }

    private func replication(_ facts: Facts) -> StoreCheckResult? {
        let isAsynchronous = facts.settings["synchronous_standby_names"]?.isEmpty ?? true
        if isFailoverLossless, isAsynchronous {
            return .failure(
                "postgresql_replication",
                "stores.lossless_failover says that no failover loses a commit, but no commit waits for a replica.",
                do: "Name a replica in synchronous_standby_names, or remove the setting.")
        }
        guard facts.replicas > 0 else { return nil }
        return !isAsynchronous
            ? .good("postgresql_replication", "A replica confirms commits, so a failover loses none.")
            : .warning(
                "postgresql_replication",
                "The replicas are asynchronous: a failover may lose the last registrations, rotations and revocations.",
                do: "Name a replica in synchronous_standby_names.")
    }

    private func clocks(_ facts: Facts) -> StoreCheckResult {
        let (difference, overflow) = clock.now.seconds.subtractingReportingOverflow(facts.time)
        let apart = overflow ? Int64.max : abs(difference)
        if apart > PostgreSQLStores.maximumClockDifference {
            return .failure(
                "postgresql_clock", "This machine's clock and the server's are \(apart) s apart.",
                do:
                    "Run a time service on both. The service is not ready beyond \(PostgreSQLStores.maximumClockDifference) s."
            )
        }
        return apart > 5
            ? .warning(
                "postgresql_clock", "This machine's clock and the server's are \(apart) s apart.",
                do: "Run a time service on both.")
            : .good("postgresql_clock", "This machine's clock and the server's agree.")
    }

    private func keeper(_ facts: Facts) -> StoreCheckResult? {
        guard let (place, renewed) = facts.keeper else { return nil }
        if place == claims {
            return .good("claim_keeper", "The claims are kept in \(claims), as it is configured here.")
        }
        guard let place, let renewed else {
            return .good("claim_keeper", "The first node that starts decides where the claims are kept.")
        }
        let sentence = "The claims are kept in \(place), and this configuration names \(claims)."
        return renewed > 10
            ? .warning(
                "claim_keeper", sentence,
                do: "Nothing if no node runs: one that starts with this configuration takes over within 15 s.")
            : .failure(
                "claim_keeper", sentence,
                do:
                    "Configure the same stores.redis on every node, or run `synheart-auth keeper set` with this configuration."
            )
    }

    private func connectionLimit(_ facts: Facts) -> StoreCheckResult {
        // One more connection listens for the changes of other nodes.
        let needed = Int64(connections) + 1
        return facts.free >= needed
            ? .good("postgresql_connections", "The server has room for the \(needed) connections of this node.")
            : .warning(
                "postgresql_connections",
                "The server has room for \(max(0, facts.free)) more connections, and this node opens up to \(needed).",
                do: "Raise max_connections, or stop programs that hold connections. Ignore this while the service runs."
            )
    }
}
