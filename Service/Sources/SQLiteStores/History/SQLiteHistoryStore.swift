internal import AuthContract
internal import AuthService
internal import GRDB
internal import StrictJSON

/// Counts of verdicts, one row for each minute or hour and verdict.
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
            for (verdict, count) in batch.counts {
                let texts = StatementArguments(Member.allCases.map { verdict.text($0) })
                try statement.execute(
                    arguments: [VerdictHistory.minute, batch.minute.seconds] + texts + [count])
            }
        }
    }

    func sums(_ query: VerdictQuery) async throws(StoreError) -> [VerdictSum] {
        let apps = query.apps.map { JSONValue.array($0.map { .string($0.text) }).text() }
        let groups = Member.allCases.map { query.groups.contains($0) ? "\($0.rawValue) AS \($0.rawValue)" : "''" }
        let texts = Member.allCases.filter { query.only[$0] != nil }
        let sql = """
            SELECT at - at % ?1 AS slot, \(groups.joined(separator: ", ")), sum(verdicts) AS verdicts FROM verdict_counts
            WHERE step IN (\(VerdictHistory.minute), \(VerdictHistory.hour)) AND at >= ?2 AND at < ?3
              AND (?4 IS NULL OR app_id IN (SELECT value FROM json_each(?4)))
              \(texts.enumerated().map { "AND \($1.rawValue) = ?\($0 + 6)" }.joined(separator: " "))
            GROUP BY 1, 2, 3, 4, 5, 6, 7 ORDER BY 1 LIMIT ?5
            """
        let arguments: StatementArguments =
            [query.step, query.since.seconds, query.until.seconds, apps, max(query.limit, 0)]
            + StatementArguments(texts.compactMap { query.only[$0] })
        return try await database.readUntilDeadline { database in
            try Row.fetchAll(database, sql: sql, arguments: arguments).map {
                try VerdictSum(row: StoredRow($0), groups: query.groups)
            }
        }
    }

    func condense(minutesBefore: UnixTime, hoursBefore: UnixTime) async throws(StoreError) -> Bool {
        // Usually nothing is old enough, and reading takes no lock.
        let isDue = try await database.read { database in
            try Self.oldest(VerdictHistory.minute, before: minutesBefore, database) != nil
                || Self.oldest(VerdictHistory.hour, before: hoursBefore, database) != nil
        }
        guard isDue else { return false }
        return try await database.write { database in
            try database.execute(
                sql: "DELETE FROM verdict_batches WHERE minute < ?", arguments: [minutesBefore.seconds])
            if let minute = try Self.oldest(VerdictHistory.minute, before: minutesBefore, database) {
                try database.execute(
                    sql: """
                        INSERT INTO verdict_counts (step, at, \(Member.columns), verdicts)
                        SELECT ?2, at - at % ?2, \(Member.columns), verdicts FROM verdict_counts WHERE step = ?1 AND at = ?3
                        ON CONFLICT DO UPDATE SET verdicts = verdicts + excluded.verdicts
                        """, arguments: [VerdictHistory.minute, VerdictHistory.hour, minute])
                try Self.remove(VerdictHistory.minute, at: minute, database)
            }
            if let hour = try Self.oldest(VerdictHistory.hour, before: hoursBefore, database) {
                try Self.remove(VerdictHistory.hour, at: hour, database)
            }
            return true
        }
    }

    private static func oldest(_ step: Int64, before end: UnixTime, _ database: Database) throws -> Int64? {
        try Int64.fetchOne(
            database.cachedStatement(sql: "SELECT min(at) FROM verdict_counts WHERE step = ? AND at < ?"),
            arguments: [step, end.seconds])
    }

    private static func remove(_ step: Int64, at time: Int64, _ database: Database) throws {
        try database.execute(
            sql: "DELETE FROM verdict_counts WHERE step = ? AND at = ?", arguments: [step, time])
    }
}
