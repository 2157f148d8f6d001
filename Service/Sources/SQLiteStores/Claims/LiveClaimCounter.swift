/// Counts live claims by the minute of their expiry.
///
/// It keeps past minutes for a while, because their claims are live again if a clock that was ahead is corrected.
struct LiveClaimCounter {
    /// The number of claims that are live in the minute of the last call of `advance`.
    private(set) var live = 0
    private var byMinute: [Int64: Int] = [:]
    private var countedTo = Int64.min
    /// The number of minutes with counts.
    var minutes: Int { byMinute.count }

    /// If more minutes than this have counts, `advance` drops old past minutes. A claim lives for fewer minutes.
    private static let maximumMinutes = 64

    mutating func add(_ count: Int, expiry: UInt32) {
        let minute = Int64(expiry) / 60
        byMinute[minute, default: 0] += count
        if minute >= countedTo { live += count }
    }

    /// Subtracts the claims of minutes that have passed, and adds back those of minutes that a corrected clock has not reached.
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

    /// Drops the minutes after the minute of this expiry.
    mutating func forget(after expiry: Int64) {
        for minute in byMinute.keys where minute > expiry / 60 { byMinute[minute] = nil }
        live = byMinute.reduce(0) { $1.key < countedTo ? $0 : $0 + $1.value }
    }
}
