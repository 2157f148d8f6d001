/// Who does what when: hands out numbered turns until there are enough of them or the time is over.
///
/// With a rate, turn n is due n/rate seconds after the start, whether or not earlier ones have ended: a service that gets
/// slow is not asked more slowly (it would look faster than it is).
struct Pace: Sendable {
    /// One thing to do.
    struct Turn: Sendable, Hashable {
        /// From 0.
        let number: Int
        /// When it is due, since the start.
        let due: Duration
    }

    private let load: Fleet.Load
    private var next = 0

    init(_ load: Fleet.Load) { self.load = load }

    /// The next turn; nil if there are no more.
    ///
    /// - Parameter elapsed: since the start.
    mutating func turn(at elapsed: Duration) -> Turn? {
        let due = load.rate.map { .seconds(Double(next) / $0) } ?? elapsed
        switch load.end {
        case .requests(let count): guard next < count else { return nil }
        case .after(let duration): guard max(due, elapsed) < duration else { return nil }
        }
        defer { next += 1 }
        return Turn(number: next, due: due)
    }
}

extension Fleet.Load {
    /// Whether a turn is a rotation: evenly spread, so many of a hundred.
    func isRotation(_ number: Int) -> Bool {
        let share = Double(rotationPercent) / 100
        return (Double(number + 1) * share).rounded(.down) > (Double(number) * share).rounded(.down)
    }
}
