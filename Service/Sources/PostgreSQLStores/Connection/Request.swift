internal import AuthService
internal import Bytes

/// A statement that finds at most one row by a key, and the receiver of its result.
struct LookUp: Sendable {
    let statement: Statement
    let take: @Sendable (Result<StatementResult, StoreError>) -> Void
}

/// A store's call in the pool.
final class Request: PooledRequest {
    enum Work: Sendable {
        case body(@Sendable (isolated Connection) -> Void)
        /// May share a round trip with other look-ups.
        case lookUp(LookUp)
    }

    private struct State: Sendable {
        var work: Work?
        /// Wakes the thread that does the work.
        var running: WakeSignal?
        var isOver = false
    }

    let deadline: ContinuousClock.Instant
    let isLookUp: Bool
    private let state: Locked<State>
    /// Gives the failure to the caller unless it already has an answer.
    private let refuse: @Sendable (StoreError) -> Void

    init(
        _ work: Work, deadline: ContinuousClock.Instant, refuse: @escaping @Sendable (StoreError) -> Void
    ) {
        self.deadline = deadline
        self.refuse = refuse
        if case .lookUp = work { isLookUp = true } else { isLookUp = false }
        state = Locked(State(work: work))
    }

    /// Whether the caller already has an answer, so that further work is useless.
    var isOver: Bool { state.withLock(\.isOver) }

    /// Gives a failure to the caller, and stops the work.
    ///
    /// - Returns: false if the caller already has an answer.
    @discardableResult
    func end(_ error: StoreError) -> Bool {
        let (isFirst, running) = state.withLock { state in
            defer { (state.isOver, state.work) = (true, nil) }
            return (!state.isOver, state.running)
        }
        guard isFirst else { return false }
        refuse(error)
        running?.raise()
        return true
    }

    /// Takes the work for a thread; nil if the request is over.
    func begin(_ signal: WakeSignal) -> Work? {
        state.withLock { state in
            defer { state.work = nil }
            guard !state.isOver else { return nil }
            state.running = signal
            return state.work
        }
    }

    /// Ends the request after its work has set the answer.
    func finish() {
        state.withLock { state in
            state.isOver = true
            state.running = nil
        }
    }
}

/// A first-in, first-out queue.
struct Queue<Element> {
    private var elements: [Element?] = []
    private var first = 0

    var count: Int { elements.count - first }
    var isEmpty: Bool { count == 0 }
    var head: Element? { first < elements.count ? elements[first] : nil }

    mutating func append(_ element: Element) { elements.append(element) }

    mutating func removeFirst() -> Element? {
        guard first < elements.count else { return nil }
        defer {
            elements[first] = nil
            first += 1
            if first > 64, first * 2 > elements.count {
                elements.removeFirst(first)
                first = 0
            }
        }
        return elements[first]
    }
}

extension Queue: Sendable where Element: Sendable {}
