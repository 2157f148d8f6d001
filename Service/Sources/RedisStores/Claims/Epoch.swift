internal import AuthContract
internal import AuthService
internal import Bytes
internal import RESP

/// A period in which a partition of the keys in Redis has lost no claims.
///
/// Redis keeps the epoch in a hash beside the claims. The claim script compares the epoch's id and makes the claims
/// in one atomic step. The hash holds the run id, the replication id, the number of evicted keys and readings of the
/// server's clock. If they show that claims may be lost, the next epoch begins, and requests dated around these
/// readings are refused (protocol, *Loss of history*).
struct Epoch: Sendable, Hashable {
    /// The latest date of a lost claim that PostgreSQL may lack. It shortens the first losses of an epoch (`losses`):
    /// requests dated in these losses are refused only up to this date. PostgreSQL judges the requests with later dates.
    struct UnclaimedEnd: Sendable, Hashable {
        /// How many of the epoch's `losses` refuse dates only up to `date`. They are the first ones in the list.
        let losses: Int
        let date: Int64

        /// Reads `<epoch> <losses> <date>`. Nil if the text is malformed or belongs to another epoch: if a node of the
        /// previous version of the service begins an epoch, it leaves the text of the last epoch unchanged.
        init?(_ text: String, of id: String) {
            let words = text.split(separator: " ", omittingEmptySubsequences: false)
            guard words.count == 3, words[0] == id, let losses = Int(words[1]), 0...Epoch.maximumLosses ~= losses,
                let date = Int64(words[2]), 0...(1 << 40) ~= date
            else { return nil }
            (self.losses, self.date) = (losses, date)
        }
    }

    let id: String
    /// The clock readings around which claims were lost. Each range is a single reading, or a stretch of readings without a gap.
    private let losses: [ClosedRange<Int64>]
    private let unclaimedEnd: UnclaimedEnd?
    /// The claims' history, which holds the dates whose requests are refused.
    let history: ClaimHistory
    /// The dates for which PostgreSQL has the lost claims. PostgreSQL judges requests with these dates. Otherwise this
    /// epoch would have to refuse them.
    let lookedUp: HistoryLoss

    /// An epoch that began after losses.
    ///
    /// - Parameters:
    ///   - losses: the clock readings around which claims were lost. Each range is a single reading, or a stretch of
    ///     readings without a gap. A node dates claims by its own clock, and goes on until its lease ends. So claims that
    ///     are dated somewhat before or after a reading may be lost, too.
    ///   - unclaimedEnd: for the first `unclaimedEnd.losses` of the losses, the latest date of a lost claim that
    ///     PostgreSQL may lack; nil: PostgreSQL may lack any of the lost claims.
    init(id: String, losses: [ClosedRange<Int64>], unclaimedEnd: UnclaimedEnd? = nil) {
        (self.id, self.losses, self.unclaimedEnd) = (id, losses, unclaimedEnd)
        let count = unclaimedEnd?.losses ?? 0
        var refused = Self.loss(around: losses.dropFirst(count))
        var lookedUp = HistoryLoss()
        if let unclaimedEnd {
            let shortened = Self.loss(around: losses.prefix(count)).shortened(to: unclaimedEnd.date)
            refused.join(shortened.refused)
            lookedUp = shortened.lookedUp
        }
        history = ClaimHistory(loss: refused)
        self.lookedUp = lookedUp
    }

    private static func loss(around readings: ArraySlice<ClosedRange<Int64>>) -> HistoryLoss {
        HistoryLoss(around: Array(readings), clocksApart: ClaimHistory.nodesApart, lease: ClaimHistory.lease)
    }

    private static let maximumLosses = 129

    /// Reads a script's answer: the epoch's id, its comma-separated clock readings, and its unclaimed end. Nil if the answer is malformed.
    init?(_ words: [RESPValue]) {
        guard words.count == 3, let id = words[0].text, (1...64).contains(id.utf8.count), let text = words[1].text,
            let end = words[2].text
        else { return nil }
        var losses: [ClosedRange<Int64>] = []
        // The script keeps at most `maximumLosses` readings. Refuse an answer with more readings, because the time to join the
        // intervals around them grows with the square of their number.
        for word in text.split(separator: ",") {
            let ends = word.split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false).map { Int64($0) }
            guard losses.count < Self.maximumLosses, let first = ends[0], let last = ends[ends.count - 1],
                0 <= first, first <= last, last <= 1 << 40
            else { return nil }
            losses.append(first...last)
        }
        self.init(id: id, losses: losses, unclaimedEnd: UnclaimedEnd(end, of: id))
    }

    static func newID() -> String { Hexadecimal.encode(SystemRandom().bytes(8)) }

    /// Whether the epoch has an unclaimed end (`UnclaimedEnd`), up to which it refuses the dates of its first losses.
    var isShortened: Bool { unclaimedEnd != nil }

    /// Whether Redis and this value have the same unclaimed end for the epoch.
    ///
    /// - Parameter text: the unclaimed end in Redis; nil: Redis has none.
    func isShortened(by text: String?) -> Bool { text.flatMap { UnclaimedEnd($0, of: id) } == unclaimedEnd }

    /// A copy of this epoch with the unclaimed end (`SecondClaim`) that a script recorded. The copy refuses fewer
    /// requests. Nil if the script recorded none.
    func shortened(by text: String?) -> Epoch? {
        guard let end = text.flatMap({ UnclaimedEnd($0, of: id) }) else { return nil }
        return Epoch(id: id, losses: losses, unclaimedEnd: end)
    }

    /// Whether requests dated `now` may be refused. Assumes the largest future window that an app can have.
    func refuses(at now: UnixTime) -> Bool {
        history.retryAfter(timestamp: now, futureWindow: SignaturePolicy.maximumFutureWindow) != nil
    }
}
