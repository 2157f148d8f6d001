internal import AuthService

/// A request, as `PoolState` sees it.
protocol PooledRequest: Sendable {
    /// Whether the caller already has an answer, so that further work is useless.
    var isOver: Bool { get }
    /// Whether it may share a round trip with other look-ups.
    var isLookUp: Bool { get }
}

/// The state of a `ConnectionPool`: which connection takes which request, and when a connection may try to open.
///
/// A value without I/O. Each request is refused, or taken by one connection, or ends before that. If the connection cannot open,
/// the request is refused or submitted again. While requests wait, at least one connection is busy.
struct PoolState<Connection: Sendable, Request: PooledRequest>: Sendable {
    enum Admission: Sendable {
        /// The connection's thread must call `woken`.
        case wakes(Connection)
        case waits
        case refused(StoreError)
    }

    private struct Idle: Sendable {
        let connection: Connection
        let isOpen: Bool
    }

    private struct Outage: Sendable {
        let error: StoreError
        /// When the next request may try to connect; nil while a request tries.
        var nextAttempt: ContinuousClock.Instant?
        var pause: Duration
    }

    /// The largest number of look-ups in one round trip.
    static var maximumTogether: Int { 64 }

    /// If a round trip of look-ups began less than this time ago, a new look-up waits for its end, to share the next round trip.
    /// After this time, a look-up wakes another connection, which takes the waiting look-ups too, because the server may not
    /// answer the first round trip.
    static var gatherTime: Duration { .milliseconds(2) }

    /// The shortest and the longest pause between attempts to reach a server.
    private static var pauses: ClosedRange<Duration> { .milliseconds(50)...(.seconds(1)) }

    private static var closed: StoreError { StoreError(.unavailable, "the stores are closed") }

    private let maximumWaiting: Int
    /// Connections without a request, the open ones last.
    private var idle: [Idle]
    private var waiting = Queue<Request>()
    /// The number of connections whose threads were woken and have not taken a request yet.
    private var waking = 0
    /// When a connection last took look-ups; nil if any connection has been released since. A released connection takes the
    /// waiting look-ups.
    private var lookUpsBegan: ContinuousClock.Instant?
    /// The reason why the last attempt to connect failed; nil after a successful one.
    private var outage: Outage?
    private var isClosed = false
    private(set) var use = PoolUse()

    /// - Parameters:
    ///   - connections: the pool's connections, all closed.
    ///   - maximumWaiting: the largest number of requests that wait.
    init(_ connections: [Connection], maximumWaiting: Int) {
        self.maximumWaiting = maximumWaiting
        idle = connections.reversed().map { Idle(connection: $0, isOpen: false) }
    }

    // MARK: Requests

    mutating func submit(_ request: Request, at now: ContinuousClock.Instant) -> Admission {
        guard !isClosed else { return .refused(Self.closed) }
        // Requests that an already woken connection will take do not count as waiting.
        let maximum = maximumWaiting + waking
        // A look-up can join the batch of a connection that is being woken, or the next batch of a connection that runs look-ups.
        let isGathering = lookUpsBegan.map { now - $0 < Self.gatherTime } ?? false
        let hasRoom = waiting.count < min((waking + (isGathering ? 1 : 0)) * Self.maximumTogether, maximum)
        if !(request.isLookUp && hasRoom), let connection = takeIdle(at: now) {
            append(request)
            return .wakes(connection)
        }
        // During an outage, waiting is pointless if no connection is open.
        if use.processes.isEmpty, let outage { return .refused(outage.error) }
        guard waiting.count < maximum else {
            use.refused &+= 1
            return .refused(StoreError(.tooSlow, "\(maximumWaiting) calls wait for a connection to PostgreSQL"))
        }
        if idle.isEmpty { use.waits &+= 1 }
        append(request)
        return .waits
    }

    private mutating func append(_ request: Request) {
        waiting.append(request)
        use.waiting = waiting.count
    }

    /// Refuses all later requests.
    ///
    /// - Returns: the waiting requests, and the error for them.
    mutating func close() -> (refused: [Request], error: StoreError) {
        isClosed = true
        return (takeAll(), Self.closed)
    }

    private mutating func takeAll() -> [Request] {
        var all: [Request] = []
        while let request = waiting.removeFirst() { all.append(request) }
        use.waiting = 0
        return all
    }

    // MARK: Connections

    /// Takes the next requests for a connection whose thread was woken.
    ///
    /// - Returns: `next`: the requests to run, after which `released` must be called; nil: the connection is idle.
    ///   `another`: a second connection, whose thread must be woken.
    mutating func woken(
        _ connection: Connection, isOpen: Bool, at now: ContinuousClock.Instant
    ) -> (next: [Request]?, another: Connection?) {
        waking -= 1
        return serve(connection, isOpen, mayTake: true, at: now)
    }

    /// Takes the next requests for a connection that has run its requests.
    ///
    /// - Returns: as for `woken`.
    mutating func released(
        _ connection: Connection, isOpen: Bool, at now: ContinuousClock.Instant
    ) -> (next: [Request]?, another: Connection?) {
        lookUpsBegan = nil
        // During an outage, a closed connection leaves waiting requests to the open ones. If no connection is open, the
        // closed one tries to open. If it fails, the waiting requests are refused at once instead of at their deadlines.
        let mayTake = isOpen || outage == nil || use.processes.isEmpty
        return serve(connection, isOpen, mayTake: mayTake, at: now)
    }

    private mutating func serve(
        _ connection: Connection, _ isOpen: Bool, mayTake: Bool, at now: ContinuousClock.Instant
    ) -> (next: [Request]?, another: Connection?) {
        let next = mayTake ? takeNext(isOpen) : nil
        if next == nil { rest(connection, isOpen, at: now) }
        if next?.first?.isLookUp == true { lookUpsBegan = now }
        // If requests still wait and no connection is being woken, wake another one.
        let isShort = !waiting.isEmpty && waking == 0
        return (next, isShort ? takeIdle(at: now) : nil)
    }

    /// Takes an idle connection whose thread is then woken.
    private mutating func takeIdle(at now: ContinuousClock.Instant) -> Connection? {
        guard let last = idle.last, last.isOpen || mayOpen(at: now) else { return nil }
        idle.removeLast()
        use.busy += 1
        waking += 1
        return last.connection
    }

    /// Whether a request may try to open another connection now. During an outage, one request tries at a time.
    private mutating func mayOpen(at now: ContinuousClock.Instant) -> Bool {
        guard let outage else { return true }
        guard let nextAttempt = outage.nextAttempt, now >= nextAttempt else { return false }
        self.outage?.nextAttempt = nil
        return true
    }

    /// Takes the request that has waited longest. If it is a look-up, takes the look-ups right behind it too, unless the
    /// connection has to open first.
    private mutating func takeNext(_ isOpen: Bool) -> [Request]? {
        var taken: [Request] = []
        while taken.count < (isOpen ? Self.maximumTogether : 1), let head = waiting.head {
            if !head.isOver {
                guard taken.isEmpty || (taken[0].isLookUp && head.isLookUp) else { break }
                taken.append(head)
            }
            _ = waiting.removeFirst()
        }
        use.waiting = waiting.count
        return taken.isEmpty ? nil : taken
    }

    private mutating func rest(_ connection: Connection, _ isOpen: Bool, at now: ContinuousClock.Instant) {
        use.busy -= 1
        let resting = Idle(connection: connection, isOpen: isOpen)
        if isOpen {
            idle.append(resting)
        } else {
            idle.insert(resting, at: 0)
            // The connection may not have tried to open: its request had ended, or another connection took it. Let another
            // request try.
            if let outage { self.outage?.nextAttempt = outage.nextAttempt ?? now }
        }
    }

    // MARK: The server

    /// Records that a connection's server process changed; nil: the connection is closed.
    mutating func changed(from before: Int32?, to process: Int32?) {
        guard process != before else { return }
        if let before { use.processes.remove(before) }
        guard let process else { return }
        use.processes.insert(process)
        outage = nil
    }

    /// Records a failed attempt to connect. If another connection is open, the requests of the attempt are submitted
    /// again. Otherwise they and all waiting requests are refused, because each of them would repeat the attempt.
    mutating func failedToConnect(
        _ error: StoreError, _ requests: [Request], at now: ContinuousClock.Instant
    ) -> [(Admission, Request)] {
        use.failedConnects &+= 1
        let pause = min((outage?.pause ?? Self.pauses.lowerBound / 2) * 2, Self.pauses.upperBound)
        outage = Outage(error: error, nextAttempt: now + pause, pause: pause)
        guard use.processes.isEmpty else { return requests.map { (submit($0, at: now), $0) } }
        return (requests + takeAll()).map { (.refused(error), $0) }
    }
}

/// The current use of a pool, and its counters.
struct PoolUse: Sendable {
    var busy = 0
    var waiting = 0
    /// Calls that had to wait since the start, because all connections were busy.
    var waits: UInt64 = 0
    /// Calls that were refused since the start, because too many waited.
    var refused: UInt64 = 0
    /// Failed attempts to connect since the start.
    var failedConnects: UInt64 = 0
    /// The server processes of the open connections.
    var processes: Set<Int32> = []
}
