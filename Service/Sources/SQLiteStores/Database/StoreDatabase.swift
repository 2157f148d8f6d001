internal import AuthService
internal import Bytes
internal import Foundation
internal import GRDB
internal import GRDBSQLite

/// The database file: one writing connection, several reading ones, and a deadline for every asynchronous read and write.
final class StoreDatabase: Sendable {
    private let pool: DatabasePool
    private let readers = OpenReaders()
    private let file: FileIdentity?
    private let deadline: Duration
    private let observer: (any StoreObserver)?
    /// If set, changes are refused unless this is the service key that seals new values.
    private let sealingKey = Locked<ServiceKeyCheck?>(nil)
    let externalChanges: ExternalChanges
    var path: String { pool.path }

    init(path: String, options: SQLiteStores.Options) throws(StoreOpenError) {
        pool = try DatabaseFile.open(path, busyTimeout: options.busyTimeout, readers: readers)
        file = FileIdentity(path)
        deadline = options.deadline
        observer = options.observer
        let version: Int64
        do { version = try pool.writeWithoutTransaction(Self.dataVersion) } catch {
            throw DatabaseFile.openError(error, path)
        }
        externalChanges = ExternalChanges(interval: options.pollInterval, version: version)
        externalChanges.observe(self)
    }

    /// Reads in one consistent snapshot.
    func read<Value: Sendable>(
        _ body: @escaping @Sendable (Database) throws -> Value
    ) async throws(StoreError) -> Value {
        try await answered(.read) { pool, answer in
            pool.asyncRead { database in
                guard !answer.isGiven else { return }
                answer.resume(with: Result { try body(database.get()) })
            }
        }
    }

    /// Reads many rows in one consistent snapshot. Statements are interrupted at the deadline, so none is running when this
    /// returns.
    func readUntilDeadline<Value: Sendable>(
        _ body: @escaping @Sendable (Database) throws -> Value
    ) async throws(StoreError) -> Value {
        try await observer.observing(.read) { [pool, deadline] () async throws(StoreError) in
            // GRDB interrupts the running statement of a cancelled task, and begins no further statement. But a statement that is
            // just about to run misses the interrupt. So the statement also checks for the cancellation while it runs.
            let reading = Task {
                try await pool.read { database in
                    sqlite3_progress_handler(database.sqliteConnection, 10_000, { _ in Task.isCancelled ? 1 : 0 }, nil)
                    defer { sqlite3_progress_handler(database.sqliteConnection, 0, nil, nil) }
                    return try body(database)
                }
            }
            let alarm = Task {
                try await Task.sleep(for: deadline)
                reading.cancel()
            }
            defer { alarm.cancel() }
            do { return try await reading.value } catch is CancellationError {
                throw StoreError(.tooSlow, "no answer within the deadline")
            } catch { throw StoreError(database: error) }
        }
    }

    /// Changes the database in one transaction, which is durable when this returns.
    func write<Value: Sendable>(
        _ body: @escaping @Sendable (Database) throws -> Value
    ) async throws(StoreError) -> Value {
        let sealingKey = sealingKey.withLock { $0 }
        return try await answered(.write) { [externalChanges, file] pool, answer in
            pool.asyncWrite { database in
                // After the deadline, the caller was told that the change failed, so the change must not begin now.
                guard !answer.isGiven else { throw StoreError(.tooSlow, "not begun within its deadline") }
                // A file that was moved or removed still takes changes, but a restarted service would not find them.
                guard file?.place(pool.path) == .here else {
                    throw StoreError(
                        .unavailable,
                        "\(pool.path) is not the file that was opened: stop the service, put that file back and "
                            + "start it, or restore a backup")
                }
                if let sealingKey { try SQLiteServiceKeyStore.check(sealingKey, seals: database) }
                return try body(database)
            } completion: { _, result in
                // After the deadline, the caller was told that this change failed, and may have re-read the rows before the
                // change happened. Announce the change.
                if !answer.resume(with: result), case .success = result { externalChanges.announce() }
            }
        }
    }

    /// Whether the file that was opened is still at its path.
    var place: FileIdentity.Place { file?.place(path) ?? .unknown }

    /// Refuses later changes unless `key` is the service key that seals new values. Each transaction checks the key.
    func allowWrites(whileSealing key: ServiceKeyCheck) { sealingKey.withLock { $0 = key } }

    /// A number that changes when another process commits. Commits of this process do not change it, because they all use the
    /// writing connection.
    func dataVersion() async throws(StoreError) -> Int64 {
        try await answered(nil) { pool, answer in
            pool.asyncWriteWithoutTransaction { database in
                guard !answer.isGiven else { return }
                answer.resume(with: Result { try Self.dataVersion(database) })
            }
        }
    }

    private static func dataVersion(_ database: Database) throws -> Int64 {
        try Int64.fetchOne(database, sql: "PRAGMA data_version") ?? 0
    }

    /// Writes in one transaction, without a deadline. It blocks its thread.
    func writeNow<Value>(_ body: (Database) throws -> Value) throws(StoreOpenError) -> Value {
        do { return try pool.write(body) } catch { throw DatabaseFile.openError(error, pool.path) }
    }

    /// Reads while neither another process nor another call can write. It blocks its thread.
    func excludingWriters(_ body: (Database) throws -> Void) throws {
        do {
            try pool.writeWithoutTransaction { database in
                try database.inTransaction(.immediate) {
                    try body(database)
                    return .rollback
                }
            }
        } catch let error as DatabaseError {
            throw StoreError(database: error)
        }
    }

    /// Reads in one snapshot for as long as the body takes, while others may write. It blocks its thread.
    func readNow<Value>(_ body: (Database) throws -> Value) throws -> Value {
        do { return try pool.read(body) } catch let error as DatabaseError { throw StoreError(database: error) }
    }

    /// - Parameter emptyingLog: whether all changes must be in the file itself, even if another process has it open.
    func close(emptyingLog: Bool = false) async {
        externalChanges.finish()
        // Closing waits for the connections to finish. Readers close first: if the last connection is a reader, changes stay in
        // the log, and a copy of the file alone lacks them.
        await offloading { [pool, readers] in
            pool.releaseMemory()
            readers.waitUntilClosed()
            if emptyingLog { _ = try? pool.writeWithoutTransaction { try $0.checkpoint(.truncate) } }
            try? pool.close()
        }
    }

    /// The result, or the error of the deadline if the deadline comes first.
    private typealias FirstAnswer<Value: Sendable> = OnceValue<Result<Value, StoreError>>

    /// Waits for the answer until the deadline. The observer sees only calls with an operation.
    private func answered<Value: Sendable>(
        _ operation: StoreOperation?, _ start: (DatabasePool, FirstAnswer<Value>) -> Void
    ) async throws(StoreError) -> Value {
        guard let operation else { return try await answered(start) }
        return try await observer.observing(operation) { () async throws(StoreError) in try await answered(start) }
    }

    private func answered<Value: Sendable>(
        _ start: (DatabasePool, FirstAnswer<Value>) -> Void
    ) async throws(StoreError) -> Value {
        let answer = FirstAnswer<Value>()
        answer.fail(after: deadline, "no answer within the deadline")
        start(pool, answer)
        return try await answer.value.get()
    }
}

extension OnceValue {
    /// Fails with an error after a time, unless another result was given before.
    func fail<Success>(after deadline: Duration, _ reason: String) where Value == Result<Success, StoreError> {
        let limit = DispatchTime.now() + .nanoseconds(Int(clamping: deadline.nanoseconds))
        DispatchQueue.global().asyncAfter(deadline: limit) { [weak self] in
            self?.give(.failure(StoreError(.tooSlow, reason)))
        }
    }

    /// Resumes with the database's result or error. Returns false if the deadline came first.
    @discardableResult
    fileprivate func resume<Success>(with result: Result<Success, any Error>) -> Bool
    where Value == Result<Success, StoreError> {
        give(result.mapError(StoreError.init(database:)))
    }
}
