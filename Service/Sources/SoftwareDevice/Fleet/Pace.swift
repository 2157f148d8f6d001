/// Schedules numbered operations until a count or a time limit is reached.
///
/// With a rate, operation n is due n/rate seconds after the start, whether or not earlier ones have ended. If operations waited
/// for earlier ones, a service that slows down would get fewer requests, and look faster than it is.
struct Pace: Sendable {
    /// One scheduled operation.
    struct Turn: Sendable, Hashable {
        /// The number of the operation, from 0.
        let number: Int
        /// The time since the start at which the operation is due.
        let due: Duration
    }

    private let load: Fleet.Load
    private var next = 0

    init(_ load: Fleet.Load) { self.load = load }

    /// The next operation; nil if the load has ended.
    ///
    /// - Parameter elapsed: the time since the start.
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
    /// Whether an operation is a rotation. Rotations are spread evenly over the numbers.
    func isRotation(_ number: Int) -> Bool {
        let share = Double(rotationPercent) / 100
        return (Double(number + 1) * share).rounded(.down) > (Double(number) * share).rounded(.down)
    }
}
