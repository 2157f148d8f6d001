import AuthContract
import AuthService
import Bytes
import StoreConformance

@testable import RedisStores

/// A keeper in memory. It names this deployment's Redis, or another store, as the store of the claims.
final class SampleKeeper: ClaimKeeper {
    private struct State: Sendable {
        var id: String
        var isElsewhere = false
        var primary: PrimaryPlace?
        var renewals = 0
        var learned: PrimaryPlace?
        var reading: UnixTime?
        var unclaimedEnd: Int64?
        var isReplaced = false
        var settlements = 0
        var failsToSettle = false
    }

    private let state: Locked<State>
    /// Stands in for the second claims that a real keeper stores in PostgreSQL.
    private let second = MemoryStores()

    init(_ id: String = "first", primary: PrimaryPlace? = nil) { state = Locked(State(id: id, primary: primary)) }

    var renewals: Int { state.withLock { $0.renewals } }
    /// How often nodes called `settle`.
    var settlements: Int { state.withLock { $0.settlements } }
    var learned: PrimaryPlace? { state.withLock { $0.learned } }
    var id: String { state.withLock { $0.id } }

    /// Names the Redis again under a new id of the claims' history, or names another store, as an operator does.
    func name(_ id: String, isElsewhere: Bool = false) {
        state.withLock { ($0.id, $0.isElsewhere) = (id, isElsewhere) }
    }

    /// Sets the time that nodes read from PostgreSQL's clock, and the unclaimed end (`SecondClaim`) of new ids of the claims' history.
    func settle(reading: UnixTime?, unclaimedEnd: UnixTime?) {
        state.withLock { ($0.reading, $0.unclaimedEnd) = (reading, unclaimedEnd?.seconds) }
    }

    /// Simulates another process that renews the id right after this process renewed it.
    func replaceNames() { state.withLock { $0.isReplaced = true } }

    /// Simulates a PostgreSQL that does not answer calls of `settle`.
    func failToSettle(_ fails: Bool) { state.withLock { $0.failsToSettle = fails } }

    func move(to primary: PrimaryPlace) { state.withLock { $0.primary = primary } }

    func current() throws(StoreError) -> ClaimHistoryID {
        let state = state.withLock { $0 }
        guard !state.isElsewhere else { throw StoreError(.unavailable, "the claims are kept in another store") }
        return ClaimHistoryID(state.id, primary: state.primary, reading: state.reading)
    }

    func renew(_ id: ClaimHistoryID) -> ClaimHistoryID? {
        state.withLock { state in
            guard state.id == id.text, !state.isElsewhere else { return nil }
            state.renewals += 1
            state.id = "\(id.text)+"
            return ClaimHistoryID(
                state.id, primary: state.primary, reading: state.reading, unclaimedEnd: state.unclaimedEnd)
        }
    }

    func isCurrent(_ id: ClaimHistoryID) -> Bool { state.withLock { $0.id == id.text && !$0.isReplaced } }

    func unclaimedEnd(of id: ClaimHistoryID) -> Int64? {
        state.withLock { $0.id == id.text && !$0.isReplaced ? $0.unclaimedEnd : nil }
    }

    func settle() throws(StoreError) {
        let fails = state.withLock { state in
            state.settlements += 1
            // PostgreSQL gives no unclaimed end (the latest date of a lost claim that PostgreSQL may lack) from now on, unless
            // settling fails.
            state.unclaimedEnd = state.failsToSettle ? state.unclaimedEnd : nil
            return state.failsToSettle
        }
        if fails { throw StoreError(.unavailable, "PostgreSQL did not answer") }
    }

    var secondClaims: any ReplayStore { second }

    func learn(of primary: PrimaryPlace) { state.withLock { $0.learned = primary } }

    /// Makes the request's claims only in the stand-in for PostgreSQL.
    func claimInSecond(_ request: SampleRequest) async throws(StoreError) -> ClaimOutcome {
        try await second.claim(
            request.claims, of: request.device, timestamp: request.timestamp, expiresAt: request.timestamp + 660,
            now: SystemClock().now, futureWindow: 60, tag: nil)
    }
}
