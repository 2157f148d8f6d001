internal import AuthService
internal import Bytes

/// The use of Redis by this node.
public struct RedisUse: Sendable, Hashable {
    /// Open connections to the servers in use.
    public var connections = 0
    /// Commands that wait for a reply.
    public var commandsInFlight = 0
    /// Calls that were refused since the start, because too many were in flight.
    public var refused: UInt64 = 0
    /// Connections that were closed since the start, because a reply was overdue.
    public var timeouts: UInt64 = 0
    /// Servers that were replaced since the start, by another one or by a restart.
    public var failovers: UInt64 = 0
    /// All keys in the servers' databases: claims, challenges and rates, and the keys of other deployments that share the
    /// databases.
    public var keys: Int64 = 0
    /// The servers' memory in use, in bytes.
    public var memoryBytes: Int64 = 0
}

extension RedisStores {
    /// The current use of Redis. The keys and the memory are those that the last check of each server found. Reading the use
    /// sends nothing.
    public var use: RedisUse {
        let (failovers, sizes, sessions) = router.table.withLock { table in
            (table.failovers, Array(table.sizes.values), Array(table.sessions.values))
        }
        let counts = router.settings.connection.counts
        var use = RedisUse(refused: counts.refused, timeouts: counts.timeouts, failovers: failovers)
        for session in sessions {
            let (connections, commands) = session.load
            use.connections += connections
            use.commandsInFlight += commands
        }
        for size in sizes {
            use.keys = use.keys.adding(size.keys)
            use.memoryBytes = use.memoryBytes.adding(size.memoryBytes)
        }
        return use
    }
}

extension ServerInfo {
    /// The number of keys and the memory of one server.
    struct Size: Sendable, Hashable {
        let keys: Int64
        let memoryBytes: Int64
    }

    /// The number of keys in a database, and the server's memory. `INFO` leaves out a database without keys.
    ///
    /// - Parameter database: the number of the database.
    func size(ofDatabase database: Int) -> Size {
        let keys = info["db\(database)"]?.split(separator: ",").first { $0.hasPrefix("keys=") }
        return Size(
            keys: keys.flatMap { Int64($0.dropFirst("keys=".count)) } ?? 0,
            memoryBytes: info["used_memory"].flatMap { Int64($0) } ?? 0)
    }
}
