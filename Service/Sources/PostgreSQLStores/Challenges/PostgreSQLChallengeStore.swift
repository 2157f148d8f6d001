internal import AuthContract
internal import AuthService
internal import Bytes

/// How long PostgreSQL keeps expired challenges, and which of its tables (`Schema.challenges`) stores a challenge.
enum ChallengeTable {
    static let keptAfterExpiry = Int(IssuedChallenge.keptAfterExpiry)

    /// The number of the table that stores a challenge with this expiry.
    static func slot(_ expiresAt: UnixTime) -> Int64 {
        let slot = (expiresAt.seconds / Int64(ClaimTable.stretch)) % Int64(ClaimTable.slots)
        return slot < 0 ? slot + Int64(ClaimTable.slots) : slot
    }
}

/// Challenges in unlogged tables. One statement takes a challenge: it deletes the row and returns it.
final class PostgreSQLChallengeStore: ChallengeStore {
    private let database: StoreDatabase
    private let clock: any ServiceClock
    private let maximum: Int64
    /// The number of challenges that this node inserts between two counts of all challenges.
    private let step: Int64
    private let putSinceCount = Locked<Int64>(0)

    init(database: StoreDatabase, clock: any ServiceClock, maximum: Int) {
        (self.database, self.clock) = (database, clock)
        self.maximum = Int64(max(1, maximum))
        step = max(1, self.maximum / 50)
    }

    func put(_ challenge: IssuedChallenge, source: String) async throws(StoreError) {
        let insertion = Statement(
            """
            INSERT INTO challenges (slot, challenge, app_id, purpose, expires_at, source)
            VALUES ($1, $2, $3, $4, $5, $6)
            """,
            [
                .integer(ChallengeTable.slot(challenge.expiresAt)), .bytes(challenge.bytes),
                .text(challenge.appID.text), .text(challenge.purpose.rawValue), .time(challenge.expiresAt),
                .text(source),
            ])
        let isDue = putSinceCount.withLock { count in
            count = (count + 1) % step
            return count == 0
        }
        // Evict `step - 1` challenges more than the excess, because this node inserts that many before it counts again.
        let eviction = Statement("SELECT evict_challenges($1, $2)", [.integer(maximum), .integer(step - 1)])
        try await database.write(isLasting: false) { (connection) throws(StoreError) in
            connection.beforeCommit(insertion)
            if isDue { connection.beforeCommit(eviction) }
        }
    }

    func take(_ bytes: [UInt8]) async throws(StoreError) -> IssuedChallenge? {
        let now = clock.now
        return try await database.write(isLasting: false) { (connection) throws(StoreError) in
            let row = try connection.runAutocommit(
                Statement(
                    "DELETE FROM challenges WHERE challenge = $1 RETURNING app_id, purpose, expires_at",
                    [.bytes(bytes)])
            ).first
            guard let row else { return nil }
            let (app, purpose) = (try row.text("app_id"), try row.text("purpose"))
            let challenge = IssuedChallenge(
                bytes: bytes, appID: try row.parsed("app_id", app) { try AppID($0) },
                purpose: try row.parsed("purpose", purpose) { ChallengePurpose(rawValue: $0) },
                expiresAt: UnixTime(try row.integer("expires_at")))
            return now <= challenge.expiresAt + IssuedChallenge.keptAfterExpiry ? challenge : nil
        }
    }
}
