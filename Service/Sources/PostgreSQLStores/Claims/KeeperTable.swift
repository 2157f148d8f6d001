public import AuthContract
public import AuthService
internal import Bytes
internal import StrictJSON

/// The store that PostgreSQL names as the keeper of the claims' history.
public struct NamedKeeper: Sendable, Hashable {
    /// The id of the claims' history.
    public let id: String
    /// The store; nil: none was named yet.
    public let place: ClaimPlace?
    /// When a node last renewed the keeper's lease, by PostgreSQL's clock; nil: never.
    public let renewedAt: UnixTime?
}

extension PostgreSQLStores {
    /// The store that keeps the claims' history.
    public func namedKeeper() async throws(StoreError) -> NamedKeeper {
        try await KeeperTable(database: database).read().keeper
    }

    /// Makes a store the keeper of the claims' history under a new id. Nodes that are configured for another store then
    /// cannot claim.
    ///
    /// If the store is already the keeper, the operator may have gone back to an old primary, which lacks the second
    /// claims (`SecondClaim`) that a promoted replica got. So for `SecondClaim.settling` seconds, `unclaimedEnd(of:)`
    /// returns nil, and ids that are named in that time have no `ClaimHistoryID.unclaimedEnd`.
    ///
    /// - Returns: the previous keeper.
    public func setKeeper(_ place: ClaimPlace, actor: String) async throws(StoreError) -> NamedKeeper {
        let table = KeeperTable(database: database)
        for _ in 0..<5 {
            let before = try await table.read().keeper
            let new = try await table.name(
                place, ifStill: before.id, settling: before.place == place, actor: actor, at: clock.now)
            if new != nil { return before }
        }
        throw StoreError(.unavailable, "other processes change the keeper at the same time: try again")
    }
}

/// The keeper's row, as a node read it.
struct KeeperReading: Sendable {
    let keeper: NamedKeeper
    /// The primary that answered; nil: it does not report its timeline.
    let primary: PrimaryPlace?
    /// The primary's clock.
    let time: UnixTime
    /// The latest reading of the primary's clock in the row. While a Redis is the keeper, the claims of requests dated more than
    /// 5 s after it are also made in PostgreSQL (`SecondClaim`).
    let mark: UnixTime
    /// Whether PostgreSQL's data went back to an earlier state since this node's last reading (`KeeperReadings`).
    let wentBack: Bool
}

/// The row that names the keeper: the store that keeps the claims' history.
struct KeeperTable: Sendable {
    let database: StoreDatabase
    var clockTolerance = PostgreSQLStores.maximumClockDifference

    /// Reads the row without renewing a lease.
    func read() async throws(StoreError) -> KeeperReading { try await read(renewing: nil, at: UnixTime(0)) }

    /// Reads the keeper's row, renews the lease, and records the reading.
    ///
    /// - Parameters:
    ///   - place: this node's store. If this store is the keeper, its lease is renewed; nil: no lease is renewed and no
    ///     reading is recorded.
    ///   - now: this node's clock.
    func read(renewing place: ClaimPlace?, at now: UnixTime) async throws(StoreError) -> KeeperReading {
        let (tolerance, readings) = (clockTolerance, database.readings)
        return try await database.read { (connection) throws(StoreError) in
            let (number, least) = (readings.begin(), readings.least(on: connection.place))
            let row = try connection.row(
                """
                SELECT named, kept_in, renewed, present, marked, is_back
                FROM read_keeper_for_node($1, $2, $3, $4::uuid, $5, $6)
                """,
                [
                    .text(place?.description), .time(now), .integer(tolerance), .text(readings.node.text),
                    .integer(number),
                    .integer(least),
                ])
            guard let row else { throw StoreError(.unreadable, "PostgreSQL names no keeper of the claims") }
            let keeper = NamedKeeper(
                id: try row.text("named"), place: try row.optionalText("kept_in").map { ClaimPlace($0) },
                renewedAt: try row.optionalInteger("renewed").map { UnixTime($0) })
            let wentBack = try row.bool("is_back")
            if place != nil, !wentBack { readings.acknowledge(number, by: connection.place) }
            return KeeperReading(
                keeper: keeper, primary: connection.place, time: UnixTime(try row.integer("present")),
                mark: UnixTime(try row.integer("marked")), wentBack: wentBack)
        }
    }

    /// The latest date of the requests that were accepted before now, under this id of the claims' history or an earlier
    /// one, and have no claim in this database. Nil if the date is not known, or if this id is not the current one.
    func unclaimedEnd(of id: String) async throws(StoreError) -> Int64? {
        try await database.read { [readings = database.readings] (connection) throws(StoreError) in
            let row = try connection.row("SELECT unclaimed_end_of_part($1) AS latest", [.text(id)])
            return try readings.areAhead(of: connection) ? nil : row?.optionalInteger("latest")
        }
    }

    /// Records that this database may lack second claims (`SecondClaim`), so that `unclaimedEnd(of:)` returns nil for a
    /// while.
    ///
    /// - Parameter now: this node's clock.
    /// - Throws: if this node's clock and the server's are too far apart. Then nothing is recorded.
    func settle(at now: UnixTime) async throws(StoreError) {
        let tolerance = clockTolerance
        try await database.read { (connection) throws(StoreError) in
            let row = try connection.row(
                "SELECT settle_claim_keeper($1, $2) AS ahead", [.time(now), .integer(tolerance)])
            guard let row else { throw StoreError(.unreadable, "PostgreSQL did not record that it settles") }
            if let ahead = try row.optionalInteger("ahead") { throw PostgreSQLStores.clocksApart(ahead) }
        }
    }

    /// Makes a store the keeper under a new id. Returns nil if another process named a store since `id` was read.
    ///
    /// - Parameters:
    ///   - place: the store.
    ///   - id: the id in the row.
    ///   - settling: whether second claims may be missing. For a while, neither this id nor a later one then has an
    ///     unclaimed end, the latest date of a request without a second claim. The call also assumes this if PostgreSQL's
    ///     data went back to an earlier state. In both cases, it records a reading of this node, so that the node can
    ///     make claims again.
    ///   - actor: who names the store, for the audit event.
    ///   - now: this process' clock.
    func name(
        _ place: ClaimPlace, ifStill id: String, settling: Bool = false, actor: String, at now: UnixTime
    ) async throws(StoreError) -> ClaimHistoryID? {
        let (new, readings) = (Hexadecimal.encode(SystemRandom().bytes(16)), database.readings)
        return try await database.write { (connection) throws(StoreError) in
            let row = try connection.row("SELECT before, marked, unclaimed_end FROM lock_claim_keeper($1)", [.text(id)])
            guard let row, let mark = try row.optionalInteger("marked") else { return nil }
            let before = try row.optionalText("before")
            let wentBack = try readings.areAhead(of: connection)
            let settling = settling || wentBack
            let unclaimedEnd = settling ? nil : try row.optionalInteger("unclaimed_end")
            if place == .postgresql {
                // This must run before the row changes, because it reads the previous keeper from the row.
                _ = try connection.rows("SELECT keep_claims_here($1, $2)", [.text(new), .integer(unclaimedEnd)])
            }
            if wentBack {
                // Because of the empty identity, the next call that makes claims here records a loss: claims may be missing. While a
                // Redis is the keeper, the new id alone would not cause that.
                _ = try connection.rows("UPDATE claim_history SET identity = ''")
            }
            // Set `ruled_id` too. Otherwise a trigger takes this for a change by a node of a version that makes no second claims.
            _ = try connection.change(
                """
                UPDATE claim_keeper SET id = $1, ruled_id = $1, place = $2, renewed_at = \(Schema.serverClock),
                  mark = greatest(mark, $3),
                  settles_at = CASE WHEN $4 THEN greatest(settles_at, \(Schema.settlement)) ELSE settles_at END
                """,
                [.text(new), .text(place.description), .integer(mark), .bool(settling)],
                recording: AuditEvent(
                    .claimKeeperChanged, at: now, actor: actor,
                    detail: JSONObject([
                        ("before", before.map { .string($0) } ?? .null), ("after", .string(place.description)),
                    ])), telling: false)
            if settling, readings.least(on: connection.place) > 0 {
                _ = try connection.rows(
                    "SELECT note_claim_node($1::uuid, $2)", [.text(readings.node.text), .integer(readings.begin())])
            }
            return ClaimHistoryID(
                new, primary: connection.place, reading: UnixTime(mark), unclaimedEnd: unclaimedEnd)
        }
    }
}
