/// How many claims live, by the minute in which they expire.
///
/// Minutes that have passed are kept for a while: the clock may have been ahead, and their claims live again.
struct ClaimCensus {
    /// As of the time of the last call of `advance`.
    private(set) var live = 0
    private var byMinute: [Int64: Int] = [:]
    private var countedTo = Int64.min

    /// More minutes than claims ever live for at once.
    private static let maximumMinutes = 64

    mutating func add(_ count: Int, expiry: UInt32) {
        let minute = Int64(expiry) / 60
        byMinute[minute, default: 0] += count
        if minute >= countedTo { live += count }
    }

    /// Counts out the minutes that have passed, and in again those that have not after all.
    mutating func advance(to now: Int64) {
        let minute = now / 60
        guard minute != countedTo else { return }
        countedTo = minute
        if byMinute.count > Self.maximumMinutes {
            for passed in byMinute.keys.filter({ $0 < minute }).sorted().dropLast(Self.maximumMinutes / 2) {
                byMinute[passed] = nil
            }
        }
        live = byMinute.reduce(0) { $1.key < minute ? $0 : $0 + $1.value }
    }

    /// Forgets the minutes after the one of this expiry.
    mutating func forget(after expiry: Int64) {
        for minute in byMinute.keys where minute > expiry / 60 { byMinute[minute] = nil }
        live = byMinute.reduce(0) { $1.key < countedTo ? $0 : $0 + $1.value }
    }
}
