internal import AuthContract
internal import AuthService
internal import Bytes

/// Replay claims in PostgreSQL.
///
/// Concurrent calls share a transaction: a commit waits for the disk once, for one claim or for many.
///
/// With `isSecond`, the store makes second claims (`SecondClaim`). It then does not check which store is the keeper, because the
/// keeper is a Redis.
final class PostgreSQLReplayStore: ReplayStore {
    private typealias Answer = OnceValue<Result<ClaimOutcome, StoreError>>

    private struct Call: Sendable {
        let claims: [ReplayClaim]
        let expiresAt: UnixTime
        let statement: Statement
        let now: UnixTime
        let request: Request
        let answer: Answer
    }

    private struct State: Sendable {
        var waiting = Queue<Call>()
        var running = 0
    }

    /// The result of one call in the database.
    private enum Finding: Sendable {
        case outcome(ClaimOutcome)
        case failed(StoreError)
        /// The database's identity differs from the recorded one: claims may be missing.
        case unknownHistory

        var isClaimed: Bool { if case .outcome(.claimed) = self { true } else { false } }
    }

    /// The largest number of calls in one transaction (`batch`), and of concurrent transactions (`lanes`).
    private static let batch = 64
    static let lanes = 4

    private let database: StoreDatabase
    private let maximumWaiting: Int
    private let clockTolerance: Int64
    /// The statement that makes claims.
    private let taking: String
    private let failover: FailoverCheck
    private let state = Locked(State())

    init(
        database: StoreDatabase, options: PostgreSQLStores.Options, failover: FailoverCheck, isSecond: Bool = false
    ) {
        (self.database, self.failover) = (database, failover)
        (maximumWaiting, clockTolerance) = (options.maximumWaiting, options.clockTolerance)
        let function = isSecond ? "take_second_claims" : "take_claims"
        taking = "SELECT outcome, number FROM \(function)($1, $2, $3, $4, $5, $6, $7[1])"
    }

    func claim(
        _ claims: [ReplayClaim], of device: DeviceID, timestamp: UnixTime, expiresAt: UnixTime, now: UnixTime,
        futureWindow: Int64, tag: ClaimTag?
    ) async throws(StoreError) -> ClaimOutcome {
        let statement = Statement(
            taking,
            [
                .claims(claims), .time(timestamp), .time(expiresAt), .time(now),
                .integer(min(max(futureWindow, 0), 1 << 32)), .integer(clockTolerance),
                .claims(tag.map { [$0.claim] } ?? []),
            ])
        return try await database.observer.observing(.claim) { () async throws(StoreError) in
            try await answer(claims, until: expiresAt, statement, now: now)
        }
    }

    func holds(_ tag: ClaimTag, of device: DeviceID, now: UnixTime) async throws(StoreError) -> Bool {
        let statement = Statement(
            "SELECT expires_at FROM claims WHERE claim = $1[1] AND expires_at > $2", [.claims([tag.claim]), .time(now)])
        return try await database.lookUp(statement) { (_) throws(StoreError) in true } ?? false
    }

    private func answer(
        _ claims: [ReplayClaim], until expiry: UnixTime, _ statement: Statement, now: UnixTime
    ) async throws(StoreError) -> ClaimOutcome {
        let answer = Answer()
        let request = database.pool.watched { answer.give(.failure($0)) }
        let call = Call(
            claims: claims, expiresAt: expiry, statement: statement, now: now, request: request, answer: answer)
        let (isRefused, begins) = state.withLock { state in
            guard state.waiting.count < maximumWaiting else { return (true, false) }
            state.waiting.append(call)
            guard state.running < Self.lanes else { return (false, false) }
            state.running += 1
            return (false, true)
        }
        if isRefused { request.end(StoreError(.tooSlow, "\(maximumWaiting) claims wait for PostgreSQL")) }
        if begins { Task { await run() } }
        return try await answer.value.get()
    }

    /// Runs waiting calls until none is left.
    private func run() async {
        while let calls = next() {
            let findings = await findings(for: calls)
            for (call, finding) in zip(calls, findings) {
                switch finding {
                case .outcome(let outcome): call.answer.give(.success(outcome))
                case .failed(let error): call.answer.give(.failure(error))
                case .unknownHistory:
                    call.answer.give(.failure(StoreError(.unavailable, "the history of the claims is not known")))
                }
                call.request.finish()
            }
        }
    }

    private func next() -> [Call]? {
        state.withLock { state in
            var calls: [Call] = []
            while calls.count < Self.batch, let call = state.waiting.removeFirst() {
                if !call.request.isOver { calls.append(call) }
            }
            if calls.isEmpty { state.running -= 1 }
            return calls.isEmpty ? nil : calls
        }
    }

    private func findings(for calls: [Call]) async -> [Finding] {
        do throws(StoreError) {
            let findings = try await take(calls)
            let isUnknown = findings.contains { if case .unknownHistory = $0 { true } else { false } }
            guard isUnknown, let now = calls.map(\.now).max() else { return findings }
            // Update the recorded identity. This records a loss, unless the server is known to have all claims. Then judge the
            // calls again.
            try await failover.renew(database.pool, at: now)
            return try await take(calls)
        } catch {
            return calls.map { _ in .failed(error) }
        }
    }

    private func take(_ calls: [Call]) async throws(StoreError) -> [Finding] {
        // Sorted, so that two transactions with the same claims do not deadlock.
        let locks = Set(calls.flatMap { $0.claims.map { Int64(bitPattern: $0.low) } }).sorted()
        let lock = Statement("SELECT pg_advisory_xact_lock(key) FROM unnest($1) AS key", [.integers(locks)])
        let readings = database.readings
        let now = calls.map(\.now).max() ?? UnixTime(0)
        let (findings, primary) = try await database.pool.run { [failover] (connection) throws(StoreError) in
            try connection.inTransaction { (connection) throws(StoreError) in
                // Check this in each attempt, because a retry may run on another server.
                guard !failover.isDue(on: connection.place, at: now) else {
                    return (calls.map { _ in Finding.unknownHistory }, connection.place)
                }
                let results = try connection.runTransaction(
                    [readings.requirement(on: connection.place), lock] + calls.map(\.statement))
                let findings = try zip(results.dropFirst(2), calls).map { (result, call) throws(StoreError) in
                    try Self.finding(result, call.claims)
                }
                return (findings, connection.place)
            }
        }
        let claimed = zip(calls, findings).filter { $1.isClaimed }.map(\.0)
        failover.note(claimed.flatMap { call in call.claims.map { ($0, call.expiresAt) } }, on: primary)
        return findings
    }

    private static func finding(_ result: StatementResult, _ claims: [ReplayClaim]) throws(StoreError) -> Finding {
        let row = result.first
        let number = try row?.optionalInteger("number")
        switch (try row?.text("outcome"), number) {
        case ("claimed", _): return .outcome(.claimed)
        case ("expired", _): return .outcome(.expired)
        case ("lost", let seconds?): return .outcome(.historyLost(retryAfter: max(1, seconds)))
        case ("taken", let place?):
            guard let place = Int(exactly: place), claims.indices.contains(place) else { break }
            return .outcome(.taken(claims[place]))
        case ("unknown", _): return .unknownHistory
        case ("elsewhere", _):
            return .failed(StoreError(.unavailable, "PostgreSQL is not the keeper of the claims' history"))
        case ("full", _): return .failed(StoreError(.unavailable, "the replay store is full"))
        case ("clock", let ahead?):
            return .failed(PostgreSQLStores.clocksApart(ahead))
        case ("far", _):
            return .failed(StoreError(.unavailable, "the request's expiry is too far from those of the other claims"))
        default: break
        }
        throw StoreError(.unreadable, "PostgreSQL's answer to a claim is malformed")
    }
}
