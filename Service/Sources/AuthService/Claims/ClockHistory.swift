/// Finds wrong readings of the service's clock.
///
/// A reading is wrong if the clock later falls more than `tolerance` behind the monotonic clock, or behind the last recorded
/// reading (protocol, *Loss of history*). Readings at the same distance from the monotonic clock are one stretch. A jump ahead
/// begins another stretch. If the clock falls back, the stretches that this shows to be wrong are removed.
package struct ClockHistory: Sendable, Hashable {
    /// Readings between two jumps of the clock.
    struct Stretch: Sendable, Hashable {
        let first: Int64
        var last: Int64
        /// The smallest and the greatest distance from the monotonic clock.
        var lowest: Int64
        var highest: Int64
    }

    /// The result of comparing a new reading with the clock's history.
    package enum Finding: Sendable, Hashable {
        case steady
        /// The clock jumped ahead, to the correct time or to a wrong one.
        case ahead
        case wrong(WrongReadings)
    }

    /// Readings that were ahead of the true time.
    package struct WrongReadings: Sendable, Hashable {
        /// The readings of each stretch, the earliest stretch first. The clock jumped from one stretch to the next, so the times
        /// between them were not read.
        package var stretches: [ClosedRange<Int64>]
        /// The last correct reading before them; nil if none is known.
        package var lastRight: Int64?
    }

    /// The largest backward step of the clock that does not prove earlier readings wrong, in seconds.
    package static let tolerance: Int64 = 5
    /// The largest number of stretches. Beyond it, the two nearest ones are joined.
    private static let maximum = 16

    private(set) var stretches: [Stretch] = []

    package init() {}

    /// The latest reading that is not known to be wrong.
    package var latest: Int64? { stretches.last?.last }

    /// Readings from which `note` rebuilds this history. Each segment of SQLite's claim journal begins with them, because older
    /// segments are deleted. Empty if there is only one reading: the reading that the segment records next suffices.
    package var summary: [(wall: Int64, monotonic: Int64)] {
        if stretches.count == 1, stretches[0].first == stretches[0].last { return [] }
        return stretches.flatMap { stretch in
            // Emit the greatest distance first: with the smallest, `note` could add the reading to the previous stretch.
            let first = (wall: stretch.first, monotonic: stretch.first.subtracting(stretch.highest))
            guard stretch.first != stretch.last else { return [first] }
            return [first, (wall: stretch.last, monotonic: stretch.last.subtracting(stretch.lowest))]
        }
    }

    /// The readings of each stretch that a later summary of this history lacks.
    func readings(missingIn later: ClockHistory) -> [ClosedRange<Int64>] {
        stretches.map { $0.first...$0.last }.filter { readings in
            !later.stretches.contains { $0.first <= readings.lowerBound && readings.upperBound <= $0.last }
        }
    }

    /// Adds a reading.
    ///
    /// - Parameters:
    ///   - wall: the service's clock, unix seconds.
    ///   - monotonic: the monotonic clock of this boot, in seconds.
    package mutating func note(_ wall: Int64, monotonic: Int64) -> Finding {
        let distance = wall.subtracting(monotonic)
        let wrong = removeWrong(distance)
        if let last = stretches.indices.last, distance <= stretches[last].lowest.adding(Self.tolerance) {
            stretches[last].last = max(stretches[last].last, wall)
            stretches[last].lowest = min(stretches[last].lowest, distance)
            stretches[last].highest = max(stretches[last].highest, distance)
            return wrong.map { .wrong($0) } ?? .steady
        }
        let isFirst = stretches.isEmpty
        begin(wall, distance)
        return wrong.map { .wrong($0) } ?? (isFirst ? .steady : .ahead)
    }

    /// Continues after a reboot. The monotonic clock does not measure the time in between. So each stretch gets the distance that
    /// it would have if the clock still showed its last reading.
    package mutating func restart(monotonic: Int64) {
        for index in stretches.indices {
            let distance = stretches[index].last.subtracting(monotonic)
            (stretches[index].lowest, stretches[index].highest) = (distance, distance)
        }
    }

    private mutating func removeWrong(_ distance: Int64) -> WrongReadings? {
        let isWrong: (Stretch) -> Bool = { distance.adding(Self.tolerance) < $0.highest }
        let wrong = stretches.suffix(from: (stretches.lastIndex { !isWrong($0) } ?? -1) + 1)
        guard !wrong.isEmpty else { return nil }
        stretches.removeLast(wrong.count)
        return WrongReadings(stretches: wrong.map { $0.first...$0.last }, lastRight: stretches.last?.last)
    }

    private mutating func begin(_ wall: Int64, _ distance: Int64) {
        stretches.append(Stretch(first: wall, last: wall, lowest: distance, highest: distance))
        if stretches.count > Self.maximum { joinNearest() }
    }

    /// Joins the two stretches with the smallest jump between them. If the later one turns out to be wrong, the earlier one is
    /// treated as wrong too, which refuses only a few more dates. The current stretch is not joined.
    private mutating func joinNearest() {
        let jumps = zip(stretches, stretches.dropFirst().dropLast()).map { $1.lowest.subtracting($0.highest) }
        guard let index = jumps.indices.min(by: { jumps[$0] < jumps[$1] }) else { return }
        let (earlier, later) = (stretches[index], stretches[index + 1])
        // Only the distances of the later stretch are kept. They are close together, so `summary` yields one stretch again.
        stretches[index + 1] = Stretch(
            first: min(earlier.first, later.first), last: max(earlier.last, later.last), lowest: later.lowest,
            highest: later.highest)
        stretches.remove(at: index)
    }
}
