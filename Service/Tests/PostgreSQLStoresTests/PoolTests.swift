import AuthContract
import AuthService
import Bytes
import Dispatch
import ServiceTestHelpers
import Testing

@testable import PostgreSQLStores

extension AgainstPostgreSQL {
    @Suite
    struct PoolTests {
        private func pool(
            _ url: String, size: Int = 2, deadline: Duration = .seconds(10), maximumWaiting: Int = 100
        ) throws -> ConnectionPool {
            ConnectionPool(
                address: try ServerAddress(url), settings: [], size: size, deadline: deadline,
                maximumWaiting: maximumWaiting)
        }

        private func sleep(_ seconds: Double) -> @Sendable (isolated Connection) throws(StoreError) -> Void {
            { (connection) throws(StoreError) in _ = try connection.rows("SELECT pg_sleep(\(seconds))") }
        }

        @Test func `the server never sees more connections than the pool has`() async throws {
            let server = try await PostgreSQLServer.shared()
            let pool = try pool(try server.database(), size: 3)
            let most = try await withThrowingTaskGroup(of: Int64.self) { group in
                for _ in 0..<60 {
                    group.addTask {
                        try await pool.run { (connection) throws(StoreError) in
                            try connection.row(
                                "SELECT count(*) AS open FROM pg_stat_activity WHERE datname = current_database()")?
                                .integer("open") ?? 0
                        }
                    }
                }
                return try await group.reduce(0, max)
            }
            #expect(most <= 3)
            // A call gets its answer shortly before its connection is idle again. `close` waits until it is idle.
            await pool.close()
            #expect(pool.use.busy == 0)
            #expect(pool.use.waiting == 0)
        }

        @Test func `calls that wait for a connection end at their deadline, and leave no trace`() async throws {
            let pool = try pool(try await PostgreSQLServer.shared().database(), size: 1, deadline: .milliseconds(400))
            await withDiscardingTaskGroup { group in
                for _ in 0..<20 {
                    group.addTask {
                        await #expect { try await pool.run(self.sleep(60)) } throws: {
                            ($0 as? StoreError)?.code == .tooSlow
                        }
                    }
                }
            }
            try await answers(pool)
            #expect(pool.timeouts == 20)
            await pool.close()
        }

        @Test func `calls beyond the bound are refused at once`() async throws {
            let pool = try pool(try await PostgreSQLServer.shared().database(), size: 1, maximumWaiting: 2)
            let refused = await withTaskGroup(of: Bool.self) { group in
                for _ in 0..<10 {
                    group.addTask {
                        do throws(StoreError) { try await pool.run(self.sleep(0.3)); return false } catch {
                            return error.code == .tooSlow
                        }
                    }
                }
                return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
            }
            #expect(refused == 7)
            #expect(pool.use.refused == 7)
            await pool.close()
        }

        @Test func `a cancelled call ends at once, and so does its statement`() async throws {
            let server = try await PostgreSQLServer.shared()
            let url = try server.database()
            let pool = try pool(url, size: 1, deadline: .seconds(60))
            let began = OnceValue<Void>()
            let running = Task {
                try await pool.run { (connection) throws(StoreError) in
                    _ = try connection.rows("SELECT 1")
                    began.give(())
                    _ = try connection.rows("SELECT pg_sleep(60)")
                }
            }
            await began.value
            // Starts the second call only now. Earlier, it might have got the only connection.
            let waiting = Task { try await pool.run(sleep(60)) }
            running.cancel()
            waiting.cancel()
            for task in [running, waiting] {
                await #expect(throws: StoreError.self) { try await task.value }
            }
            // The only connection works again long before the statement would have ended.
            try await answers(pool)
            await pool.close()
        }

        @Test func `no key for cancelling goes to a server elsewhere`() async throws {
            let server = try await PostgreSQLServer.shared()
            let url = try server.database("?sslmode=disable")
            // The pool treats a libpq `service` as another machine. libpq gets no `service`, so it connects to the URL's server.
            let pool = ConnectionPool(
                address: try ServerAddress(url, defaults: ["service": "elsewhere"]), settings: [], size: 1,
                deadline: .milliseconds(500), maximumWaiting: 10)
            await #expect { try await pool.run(sleep(60)) } throws: { ($0 as? StoreError)?.code == .tooSlow }
            try await answers(pool)
            let ended = try server.sql(
                """
                SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
                WHERE datname = current_database() AND state = 'active' AND query LIKE 'SELECT pg_sleep%'
                """, in: url)
            #expect(ended == "1")
            await pool.close()
        }

        @Test func `a cancellation never hits the next call`() async throws {
            let pool = try pool(try await PostgreSQLServer.shared().database(), size: 1, deadline: .seconds(30))
            for round in 0..<50 {
                let task = Task { try await pool.run(sleep(Double(round % 5) * 0.002)) }
                await Task.yield()
                task.cancel()
                _ = try? await task.value
                try await answers(pool)
            }
            await pool.close()
        }

        @Test func `a failed statement leaves its connection open, and its transaction rolled back`() async throws {
            let pool = try pool(try await PostgreSQLServer.shared().database(), size: 1)
            try await pool.run { (connection) throws(StoreError) in _ = try connection.rows("CREATE TABLE t (id int)") }
            let before = pool.processes
            await #expect(throws: StoreError.self) {
                try await pool.run { (connection) throws(StoreError) in
                    try connection.inTransaction { (connection) throws(StoreError) in
                        _ = try connection.rows("INSERT INTO t VALUES (1)")
                        _ = try connection.rows("SELECT 1 / 0")
                    }
                }
            }
            try await pool.run { (connection) throws(StoreError) in
                #expect(try connection.rows("SELECT 1 FROM t").count == 0)
            }
            #expect(pool.processes == before)
            await pool.close()
        }

        @Test func `a deadlock is retried`() async throws {
            let pool = try pool(try await PostgreSQLServer.shared().database(), size: 2)
            try await pool.run { (connection) throws(StoreError) in
                _ = try connection.rows("CREATE TABLE t (id int PRIMARY KEY, n int)")
                _ = try connection.rows("INSERT INTO t VALUES (1, 0), (2, 0)")
            }
            try await withThrowingDiscardingTaskGroup { group in
                for order in [[1, 2], [2, 1]] {
                    group.addTask {
                        try await pool.run { (connection) throws(StoreError) in
                            try connection.inTransaction { (connection) throws(StoreError) in
                                for id in order {
                                    _ = try connection.rows("UPDATE t SET n = n + 1 WHERE id = \(id)")
                                    _ = try connection.rows("SELECT pg_sleep(0.2)")
                                }
                            }
                        }
                    }
                }
            }
            try await pool.run { (connection) throws(StoreError) in
                #expect(try connection.row("SELECT sum(n) AS n FROM t")?.integer("n") == 4)
            }
            await pool.close()
        }

        @Test func `a closed pool refuses calls`() async throws {
            let pool = try pool(try await PostgreSQLServer.shared().database())
            try await answers(pool)
            await pool.close()
            await #expect(throws: StoreError.self) { try await pool.run(sleep(0)) }
        }

        // MARK: Look-ups

        @Test func `look-ups that wait share a round trip, 64 at most`() async throws {
            let pool = try pool(try await PostgreSQLServer.shared().database(), size: 1)
            let times = try await together(
                pool,
                Array(
                    repeating: Statement("SELECT extract(epoch FROM transaction_timestamp())::text AS value"), count: 70
                ))
            // Look-ups of one round trip share a transaction, and so the transaction's time.
            #expect(Set(times.map { try? $0.get() }).count == 2)
            #expect(try Dictionary(grouping: times) { try $0.get() }.values.map(\.count).sorted() == [6, 64])
            await pool.close()
        }

        @Test func `a failed look-up does not fail the others of its batch`() async throws {
            let pool = try pool(try await PostgreSQLServer.shared().database(), size: 1)
            let good = Statement("SELECT $1::text AS value", [.text("found")])
            let answers = try await together(
                pool, [good, good, Statement("SELECT (1 / $1)::text AS value", [.integer(0)]), good])
            #expect(answers.map { try? $0.get() } == ["found", "found", nil, "found"])
            #expect(throws: StoreError.self) { try answers[2].get() }
            await pool.close()
        }

        @Test func `cancelling one look-up of a batch does not cancel the others`() async throws {
            let server = try await PostgreSQLServer.shared()
            let url = try server.database()
            let pool = try pool(url, size: 1)
            let hold = try await Hold(pool)
            let lock = "SELECT pg_advisory_xact_lock(1)::text AS value"
            let locking = try self.pool(url, size: 1)
            let locked = try await Hold(locking, "SELECT pg_advisory_lock(1)")
            let calls = [lock, "SELECT 'found' AS value"].map { sql in
                Task { try await pool.lookUp(Statement(sql)) { (row) throws(StoreError) in try row.text("value") } }
            }
            while pool.use.waiting < 2 { await Task.yield() }
            hold.end()
            // The first look-up waits for the lock in the server, and the second is queued behind it.
            while try server.sql("SELECT count(*) FROM pg_locks WHERE NOT granted", in: url) != "1" {
                await Task.yield()
            }
            calls[0].cancel()
            await #expect(throws: StoreError.self) { try await calls[0].value }
            locked.end()
            await locking.close()
            #expect(try await calls[1].value == "found")
            await pool.close()
        }

        @Test func `a look-up runs after earlier requests, and may find no row`() async throws {
            let pool = try pool(try await PostgreSQLServer.shared().database(), size: 1)
            let hold = try await Hold(pool)
            let first = Task {
                try await pool.run { (connection) throws(StoreError) in
                    _ = try connection.rows("CREATE TABLE t (id int)")
                }
            }
            while pool.use.waiting < 1 { await Task.yield() }
            let second = Task { try await pool.lookUp(Statement("SELECT id FROM t")) { _ in true } }
            while pool.use.waiting < 2 { await Task.yield() }
            hold.end()
            try await first.value
            #expect(try await second.value == nil)
            await pool.close()
        }

        @Test(.timeLimit(.minutes(1)))
        func `a call that was cancelled before it connects does not use up the next attempt to connect`() async throws {
            // No process listens on port 1.
            let address = try ServerAddress("postgresql://auth@127.0.0.1:1/auth")
            let pool = ConnectionPool(
                address: address, settings: [], size: 1, deadline: .seconds(3600), maximumWaiting: 10)
            while pool.use.failedConnects < 4 {
                for _ in 0..<20 {
                    await Task {
                        withUnsafeCurrentTask { $0?.cancel() }
                        try? await pool.run(sleep(0))
                    }.value
                }
                await #expect(throws: StoreError.self) { try await answers(pool) }
            }
            await pool.close()
        }

        /// The answers to concurrently waiting look-ups.
        private func together(
            _ pool: ConnectionPool, _ statements: [Statement]
        ) async throws -> [Result<String?, StoreError>] {
            let hold = try await Hold(pool)
            let calls = statements.map { statement in
                Task { () -> Result<String?, StoreError> in
                    do throws(StoreError) {
                        return .success(
                            try await pool.lookUp(statement) { (row) throws(StoreError) in try row.text("value") })
                    } catch { return .failure(error) }
                }
            }
            while pool.use.waiting < statements.count { await Task.yield() }
            hold.end()
            var answers: [Result<String?, StoreError>] = []
            for call in calls { answers.append(await call.value) }
            return answers
        }

        private func answers(_ pool: ConnectionPool) async throws {
            let sum = try await pool.run { (connection) throws(StoreError) in
                try connection.row("SELECT 1::bigint + $1 AS sum", [.integer(41)])?.integer("sum")
            }
            #expect(sum == 42)
        }
    }
}

/// Keeps the only connection of a pool busy until `end`.
private struct Hold {
    private let isOver = DispatchSemaphore(value: 0)

    init(_ pool: ConnectionPool, _ sql: String = "SELECT 1") async throws {
        let began = OnceValue<Void>()
        Task { [isOver] in
            try await pool.run { (connection) throws(StoreError) in
                _ = try connection.rows(sql)
                began.give(())
                isOver.wait()
            }
        }
        await began.value
    }

    func end() { isOver.signal() }
}
