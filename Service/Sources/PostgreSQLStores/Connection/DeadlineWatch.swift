internal import AuthService
internal import Foundation

/// Ends requests at their deadlines, whether they wait for a connection or for the server.
///
/// All requests of a pool have the same time limit, so the queue is in the order of the deadlines.
///
/// Unchecked: the condition's lock guards the queue.
final class DeadlineWatch: @unchecked Sendable {
    private let condition = NSCondition()
    private var requests = Queue<Request>()
    private var isAsleep = false
    private var isFinished = false

    /// The seconds between two checks: a request ends at most this long after its deadline.
    private static var grain: Double { 0.02 }

    init() {
        let thread = Thread { [self] in run() }
        thread.name = "postgresql-watch"
        thread.stackSize = 1 << 18
        thread.start()
    }

    func add(_ request: Request) {
        condition.lock()
        defer { condition.unlock() }
        requests.append(request)
        if isAsleep { condition.signal() }
    }

    func finish() {
        condition.lock()
        defer { condition.unlock() }
        isFinished = true
        condition.signal()
    }

    private func run() {
        while let expired = next() {
            for request in expired {
                request.end(StoreError(.tooSlow, "PostgreSQL did not answer within the deadline"))
            }
        }
    }

    /// Waits for a request, and then for up to `grain`. Returns the requests whose deadlines have expired, perhaps none; nil once
    /// the watch is finished and no request is left.
    private func next() -> [Request]? {
        condition.lock()
        defer { condition.unlock() }
        while requests.isEmpty, !isFinished {
            isAsleep = true
            condition.wait()
            isAsleep = false
        }
        if !requests.isEmpty { _ = condition.wait(until: Date(timeIntervalSinceNow: Self.grain)) }
        var expired: [Request] = []
        let now = ContinuousClock.now
        while let request = requests.head, request.isOver || request.deadline <= now {
            if !request.isOver { expired.append(request) }
            _ = requests.removeFirst()
        }
        return isFinished && requests.isEmpty && expired.isEmpty ? nil : expired
    }
}
