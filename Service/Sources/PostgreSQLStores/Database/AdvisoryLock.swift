/// Locks that all nodes share. Each except `service` ends with its transaction.
enum AdvisoryLock: Int {
    case migration = 1
    /// The end of the audit log's chain.
    case auditChain = 2
    /// The pending devices of an app.
    case pendingDevices = 3
    /// The recordings of an app's refusals, in the table `evidence`.
    case evidence = 4
    case signingKeys = 5
    /// The history of the replay claims.
    case history = 6
    /// The set of challenges.
    case challenges = 7
    /// Held by every node in shared mode, on the connection that listens for changes.
    case service = 8
    /// The check values of the service key. Transactions that rely on the values hold it in shared mode.
    case serviceKey = 9
    /// The number of webhooks.
    case webhooks = 10

    /// The key space of these locks, "SyAu" in ASCII, which separates them from those of other programs.
    private static let space = 0x5379_4175

    /// The two keys of the lock.
    var keys: String { "\(Self.space), \(rawValue)" }

    /// The call that takes the lock.
    var sql: String { "pg_advisory_xact_lock(\(keys))" }

    /// The call that takes the lock in shared mode.
    var sharedSQL: String { "pg_advisory_xact_lock_shared(\(keys))" }

    /// A statement that takes the lock for one app.
    func statement(of app: String) -> Statement {
        // The app's hash is the second key, so the number of the lock is added to the first one. If two apps have the same
        // hash, the only effect is that one waits for the other.
        Statement("SELECT pg_advisory_xact_lock(\(Self.space) + \(rawValue), hashtext($1))", [.text(app)])
    }
}
