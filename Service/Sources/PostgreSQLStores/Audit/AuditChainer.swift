internal import AuthService
internal import Bytes
internal import Logging

/// Appends committed events to the chain of the audit log.
///
/// A change inserts its event in its own transaction, so the event is as durable as the change. But it does not extend the
/// chain: the chain has one end, and a transaction that extends it makes all others wait until its commit is on disk. Right
/// after the commit, `AuditChainer` appends all waiting events to the chain. Each read of the log first calls `chainAll`.
final class AuditChainer: Sendable {
    private struct State: Sendable {
        var isWanted = false
        var isFinished = false
        var task: Task<Void, Never>?
    }

    /// The largest number of events in one transaction.
    private static let step: Int64 = 500

    private let pool: ConnectionPool
    private let logger: Logger
    private let state = Locked(State())

    init(pool: ConnectionPool, logger: Logger) {
        (self.pool, self.logger) = (pool, logger)
    }

    /// Appends waiting events in the background. Concurrent calls share the work.
    func wake() {
        state.withLock { state in
            state.isWanted = true
            guard state.task == nil, !state.isFinished else { return }
            state.task = Task { await run() }
        }
    }

    /// Appends every committed event to the chain.
    func chainAll() async throws(StoreError) {
        let isWaiting = try await pool.run { (connection) throws(StoreError) in
            try connection.exists("SELECT 1 FROM audit_waiting LIMIT 1", [])
        }
        guard isWaiting else { return }
        while try await chain() == Self.step {}
    }

    func finish() async {
        let task = state.withLock { state in
            state.isFinished = true
            return state.task
        }
        await task?.value
    }

    private func run() async {
        while consumePendingRun() {
            do throws(StoreError) {
                while try await chain() == Self.step {}
            } catch {
                // The next change or the next read of the log retries.
                logger.warning(
                    "Audit events wait for their place in the chain", metadata: ["reason": .string("\(error)")])
            }
        }
    }

    /// Consumes the flag that requests another run. Returns whether it was set. If it was not, the task ends.
    private func consumePendingRun() -> Bool {
        state.withLock { state in
            defer { state.isWanted = false }
            if !state.isWanted { state.task = nil }
            return state.isWanted
        }
    }

    private func chain() async throws(StoreError) -> Int64 {
        try await pool.run { (connection) throws(StoreError) in
            try connection.inTransaction { (connection) throws(StoreError) in
                try connection.row("SELECT chain_audit($1) AS chained", [.integer(Self.step)])?.integer("chained") ?? 0
            }
        }
    }
}
