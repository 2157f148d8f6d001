/// How many claims live, by the minute in which they expire.
struct ClaimCensus {
    private(set) var live = 0
    private var byMinute: [Int64: Int] = [:]
    private var countedTo = Int64.min

    mutating func add(_ count: Int, expiry: UInt32) {
        byMinute[Int64(expiry) / 60, default: 0] += count
        live += count
    }

    /// Takes out the minutes that have passed.
    mutating func advance(to now: Int64) {
        let minute = now / 60
        guard minute > countedTo else { return }
        countedTo = minute
        for (passed, count) in byMinute where passed < minute {
            byMinute[passed] = nil
            live -= count
        }
    }
}
