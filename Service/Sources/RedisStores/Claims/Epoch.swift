internal import AuthContract
internal import AuthService
internal import Bytes
internal import RESP

/// A time in which a partition has lost no claims.
///
/// Redis keeps the epoch in a hash beside the claims. The claim script compares the epoch's id in the same step. The hash holds
/// the run id, the replication id and the number of evicted keys. If one of them changes, the next epoch begins, and requests
/// dated around the recorded clock readings are refused (protocol, *Loss of history*).
struct Epoch: Sendable, Hashable {
    let id: String
    let history: ClaimHistory

    /// An epoch that began after losses.
    ///
    /// - Parameter losses: the readings of the clock around which claims were lost, or stretches of them. Any node may have made the lost claims by its
    ///   own clock, until its lease ended.
    init(id: String, losses: [ClosedRange<Int64>]) {
        self.id = id
        history = ClaimHistory(
            loss: HistoryLoss(around: losses, clocksApart: ClaimHistory.nodesApart, lease: ClaimHistory.lease))
    }

    private static let maximumLosses = 129

    /// Reads a script's answer: the id, and the readings, separated by commas.
    init?(_ words: [RESPValue]) {
        guard let id = words[0].text, (1...64).contains(id.utf8.count), let text = words[1].text else { return nil }
        var losses: [ClosedRange<Int64>] = []
        // The script keeps no more. Joining the times around them takes the square of their number.
        for word in text.split(separator: ",") {
            let ends = word.split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false).map { Int64($0) }
            guard losses.count < Self.maximumLosses, let first = ends[0], let last = ends[ends.count - 1],
                0 <= first, first <= last, last <= 1 << 40
            else { return nil }
            losses.append(first...last)
        }
        self.init(id: id, losses: losses)
    }

    static func newID() -> String { Hexadecimal.encode(SystemRandom().bytes(8)) }

    /// Whether requests dated now may be refused, with the widest future window.
    func refuses(at now: UnixTime) -> Bool {
        history.retryAfter(timestamp: now, futureWindow: SignaturePolicy.maximumFutureWindow) != nil
    }
}
