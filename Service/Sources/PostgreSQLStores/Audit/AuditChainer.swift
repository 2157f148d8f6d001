internal import AuthService
internal import Bytes
internal import Logging

/// Puts committed events into the chain of the audit log.
///
/// A change inserts its event in its own transaction, so it is as durable as the change. The chain has one end, and a
/// transaction that extends it makes all others wait until it is on the disk. So a change does not extend it: right after the
/// change, this does, for all events that are waiting. Each read of the log does it first.
final class AuditChainer: Sendable {
    private struct State: Sendable {
        var isWanted = false
        var isFinished = false
        var task: Task<Void, Never>?
    }

    /// Events of one transaction.
    private static let step: Int64 = 500

    private let pool: ConnectionPool
    private let logger: Logger
    private let state = Locked(State())

    init(pool: ConnectionPool, logger: Logger) {
        (self.pool, self.logger) = (pool, logger)
    }

    /// Chains in the background. Calls at the same time share the work.
    func wake() {
        state.withLock { state in
            state.isWanted = true
            guard state.task == nil, !state.isFinished else { return }
            state.task = Task { await run() }
        }
    }

    /// Chains every event that is committed.
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
        while takeWish() {
            do throws(StoreError) {
                while try await chain() == Self.step {}
            } catch {
                // The next change or the next read of the log tries again.
                logger.warning(
                    "Audit events wait for their place in the chain", metadata: ["reason": .string("\(error)")])
            }
        }
    }

    /// Whether there is more to do. If not, the task ends.
    private func takeWish() -> Bool {
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
