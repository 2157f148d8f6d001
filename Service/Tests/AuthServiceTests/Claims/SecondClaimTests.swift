import AuthContract
import Testing

@testable import AuthService

struct SecondClaimTests {
    @Test func `a request dated more than five seconds after PostgreSQL's clock needs a second claim`() {
        let reading = UnixTime(10_000)
        #expect(!SecondClaim.isNeeded(timestamp: UnixTime(10_005), reading: reading))
        #expect(SecondClaim.isNeeded(timestamp: UnixTime(10_006), reading: reading))
        #expect(SecondClaim.isNeeded(timestamp: UnixTime(0), reading: nil))
        #expect(SecondClaim.unclaimedEnd(mark: .max) == .max)
    }

    /// The accepted request with the latest date is one that the node accepts at the last moment of its lease.
    @Test func `after the settling time, everything that a node without second claims accepted is dated in the past`() {
        let latest = ClaimHistory.lease + ClaimHistory.clockTolerance + SignaturePolicy.maximumFutureWindow
        #expect(latest < SecondClaim.settling)
    }

    /// Divides a loss (a set of refused dates) at a random date `end`. The requests of each date that the whole loss
    /// refuses must be refused, or looked up in PostgreSQL. A date that the whole loss does not refuse, even with the
    /// widest window, must be neither refused nor looked up.
    @Test(arguments: 1...30 as ClosedRange<UInt64>)
    func `a shortened loss leaves no date of its intervals to Redis alone`(_ seed: UInt64) {
        var numbers = SeededNumbers(seed: seed)
        let readings = (0..<Int.random(in: 1...6, using: &numbers)).map { _ in
            let first = Int64.random(in: 100_000...104_000, using: &numbers)
            return first...first + Int64.random(in: 0...300, using: &numbers)
        }
        let whole = HistoryLoss(around: readings, clocksApart: ClaimHistory.nodesApart, lease: ClaimHistory.lease)
        let end = Int64.random(in: 98_000...106_000, using: &numbers)
        let (refused, lookedUp) = whole.shortened(to: end)
        let window = Int64.random(in: 0...300, using: &numbers)
        for date in Array(stride(from: Int64(97_000), through: 107_000, by: 9)) + [end - 1, end, end + 1] {
            let timestamp = UnixTime(date)
            func isRefused(_ loss: HistoryLoss, _ window: Int64) -> Bool {
                loss.retryAfter(timestamp: timestamp, futureWindow: window) != nil
            }
            let isCovered = isRefused(refused, window) || lookedUp.contains(timestamp)
            // Each date that the whole loss refuses with this window must be refused or looked up. A date that it refuses only with a
            // wider window may be looked up.
            if isRefused(whole, window) { #expect(isCovered, "\(date)") }
            if date <= end { #expect(isRefused(refused, window) == isRefused(whole, window), "\(date)") }
            if isCovered { #expect(isRefused(whole, 300), "\(date)") }
            if isRefused(refused, window) { #expect(isRefused(whole, window), "\(date)") }
            if lookedUp.contains(timestamp) { #expect(date > end, "\(date)") }
        }
    }
}
