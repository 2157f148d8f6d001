internal import AuthContract
internal import AuthService

/// Counts of verdicts of all nodes, one row for each slot and verdict.
struct PostgreSQLHistoryStore: VerdictHistoryStore {
    let database: StoreDatabase

    private typealias Member = CountedVerdict.Member

    func add(_ batch: VerdictBatch) async throws(StoreError) {
        let id = Statement(
            "INSERT INTO verdict_batches (minute, id) VALUES ($1, $2) ON CONFLICT DO NOTHING",
            [.time(batch.minute), .text(batch.id)])
        // The statement sorts the rows, so that two nodes that add to the same rows do not deadlock.
        let (columns, numbers) = (Member.columns, (0..<Member.allCases.count).map { "$\($0 + 4)" })
        let (verdicts, counts) = (Array(batch.counts.keys), Array(batch.counts.values))
        let rows = Statement(
            """
            INSERT INTO verdict_counts AS known (step, at, \(columns), verdicts)
            SELECT step, $1 - $1 % step, \(columns), verdicts
            FROM unnest($2) AS kept (step),
              unnest($3, \(numbers.joined(separator: ", "))) AS added (verdicts, \(columns)) ORDER BY step, \(columns)
            ON CONFLICT (step, at, \(columns)) DO UPDATE SET verdicts = known.verdicts + excluded.verdicts
            """,
            [.time(batch.minute), .integers(VerdictHistory.steps), .integers(counts)]
                + Member.allCases.map { member in .texts(verdicts.map { $0.text(member) }) })
        try await database.write(isLasting: false) { (connection) throws(StoreError) in
            guard try connection.results([id])[0].changes == 1 else { return }
            _ = try connection.results([rows])
        }
    }

    func sums(_ query: VerdictQuery) async throws(StoreError) -> [VerdictSum] {
        var parameters: [Parameter] = [
            .integer(query.step), .time(query.since), .time(query.until), .integer(Int64(max(query.limit, 0))),
            .bool(query.apps == nil), .texts((query.apps ?? []).map(\.text)), .integer(query.keptStep),
        ]
        // One statement for all queries, because each statement stays prepared on its connection.
        var (groups, conditions) = ([String](), [String]())
        for member in Member.allCases {
            parameters += [.bool(query.groups.contains(member)), .text(query.only[member])]
            let (column, last) = (member.rawValue, parameters.count)
            groups.append("CASE WHEN $\(last - 1) THEN \(column) ELSE '' END AS \(column)")
            conditions.append("AND ($\(last) IS NULL OR \(column) = $\(last))")
        }
        let statement = Statement(
            """
            SELECT at - at % $1 AS slot, \(groups.joined(separator: ", ")), sum(verdicts)::bigint AS verdicts
            FROM verdict_counts
            WHERE step = $7 AND at >= $2 AND at < $3
              AND ($5 OR app_id = ANY ($6)) \(conditions.joined(separator: " "))
            GROUP BY 1, 2, 3, 4, 5, 6, 7 ORDER BY 1 LIMIT $4
            """, parameters)
        return try await database.read { (connection) throws(StoreError) in
            try connection.results([statement])[0].rows.map { (row) throws(StoreError) in
                try VerdictSum(row: row, groups: query.groups)
            }
        }
    }

    func expire(minutesBefore: UnixTime, hoursBefore: UnixTime) async throws(StoreError) -> Bool {
        let batches = Statement("DELETE FROM verdict_batches WHERE minute < $1", [.time(minutesBefore)])
        let slots = VerdictHistory.steps.map { step in
            Statement(
                """
                DELETE FROM verdict_counts WHERE step = $1 AND at = (
                  SELECT min(at) FROM verdict_counts WHERE step = $1 AND at <= $2)
                """,
                [.integer(step), .time((step < VerdictHistory.hour ? minutesBefore : hoursBefore) - step)])
        }
        return try await database.write(isLasting: false) { (connection) throws(StoreError) in
            try connection.results([batches] + slots).dropFirst().contains { $0.changes > 0 }
        }
    }
}
