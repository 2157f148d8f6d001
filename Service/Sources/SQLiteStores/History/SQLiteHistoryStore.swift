internal import AuthContract
internal import AuthService
internal import GRDB
internal import StrictJSON

/// Counts of verdicts, one row for each slot and verdict.
struct SQLiteHistoryStore: VerdictHistoryStore {
    let database: StoreDatabase

    private typealias Member = CountedVerdict.Member

    func add(_ batch: VerdictBatch) async throws(StoreError) {
        try await database.write { database in
            try database.cachedStatement(sql: "INSERT OR IGNORE INTO verdict_batches (minute, id) VALUES (?, ?)")
                .execute(arguments: [batch.minute.seconds, batch.id])
            guard database.changesCount == 1 else { return }
            let statement = try database.cachedStatement(
                sql: """
                    INSERT INTO verdict_counts (step, at, \(Member.columns), verdicts)
                    VALUES (?, ?, \(databaseQuestionMarks(count: Member.allCases.count)), ?)
                    ON CONFLICT DO UPDATE SET verdicts = verdicts + excluded.verdicts
                    """)
            for step in VerdictHistory.steps {
                let slot = batch.minute.floored(to: step).seconds
                for (verdict, count) in batch.counts {
                    let texts = StatementArguments(Member.allCases.map { verdict.text($0) })
                    try statement.execute(arguments: [step, slot] + texts + [count])
                }
            }
        }
    }

    func sums(_ query: VerdictQuery) async throws(StoreError) -> [VerdictSum] {
        let apps = query.apps.map { JSONValue.array($0.map { .string($0.text) }).text() }
        // SQLite sorts the rows to group them, which is faster with fewer columns.
        let groups = ["at - at % ?1 AS slot"] + Member.allCases.filter(query.groups.contains).map(\.rawValue)
        let texts = Member.allCases.filter { query.only[$0] != nil }
        let sql = """
            SELECT \(groups.joined(separator: ", ")), sum(verdicts) AS verdicts FROM verdict_counts
            WHERE step = ?6 AND at >= ?2 AND at < ?3
              AND (?4 IS NULL OR app_id IN (SELECT value FROM json_each(?4)))
              \(texts.enumerated().map { "AND \($1.rawValue) = ?\($0 + 7)" }.joined(separator: " "))
            GROUP BY \(groups.indices.map { "\($0 + 1)" }.joined(separator: ", ")) ORDER BY 1 LIMIT ?5
            """
        let arguments: StatementArguments =
            [query.step, query.since.seconds, query.until.seconds, apps, max(query.limit, 0), query.keptStep]
            + StatementArguments(texts.compactMap { query.only[$0] })
        return try await database.readUntilDeadline { database in
            try Row.fetchAll(database, sql: sql, arguments: arguments).map {
                try VerdictSum(row: StoredRow($0), groups: query.groups)
            }
        }
    }

    func expire(minutesBefore: UnixTime, hoursBefore: UnixTime) async throws(StoreError) -> Bool {
        let due: @Sendable (Database) throws -> [(step: Int64, slot: Int64)] = { database in
            try VerdictHistory.steps.compactMap { step in
                let end = step < VerdictHistory.hour ? minutesBefore : hoursBefore
                return try Int64.fetchOne(
                    database.cachedStatement(sql: "SELECT min(at) FROM verdict_counts WHERE step = ? AND at <= ?"),
                    arguments: [step, end.seconds - step]
                ).map { (step, $0) }
            }
        }
        // Read first: usually no slot is old enough, and a read takes no write lock.
        guard try await !database.read(due).isEmpty else { return false }
        return try await database.write { database in
            try database.execute(
                sql: "DELETE FROM verdict_batches WHERE minute < ?", arguments: [minutesBefore.seconds])
            for (step, slot) in try due(database) {
                try database.execute(
                    sql: "DELETE FROM verdict_counts WHERE step = ? AND at = ?", arguments: [step, slot])
            }
            return true
        }
    }
}
