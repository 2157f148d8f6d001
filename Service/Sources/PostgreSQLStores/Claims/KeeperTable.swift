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
    /// When a node last renewed the lease, by PostgreSQL's clock; nil: never.
    public let renewedAt: UnixTime?
}

extension PostgreSQLStores {
    /// The store that keeps the claims' history.
    public func namedKeeper() async throws(StoreError) -> NamedKeeper {
        try await KeeperTable(database: database).read(renewing: nil).keeper
    }

    /// Makes a store the keeper of the claims' history under a new id. Nodes that are configured for another store then cannot
    /// claim.
    ///
    /// - Returns: the previous keeper.
    public func setKeeper(_ place: ClaimPlace, actor: String) async throws(StoreError) -> NamedKeeper {
        let table = KeeperTable(database: database)
        for _ in 0..<5 {
            let before = try await table.read(renewing: nil).keeper
            if try await table.name(place, ifStill: before.id, actor: actor, at: clock.now) != nil { return before }
        }
        throw StoreError(.unavailable, "other processes change the keeper at the same time: try again")
    }
}

/// The row that names the keeper.
struct KeeperTable: Sendable {
    let database: StoreDatabase

    /// The keeper, the primary that answered, and its clock.
    ///
    /// - Parameter place: this node's store. Its lease is renewed if it is the keeper; nil: nothing is renewed.
    func read(
        renewing place: ClaimPlace?
    ) async throws(StoreError) -> (keeper: NamedKeeper, primary: PrimaryPlace?, time: UnixTime) {
        try await database.read { (connection) throws(StoreError) in
            let row = try connection.row(
                "SELECT named, kept_in, renewed, present FROM read_claim_keeper($1)",
                [.text(place?.description)])
            guard let row else { throw StoreError(.unreadable, "PostgreSQL names no keeper of the claims") }
            let keeper = NamedKeeper(
                id: try row.text("named"), place: try row.optionalText("kept_in").map { ClaimPlace($0) },
                renewedAt: try row.optionalInteger("renewed").map { UnixTime($0) })
            return (keeper, connection.place, UnixTime(try row.integer("present")))
        }
    }

    /// Names a store under a new id, and returns that. Returns nil if another process named a store since `id` was read.
    func name(
        _ place: ClaimPlace, ifStill id: String, actor: String, at now: UnixTime
    ) async throws(StoreError) -> (id: String, primary: PrimaryPlace?)? {
        let new = Hexadecimal.encode(SystemRandom().bytes(16))
        return try await database.write { (connection) throws(StoreError) in
            let row = try connection.row("SELECT place FROM claim_keeper WHERE id = $1 FOR UPDATE", [.text(id)])
            guard let row else { return nil }
            let before = try row.optionalText("place")
            _ = try connection.change(
                "UPDATE claim_keeper SET id = $1, place = $2, renewed_at = \(Schema.serverClock)",
                [.text(new), .text(place.description)],
                recording: AuditEvent(
                    .claimKeeperChanged, at: now, actor: actor,
                    detail: JSONObject([
                        ("before", before.map { .string($0) } ?? .null), ("after", .string(place.description)),
                    ])), telling: false)
            return (new, connection.place)
        }
    }
}
