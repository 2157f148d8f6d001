import AuthService
import Bytes
import TestHelpers
import Testing

@testable import PostgreSQLStores

private final class FakeRequest: PooledRequest {
    let number: Int
    let isLookUp: Bool
    private let over = Locked(false)

    init(_ number: Int, isLookUp: Bool = false) { (self.number, self.isLookUp) = (number, isLookUp) }

    var isOver: Bool { over.withLock { $0 } }
    func end() { over.withLock { $0 = true } }
}

private typealias FakePool = PoolState<Int, FakeRequest>

@Suite("The state of a pool")
struct PoolStateTests {
    private static let now = ContinuousClock.now
    private static let outage = StoreError(.unavailable, "no server")

    private static func text(_ admission: FakePool.Admission) -> String {
        switch admission {
        case .wakes(let connection): "wakes \(connection)"
        case .waits: "waits"
        case .refused(let error): "refused: \(error.reason)"
        }
    }

    /// A pool whose connections are open and idle.
    private static func open(_ count: Int, maximumWaiting: Int = 200) -> FakePool {
        var pool = FakePool(Array(0..<count), maximumWaiting: maximumWaiting)
        for number in 0..<count { _ = pool.submit(FakeRequest(number), at: now) }
        for connection in 0..<count {
            _ = pool.woken(connection, isOpen: false, at: now)
            pool.changed(from: nil, to: Int32(connection))
        }
        for connection in (0..<count).reversed() {
            _ = pool.released(connection, isOpen: true, at: now)
        }
        return pool
    }

    private static func numbers(_ requests: [FakeRequest]?) -> [Int]? { requests?.map(\.number) }

    @Test func `an idle connection is woken, and without one requests wait in order up to the bound`() {
        var pool = Self.open(1, maximumWaiting: 2)
        #expect(Self.text(pool.submit(FakeRequest(1), at: Self.now)) == "wakes 0")
        #expect(Self.numbers(pool.woken(0, isOpen: true, at: Self.now).next) == [1])
        for number in 2...3 { #expect(Self.text(pool.submit(FakeRequest(number), at: Self.now)) == "waits") }
        #expect(Self.text(pool.submit(FakeRequest(4), at: Self.now)).hasPrefix("refused: 2 calls wait"))
        #expect(pool.use.waits == 2 && pool.use.refused == 1 && pool.use.waiting == 2 && pool.use.busy == 1)
        #expect(Self.numbers(pool.released(0, isOpen: true, at: Self.now).next) == [2])
        #expect(Self.numbers(pool.released(0, isOpen: true, at: Self.now).next) == [3])
        #expect(pool.released(0, isOpen: true, at: Self.now).next == nil)
        #expect(pool.use.busy == 0 && pool.use.waiting == 0)
    }

    @Test func `look-ups that wait are taken together, but do not pass other requests`() {
        var pool = Self.open(1)
        _ = pool.submit(FakeRequest(0, isLookUp: true), at: Self.now)
        let kinds = [true, true, false, false] + Array(repeating: true, count: 66)
        for (number, isLookUp) in kinds.enumerated() {
            #expect(Self.text(pool.submit(FakeRequest(number + 1, isLookUp: isLookUp), at: Self.now)) == "waits")
        }
        #expect(Self.numbers(pool.woken(0, isOpen: true, at: Self.now).next) == [0, 1, 2])
        #expect(Self.numbers(pool.released(0, isOpen: true, at: Self.now).next) == [3])
        #expect(Self.numbers(pool.released(0, isOpen: true, at: Self.now).next) == [4])
        #expect(Self.numbers(pool.released(0, isOpen: true, at: Self.now).next) == Array(5...68))
        // A connection that is not open takes only one request, and opens before it runs the request.
        #expect(Self.numbers(pool.released(0, isOpen: false, at: Self.now).next) == [69])
    }

    @Test func `a look-up joins a connection that is being woken, and another kind of request wakes its own`() {
        var pool = Self.open(3)
        #expect(Self.text(pool.submit(FakeRequest(0, isLookUp: true), at: Self.now)) == "wakes 0")
        #expect(Self.text(pool.submit(FakeRequest(1, isLookUp: true), at: Self.now)) == "waits")
        #expect(Self.text(pool.submit(FakeRequest(2), at: Self.now)) == "wakes 1")
        #expect(pool.use.waits == 0)
        let first = pool.woken(0, isOpen: true, at: Self.now)
        #expect(Self.numbers(first.next) == [0, 1] && first.another == nil)
        #expect(Self.numbers(pool.woken(1, isOpen: true, at: Self.now).next) == [2])
    }

    @Test func `look-ups wait for others that are under way, but no longer than the gather time`() {
        var (pool, now) = (Self.open(3), Self.now)
        func lookUp(_ number: Int) -> String {
            Self.text(pool.submit(FakeRequest(number, isLookUp: true), at: now))
        }
        #expect(lookUp(0) == "wakes 0")
        #expect(Self.numbers(pool.woken(0, isOpen: true, at: now).next) == [0])
        #expect(lookUp(1) == "waits" && lookUp(2) == "waits")
        now += FakePool.gatherTime - .nanoseconds(1)
        let second = pool.released(0, isOpen: true, at: now)
        #expect(Self.numbers(second.next) == [1, 2] && second.another == nil)
        // The gather time (how long new look-ups wait to share the next round trip) now counts from the beginning of the second round trip.
        now += FakePool.gatherTime - .nanoseconds(1)
        #expect(lookUp(3) == "waits")
        now += .nanoseconds(1)
        #expect(lookUp(4) == "wakes 1")
        #expect(Self.numbers(pool.woken(1, isOpen: true, at: now).next) == [3, 4])
        // If no look-up is running, a new one does not wait.
        for connection in [1, 0] { #expect(pool.released(connection, isOpen: true, at: now).next == nil) }
        #expect(lookUp(5) == "wakes 0")
        #expect(pool.use.waits == 0)
    }

    @Test func `another kind of request does not wait behind look-ups that wait for others`() {
        var pool = Self.open(3)
        for number in 0..<2 {
            _ = pool.submit(FakeRequest(number, isLookUp: true), at: Self.now)
            if number == 0 { _ = pool.woken(0, isOpen: true, at: Self.now) }
        }
        #expect(Self.text(pool.submit(FakeRequest(2), at: Self.now)) == "wakes 1")
        let (next, another) = pool.woken(1, isOpen: true, at: Self.now)
        #expect(Self.numbers(next) == [1] && another == 2)
        #expect(Self.numbers(pool.woken(2, isOpen: true, at: Self.now).next) == [2])
    }

    @Test func `a connection that closes during an outage leaves waiting look-ups to an idle one`() {
        var pool = Self.open(3)
        _ = pool.submit(FakeRequest(0, isLookUp: true), at: Self.now)
        _ = pool.woken(0, isOpen: true, at: Self.now)
        #expect(Self.text(pool.submit(FakeRequest(1, isLookUp: true), at: Self.now)) == "waits")
        for connection: Int32 in [0, 2] { pool.changed(from: connection, to: nil) }
        _ = pool.failedToConnect(Self.outage, [], at: Self.now)
        let (next, another) = pool.released(0, isOpen: false, at: Self.now)
        #expect(next == nil && another == 1)
        #expect(Self.numbers(pool.woken(1, isOpen: true, at: Self.now).next) == [1])
    }

    @Test func `a woken connection wakes another one if requests still wait`() {
        var pool = FakePool([0, 1], maximumWaiting: 10)
        for number in 0..<3 { _ = pool.submit(FakeRequest(number, isLookUp: true), at: Self.now) }
        let (next, another) = pool.woken(0, isOpen: false, at: Self.now)
        #expect(Self.numbers(next) == [0] && another == 1)
    }

    @Test func `requests that are over are dropped`() {
        var pool = Self.open(1)
        let requests = (0..<4).map { FakeRequest($0) }
        for request in requests { _ = pool.submit(request, at: Self.now) }
        for request in requests where request.number != 2 { request.end() }
        #expect(Self.numbers(pool.woken(0, isOpen: true, at: Self.now).next) == [2])
        #expect(pool.released(0, isOpen: true, at: Self.now).next == nil)
    }

    @Test
    func
        `during an outage requests are refused, and one of them tries again after a pause that doubles up to a second`()
        throws
    {
        var (pool, now) = (FakePool([0, 1], maximumWaiting: 10), Self.now)
        /// Submits a request that must wake a connection, and lets that connection take it.
        func attempt() throws -> (connection: Int, next: [FakeRequest]) {
            guard case .wakes(let connection) = pool.submit(FakeRequest(1), at: now) else {
                throw StoreError(.unavailable, "no connection was woken")
            }
            return (connection, pool.woken(connection, isOpen: false, at: now).next ?? [])
        }
        for pause in [50, 100, 200, 400, 800, 1000, 1000] {
            let (connection, next) = try attempt()
            let refused = pool.failedToConnect(Self.outage, next, at: now)
            #expect(refused.map { Self.text($0.0) } == ["refused: no server"])
            #expect(pool.released(connection, isOpen: false, at: now).next == nil)
            now += .milliseconds(pause - 1)
            #expect(Self.text(pool.submit(FakeRequest(2), at: now)) == "refused: no server")
            now += .milliseconds(1)
        }
        // While one request tries to connect, others are refused.
        _ = try attempt()
        #expect(Self.text(pool.submit(FakeRequest(4), at: now)) == "refused: no server")
        pool.changed(from: nil, to: 7)
        #expect(Self.text(pool.submit(FakeRequest(5), at: now)).hasPrefix("wakes"))
        #expect(pool.use.processes == [7] && pool.use.failedConnects == 7)
    }

    @Test func `a request whose connection cannot open waits for those that are open`() {
        var pool = FakePool([0, 1], maximumWaiting: 10)
        _ = pool.submit(FakeRequest(0), at: Self.now)
        _ = pool.woken(0, isOpen: false, at: Self.now)
        pool.changed(from: nil, to: 7)
        _ = pool.submit(FakeRequest(1), at: Self.now)
        let next = pool.woken(1, isOpen: false, at: Self.now).next ?? []
        let admissions = pool.failedToConnect(Self.outage, next, at: Self.now)
        #expect(admissions.map { Self.text($0.0) } == ["waits"])
        #expect(pool.released(1, isOpen: false, at: Self.now).next == nil)
        #expect(Self.numbers(pool.released(0, isOpen: true, at: Self.now).next) == [1])
    }

    @Test func `the last open connection that closes leaves no request waiting`() {
        var pool = FakePool([0, 1], maximumWaiting: 10)
        _ = pool.submit(FakeRequest(0), at: Self.now)
        _ = pool.woken(0, isOpen: false, at: Self.now)
        pool.changed(from: nil, to: 7)
        _ = pool.submit(FakeRequest(1), at: Self.now)
        let failed = pool.woken(1, isOpen: false, at: Self.now).next ?? []
        _ = pool.failedToConnect(Self.outage, failed, at: Self.now)
        _ = pool.released(1, isOpen: false, at: Self.now)
        _ = pool.submit(FakeRequest(2), at: Self.now)
        // The server closes connection 0. No other connection is open, so connection 0 takes request 1 and tries to open again.
        pool.changed(from: 7, to: nil)
        let next = pool.released(0, isOpen: false, at: Self.now).next ?? []
        #expect(Self.numbers(next) == [1])
        let refused = pool.failedToConnect(Self.outage, next, at: Self.now)
        #expect(refused.map { $0.1.number } == [1, 2])
        #expect(refused.allSatisfy { Self.text($0.0) == "refused: no server" } && pool.use.waiting == 0)
        #expect(pool.released(0, isOpen: false, at: Self.now).next == nil)
    }

    @Test func `a closed pool gives back what waits, and refuses requests`() {
        var pool = Self.open(1)
        for number in 0..<3 { _ = pool.submit(FakeRequest(number), at: Self.now) }
        _ = pool.woken(0, isOpen: true, at: Self.now)
        let (refused, error) = pool.close()
        #expect(Self.numbers(refused) == [1, 2] && error.reason == "the stores are closed")
        #expect(Self.text(pool.submit(FakeRequest(4), at: Self.now)) == "refused: the stores are closed")
        #expect(pool.released(0, isOpen: true, at: Self.now).next == nil && pool.use.waiting == 0)
    }

    // MARK: Any order of events

    /// The threads of a pool, executed step by step.
    private struct Threads {
        static let size = 3
        static let maximumWaiting = 6

        var random: SeededNumbers
        var pool = FakePool(Array(0..<size), maximumWaiting: maximumWaiting)
        var now = PoolStateTests.now
        /// The connections whose threads were woken.
        var woken: [Int] = []
        /// The requests that a connection runs.
        var running: [Int: [FakeRequest]] = [:]
        /// The server process of each open connection.
        var processes: [Int: Int32] = [:]
        var hasServer = true
        var serial: Int32 = 0
        var requests: [FakeRequest] = []
        /// How often each request was answered or refused.
        var ends: [Int: Int] = [:]

        mutating func carryOut(_ admission: FakePool.Admission, _ request: FakeRequest) {
            switch admission {
            case .wakes(let connection): wake(connection)
            case .waits: break
            case .refused:
                // The caller may have given up already. Then the refusal is not counted.
                if !request.isOver { end(request) }
            }
        }

        mutating func wake(_ connection: Int) {
            #expect(!woken.contains(connection) && running[connection] == nil, "a busy connection was given out")
            woken.append(connection)
        }

        mutating func end(_ request: FakeRequest) { ends[request.number, default: 0] += 1 }

        mutating func submit() {
            let request = FakeRequest(requests.count, isLookUp: random.oneIn(2))
            requests.append(request)
            carryOut(pool.submit(request, at: now), request)
        }

        mutating func begin() {
            guard let connection = woken.randomElement(using: &random) else { return }
            woken.removeAll { $0 == connection }
            let (next, another) = pool.woken(connection, isOpen: processes[connection] != nil, at: now)
            take(next, connection)
            if let another { wake(another) }
        }

        private mutating func take(_ next: [FakeRequest]?, _ connection: Int) {
            running[connection] = next
            guard let next else { return }
            #expect(!next.isEmpty && next.count <= (processes[connection] == nil ? 1 : FakePool.maximumTogether))
            #expect(next.count == 1 || next.allSatisfy { $0.isLookUp })
        }

        /// Runs the requests of a random connection, which opens first if needed. Opening fails without a server. The server may
        /// close the connection afterwards.
        mutating func run() {
            guard let (connection, requests) = running.randomElement(using: &random) else { return }
            let live = requests.filter { !$0.isOver }
            if live.isEmpty {
                // No caller waits any more, so the connection does not try to open.
            } else if processes[connection] == nil, !hasServer {
                let error = StoreError(.unavailable, "no server")
                for (admission, request) in pool.failedToConnect(error, live, at: now) { carryOut(admission, request) }
            } else {
                if processes[connection] == nil {
                    serial += 1
                    processes[connection] = serial
                    pool.changed(from: nil, to: serial)
                }
                for request in live { end(request) }
                if !hasServer || random.oneIn(20) {
                    pool.changed(from: processes.removeValue(forKey: connection), to: nil)
                }
            }
            running[connection] = nil
            let (next, another) = pool.released(connection, isOpen: processes[connection] != nil, at: now)
            take(next, connection)
            if let another { wake(another) }
        }

        mutating func check() {
            #expect(pool.use.busy == woken.count + running.count)
            #expect(pool.use.waiting <= Self.maximumWaiting + Self.size, "too many requests wait")
            #expect(pool.use.waiting == 0 || pool.use.busy > 0, "requests wait, and no connection will take them")
            #expect(pool.use.processes == Set(processes.values))
            #expect(ends.values.allSatisfy { $0 == 1 }, "a request was answered twice")
        }
    }

    @Test(arguments: 0..<60)
    func `in every order of events each request is answered or refused once, and none waits for nothing`(_ seed: UInt64)
    {
        var threads = Threads(random: SeededNumbers(seed: seed))
        for _ in 0..<2000 {
            switch Int.random(in: 0..<12, using: &threads.random) {
            case 0..<4: threads.submit()
            case 4..<7: threads.begin()
            case 7..<10: threads.run()
            case 10:
                let unit: Duration = threads.random.oneIn(2) ? .milliseconds(100) : .milliseconds(1)
                threads.now += unit * Int.random(in: 0...4, using: &threads.random)
                if threads.random.oneIn(4) { threads.hasServer.toggle() }
            default:
                // A caller leaves.
                if let request = threads.requests.randomElement(using: &threads.random),
                    threads.ends[request.number] == nil, !request.isOver
                {
                    request.end()
                    threads.end(request)
                }
            }
            threads.check()
        }
        for _ in 0..<1000 {
            threads.begin()
            threads.run()
            threads.check()
        }
        #expect(threads.pool.use.busy == 0)
        #expect(threads.ends.count == threads.requests.count, "a request got no answer")
    }
}
