internal import AuthService
internal import Bytes

/// A call of a store on its way through the pool.
final class Request: Sendable {
    private struct State: Sendable {
        var body: (@Sendable (isolated Connection) -> Void)?
        /// Wakes the thread that runs the body.
        var running: WakeSignal?
        var isOver = false
    }

    let deadline: ContinuousClock.Instant
    private let state: Locked<State>
    /// Gives the failure to the caller unless it has an answer.
    private let refuse: @Sendable (StoreError) -> Void

    init(
        deadline: ContinuousClock.Instant, refuse: @escaping @Sendable (StoreError) -> Void,
        body: @escaping @Sendable (isolated Connection) -> Void
    ) {
        self.deadline = deadline
        self.refuse = refuse
        state = Locked(State(body: body))
    }

    /// Whether the caller has an answer, so that the rest of the work is for nothing.
    var isOver: Bool { state.withLock(\.isOver) }

    /// Gives a failure to the caller, and stops the body.
    func end(_ error: StoreError) {
        let (isFirst, running) = state.withLock { state in
            defer { (state.isOver, state.body) = (true, nil) }
            return (!state.isOver, state.running)
        }
        guard isFirst else { return }
        refuse(error)
        running?.raise()
    }

    /// Takes the body to run it on a thread. Nil if the request is over.
    func begin(_ signal: WakeSignal) -> (@Sendable (isolated Connection) -> Void)? {
        state.withLock { state in
            defer { state.body = nil }
            guard !state.isOver else { return nil }
            state.running = signal
            return state.body
        }
    }

    /// The body has run and gave its answer.
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
