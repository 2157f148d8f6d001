import AuthContract
import AuthService
import Testing

@testable import RedisStores

/// A model of several nodes, a Redis that loses its data, and PostgreSQL. Nodes of the previous version come and go.
/// Every clock differs from the true time.
///
/// `Checks/models/SecondClaims.pml` visits every order of a few steps. This test visits long random orders with the
/// real intervals.
struct SecondClaimModelTests {
    /// PostgreSQL's row `claim_keeper`, as in `Schema.secondClaims`.
    private struct Row {
        var id = 0
        var (mark, settlesAt) = (Int64(0), Int64(0))
    }

    private struct Redis {
        var epoch = Epoch(id: "0", losses: [])
        /// The id of the history. `isCurrent` is false from a loss of Redis's data until the next epoch begins.
        var (history, isCurrent) = (0, true)
        var losses: [Int64] = []
        var claims: Set<Int> = []
        /// The latest recorded reading of the Redis server's clock.
        var reading = Int64(0)
    }

    private struct Node {
        var isOlder: Bool
        let error: Int64
        var id = -1
        var reading = Int64(0)
        var asked = Int64(-100)
        /// The new id that this node wrote to PostgreSQL, until `goOn` has finished its two steps. The first step begins the
        /// epoch with this id. The second step gives the epoch its `UnclaimedEnd`, which shortens the refused interval. If
        /// `end` is nil, the second step changes nothing.
        var named: (id: Int, end: Int64?)?
        var began: String?
        /// The request that Redis accepted, before PostgreSQL is asked.
        var waiting: Int?
    }

    private struct Model {
        var numbers: SeededNumbers
        var time = Int64(1_000_000)
        var row = Row()
        var redis = Redis()
        var second: Set<Int> = []
        var nodes: [Node]
        var requests: [Int64] = []
        var accepted: Set<Int> = []
        var (shortened, replays, epochs) = (0, 0, 0)
        /// The difference of PostgreSQL's clock from the true time.
        var error = Int64(0)

        init(seed: UInt64) {
            numbers = SeededNumbers(seed: seed)
            nodes = []
            for number in 0..<4 {
                nodes.append(
                    Node(isOlder: number == 3 && seed % 2 == 0, error: .random(in: -25...25, using: &numbers)))
            }
            redis.reading = time
            row.mark = time
        }

        var clock: Int64 { time + error }

        mutating func read(_ index: Int) {
            if nodes[index].isOlder {
                row.settlesAt = max(row.settlesAt, clock + SecondClaim.settling + 10)
            } else {
                row.mark = max(row.mark, clock)
            }
            (nodes[index].id, nodes[index].reading, nodes[index].asked) = (row.id, min(row.mark, clock), time)
        }

        private func mayUse(_ node: Node) -> Bool { time < node.asked + ClaimHistory.lease }

        /// Lets a node find that a new epoch (a period without lost claims) must begin in Redis.
        mutating func find(_ index: Int) {
            let node = nodes[index]
            guard mayUse(node), node.id == row.id, node.named == nil,
                !redis.isCurrent || redis.history != node.id
            else { return }
            if node.isOlder {
                if redis.history != node.id {
                    row.id += 1
                    row.settlesAt = max(row.settlesAt, clock + SecondClaim.settling + 10)
                    read(index)
                }
                return begin(index, row.id)
            }
            row.mark = max(row.mark, clock)
            row.id += 1
            let end = clock >= row.settlesAt ? SecondClaim.unclaimedEnd(mark: row.mark) : nil
            nodes[index].named = (row.id, end)
            (nodes[index].id, nodes[index].reading, nodes[index].asked) = (row.id, row.mark, time)
        }

        private mutating func begin(_ index: Int, _ history: Int) {
            epochs += 1
            // The new losses are around the server's clock, the node's clock, and the last reading before the loss. Earlier losses
            // follow.
            redis.losses = [time, time + nodes[index].error, redis.reading] + redis.losses.prefix(20)
            (redis.history, redis.isCurrent, redis.reading) = (history, true, time)
            redis.epoch = epoch(nil)
        }

        private func epoch(_ end: Int64?) -> Epoch {
            let text = end.flatMap { Epoch.UnclaimedEnd("\(epochs) 3 \($0)", of: "\(epochs)") }
            return Epoch(id: "\(epochs)", losses: redis.losses.map { $0...$0 }, unclaimedEnd: text)
        }

        /// Performs the next step of a node that must begin an epoch. In the first step, its script begins the epoch in
        /// Redis. In the second step, the epoch gets its unclaimed end (the latest date of a lost claim that PostgreSQL may
        /// lack), if PostgreSQL still has the node's id.
        mutating func goOn(_ index: Int) {
            guard let named = nodes[index].named else { return }
            guard let began = nodes[index].began else {
                begin(index, named.id)
                nodes[index].began = redis.epoch.id
                return
            }
            (nodes[index].named, nodes[index].began) = (nil, nil)
            guard row.id == named.id, redis.epoch.id == began, let end = named.end else { return }
            redis.epoch = epoch(end)
            shortened += 1
        }

        mutating func lose() {
            redis.isCurrent = false
            if Bool.random(using: &numbers) { redis.claims = [] }
            if Int.random(in: 0..<3, using: &numbers) == 0 { (redis.history, redis.losses) = (-1, []) }
        }

        mutating func send(_ number: Int, to index: Int) {
            let node = nodes[index]
            let (date, now) = (requests[number], time + node.error)
            guard mayUse(node), node.waiting == nil, (now - 600...now + 300).contains(date), redis.isCurrent,
                redis.history == node.id
            else { return }
            redis.reading = max(redis.reading, time)
            // A node of the previous version does not know `UnclaimedEnd`: it uses the epoch as one without an end.
            let known = node.isOlder ? epoch(nil) : redis.epoch
            guard known.history.retryAfter(timestamp: UnixTime(date), futureWindow: 300) == nil else { return }
            guard redis.claims.insert(number).inserted else { return }
            if !node.isOlder,
                known.lookedUp.contains(UnixTime(date))
                    || SecondClaim.isNeeded(timestamp: UnixTime(date), reading: UnixTime(node.reading))
            {
                nodes[index].waiting = number
            } else {
                accept(number)
            }
        }

        mutating func ask(_ index: Int) {
            guard let number = nodes[index].waiting else { return }
            nodes[index].waiting = nil
            if second.insert(number).inserted { accept(number) }
        }

        private mutating func accept(_ number: Int) {
            #expect(accepted.insert(number).inserted, "accepted twice: \(requests[number] - time) s from now")
        }
    }

    @Test(arguments: 1...60 as ClosedRange<UInt64>)
    func `no request is accepted twice, whatever Redis loses and whichever versions run`(_ seed: UInt64) {
        var model = Model(seed: seed)
        for _ in 0..<6000 {
            let index = Int.random(in: 0..<4, using: &model.numbers)
            switch Int.random(in: 0..<1000, using: &model.numbers) {
            case ..<300: model.read(index)
            case ..<400: model.find(index)
            case ..<500: model.goOn(index)
            case ..<650:
                let ahead = Int64.random(
                    in: -10...(Bool.random(using: &model.numbers) ? 4 : 330), using: &model.numbers)
                model.requests.append(model.time + ahead)
                model.send(model.requests.count - 1, to: index)
            case ..<800:
                let latest = model.requests.indices.suffix(80)
                guard let number = latest.randomElement(using: &model.numbers) else { break }
                if model.accepted.contains(number) { model.replays += 1 }
                model.send(number, to: index)
            case ..<900: model.ask(index)
            case ..<975: model.time += .random(in: 0...2, using: &model.numbers)
            case ..<978: model.lose()
            case ..<981: model.error = .random(in: -20...20, using: &model.numbers)
            case ..<985: model.time += .random(in: 1...800, using: &model.numbers)
            case ..<988 where seed % 2 == 0:
                // A process of the other version replaces the node.
                model.nodes[3] = Node(isOlder: !model.nodes[3].isOlder, error: model.nodes[3].error)
            default: break
            }
        }
        #expect(model.accepted.count > 20 && model.replays > 20 && model.epochs > 3, "\(model.accepted.count)")
        if seed % 2 == 1 { #expect(model.shortened > 0) }
    }
}
