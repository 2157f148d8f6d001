internal import AuthService

/// A running transaction. `BEGIN` is sent with its first statement, and deferred statements are sent with `COMMIT`. So locks
/// are held as briefly as possible.
struct OpenTransaction {
    var isBegun = false
    /// Deferred statements, which run right before the commit.
    var last: [Statement] = []
    /// Whether the server may have committed.
    var isCommitSent = false
    /// Whether the transaction appends audit events, and whether it notifies the other nodes.
    var hasEvents = false
    var isTelling = false
}

extension Connection {
    private static var maximumAttempts: Int { 5 }
    private static var begin: Statement { Statement("BEGIN") }
    private static var commit: Statement { Statement("COMMIT") }

    /// Runs a statement in the current transaction, or on its own if there is none. Returns its rows.
    func rows(_ sql: String, _ parameters: [Parameter] = []) throws(StoreError) -> StatementResult {
        guard let result = try results([Statement(sql, parameters)]).last else {
            throw StoreError(.unavailable, "PostgreSQL: no result")
        }
        return result
    }

    /// Runs statements in one round trip. Returns the result of each.
    func results(_ statements: [Statement]) throws(StoreError) -> [StatementResult] {
        guard transaction?.isBegun == false else { return try run(statements) }
        transaction?.isBegun = true
        return Array(try run([Self.begin] + statements).dropFirst())
    }

    /// Runs a statement as its own transaction, without `BEGIN` and `COMMIT`. If the current transaction has begun,
    /// the statement runs in it.
    func runAutocommit(_ statement: Statement) throws(StoreError) -> StatementResult {
        guard transaction?.isBegun == false else { return try rows(statement.sql, statement.parameters) }
        transaction?.isCommitSent = true
        guard let result = try run([statement]).last else { throw StoreError(.unavailable, "PostgreSQL: no result") }
        return result
    }

    /// Runs statements as a complete transaction with `BEGIN` and `COMMIT`, in one round trip.
    func runTransaction(_ statements: [Statement]) throws(StoreError) -> [StatementResult] {
        transaction?.isCommitSent = true
        let results = try run([Self.begin] + statements + [Self.commit])
        guard results.last?.command == "COMMIT" else { throw Self.rolledBack }
        return Array(results.dropFirst().dropLast())
    }

    private static var rolledBack: StoreError { StoreError(.unavailable, "PostgreSQL rolled the transaction back") }

    /// Adds a statement that runs right before the commit.
    func beforeCommit(_ statement: Statement) { transaction?.last.append(statement) }

    /// Runs a body and commits its changes. Retries within the deadline if the transaction conflicts with another one, or if a
    /// prepared statement is stale.
    ///
    /// An attempt whose connection was lost is retried too, unless the commit may have reached the server. In that case the
    /// outcome is unknown, and this throws.
    func inTransaction<Value>(
        _ body: (isolated Connection) throws(StoreError) -> Value
    ) throws(StoreError) -> Value {
        var attempts = 0
        isOutcomeUnknown = false
        while true {
            attempts += 1
            transaction = OpenTransaction()
            defer { transaction = nil }
            do throws(StoreError) {
                let value = try body(self)
                try commit()
                return value
            } catch {
                let (failure, isCommitSent) = (failure, transaction?.isCommitSent ?? false)
                rollBack()
                self.failure = failure
                isOutcomeUnknown = isCommitSent
                guard let failure, failure.isRetryable || (failure.isLost && !isCommitSent),
                    attempts < Self.maximumAttempts, isWanted
                else { throw error }
                if failure.endsConnection { close() }
                try open()
            }
        }
    }

    private func commit() throws(StoreError) {
        guard let state = transaction, state.isBegun || !state.last.isEmpty else { return }
        transaction?.isCommitSent = true
        // A single statement is a transaction by itself.
        if !state.isBegun, state.last.count == 1 {
            _ = try run(state.last)
            return
        }
        let results = try run((state.isBegun ? [] : [Self.begin]) + state.last + [Self.commit])
        // The server answers the commit of a failed transaction with a rollback and without an error.
        guard results.last?.command == "COMMIT" else { throw Self.rolledBack }
    }

    /// Rolls back with its own deadline, because the request may have ended. If that fails, closes the connection.
    private func rollBack() {
        guard isInTransaction else { return }
        withOwnTime(.milliseconds(500)) { connection in
            do throws(StoreError) { _ = try connection.run([Statement("ROLLBACK")]) } catch { connection.close() }
        }
    }
}
