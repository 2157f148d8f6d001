import AuthService
import NIOCore
import RESP
import Testing

@testable import RedisStores

@Suite("The state of a connection")
struct PipelineTests {
    private static let now = NIODeadline.uptimeNanoseconds(1_000_000_000)
    private static let ping = RESPCommand("PING")

    private static func sent(_ sending: Pipeline<Int>.Sending) -> (number: UInt64, mustWrite: Bool)? {
        if case .sent(let number, let mustWrite) = sending { (number, mustWrite) } else { nil }
    }

    @Test func `commands that are sent before a write go out in one write`() throws {
        var pipeline = Pipeline<Int>(maximum: 10)
        let commands = [RESPCommand("GET", "a"), RESPCommand("GET", "b"), RESPCommand("GET", "c")]
        let first = pipeline.send([commands[0]], asking: false, isBounded: true, deadline: Self.now, 1)
        let second = pipeline.send(Array(commands[1...]), asking: true, isBounded: true, deadline: Self.now, 2)
        #expect(Self.sent(first)?.mustWrite == true && Self.sent(second)?.mustWrite == false)
        let written = pipeline.write()
        let expected = [commands[0], RESPCommand("ASKING"), commands[1], commands[2]].map {
            Array($0.buffer.readableBytesView)
        }
        #expect(Array(written.bytes.readableBytesView) == expected.flatMap { $0 })
        #expect(written.mustSetTimer)
        #expect(pipeline.write().bytes.readableBytes == 0)
        let third = pipeline.send([Self.ping], asking: false, isBounded: true, deadline: Self.now, 3)
        #expect(Self.sent(third)?.mustWrite == true)
        #expect(!pipeline.write().mustSetTimer)
    }

    @Test func `the bound is that of commands, ASKING among them, and a check may exceed it`() {
        func commands(_ maximum: Int, asking: Bool, isBounded: Bool) -> Int {
            var pipeline = Pipeline<Int>(maximum: maximum)
            let sending = pipeline.send(
                [Self.ping, Self.ping], asking: asking, isBounded: isBounded, deadline: Self.now, 1)
            return Self.sent(sending) == nil ? 0 : pipeline.commands
        }
        #expect(commands(2, asking: false, isBounded: true) == 2)
        #expect(commands(2, asking: true, isBounded: true) == 0)
        #expect(commands(3, asking: true, isBounded: true) == 3)
        #expect(commands(1, asking: false, isBounded: true) == 0)
        #expect(commands(1, asking: false, isBounded: false) == 2)
    }

    @Test func `the timer follows the oldest call, and stops when none is left`() {
        var pipeline = Pipeline<Int>(maximum: 10)
        let (early, late) = (Self.now + .seconds(2), Self.now + .seconds(3))
        _ = pipeline.send([Self.ping], asking: false, isBounded: true, deadline: early, 1)
        #expect(pipeline.write().mustSetTimer)
        _ = pipeline.send([Self.ping], asking: false, isBounded: true, deadline: late, 2)
        #expect(!pipeline.write().mustSetTimer)
        #expect(pipeline.timerFired(at: Self.now) == .set(early))
        _ = pipeline.received([.simple("PONG")])
        #expect(pipeline.timerFired(at: early) == .set(late))
        #expect(pipeline.timerFired(at: late) == .overdue)
        _ = pipeline.received([.simple("PONG")])
        #expect(pipeline.timerFired(at: late) == .unset)
        _ = pipeline.send([Self.ping], asking: false, isBounded: true, deadline: late, 3)
        #expect(pipeline.write().mustSetTimer)
        _ = pipeline.close(because: StoreError(.unavailable, "done"))
        #expect(pipeline.timerFired(at: late) == .unset)
    }

    @Test func `a reply to no command is an error, and data that is sent unasked is not`() {
        var pipeline = Pipeline<Int>(maximum: 10)
        _ = pipeline.send([Self.ping], asking: false, isBounded: true, deadline: Self.now, 1)
        #expect(pipeline.received([.push([.null])]).answers.isEmpty)
        let (answers, failure) = pipeline.received([.push([]), .integer(1), .push([]), .integer(2)])
        #expect(answers.map(\.last) == [.integer(1)])
        #expect(failure?.code == .unreadable)
    }

    @Test func `a closed pipeline returns its waiters once, and refuses calls with its error`() {
        var pipeline = Pipeline<Int>(maximum: 10)
        for waiter in 1...3 {
            _ = pipeline.send([Self.ping], asking: waiter == 2, isBounded: true, deadline: Self.now, waiter)
        }
        #expect(pipeline.close(because: StoreError(.tooSlow, "first")) == [1, 2, 3])
        #expect(pipeline.close(because: StoreError(.unavailable, "second")) == nil)
        #expect(pipeline.closed?.reason == "first")
        guard
            case .refused(let error) = pipeline.send(
                [Self.ping], asking: false, isBounded: false, deadline: Self.now, 4)
        else { return #expect(Bool(false), "a closed pipeline took a call") }
        #expect(error.reason == "first")
    }

    /// The expected result of a waiter.
    private struct Expected { let replies: Int; var isCancelled = false; var isOver = false }

    @Test(arguments: 0..<40)
    func `in every sequence of events each waiter gets its own replies, exactly once`(_ seed: UInt64) {
        var random = SeededNumbers(seed: seed)
        let maximum = Int.random(in: 1...3000, using: &random)
        var pipeline = Pipeline<Int>(maximum: maximum)
        // The server's side: for each command in flight the waiter and the position, or nil for `ASKING`.
        var wire: [(waiter: Int, position: Int)?] = []
        var expected: [Int: Expected] = [:]
        var numbers: [(number: UInt64, waiter: Int)] = []
        var (waiter, deadline, isClosed) = (0, Self.now, false)

        func end(_ waiter: Int) {
            #expect(expected[waiter]?.isOver == false, "waiter \(waiter) was resumed twice")
            expected[waiter]?.isOver = true
        }
        func reply(_ command: (waiter: Int, position: Int)?) -> RESPValue {
            command.map { .integer(Int64($0.waiter * 8 + $0.position)) } ?? .simple("OK")
        }

        for _ in 0..<3000 where !isClosed {
            switch Int.random(in: 0..<12, using: &random) {
            case 0..<5:
                waiter += 1
                deadline = deadline + .nanoseconds(Int64.random(in: 0...5, using: &random))
                let (count, asking) = (Int.random(in: 1...4, using: &random), random.oneIn(5))
                let isBounded = !random.oneIn(10)
                let total = count + (asking ? 1 : 0)
                let sending = pipeline.send(
                    Array(repeating: Self.ping, count: count), asking: asking, isBounded: isBounded,
                    deadline: deadline, waiter)
                guard let (number, _) = Self.sent(sending) else {
                    #expect(isBounded && wire.count + total > maximum, "a call was refused below the bound")
                    continue
                }
                #expect(!isBounded || wire.count + total <= maximum, "the bound was exceeded")
                if asking { wire.append(nil) }
                for position in 0..<count { wire.append((waiter, position)) }
                expected[waiter] = Expected(replies: count)
                numbers.append((number, waiter))
            case 5: _ = pipeline.write()
            case 6..<10:
                var replies: [RESPValue] = []
                var complete: [Int] = []
                for _ in 0..<Int.random(in: 0...12, using: &random) where !wire.isEmpty {
                    if random.oneIn(6) { replies.append(.push([.null])) }
                    let command = wire.removeFirst()
                    replies.append(reply(command))
                    if let (waiter, position) = command, let call = expected[waiter], position == call.replies - 1,
                        !call.isCancelled
                    {
                        complete.append(waiter)
                    }
                }
                let (answers, failure) = pipeline.received(replies)
                #expect(failure == nil)
                #expect(answers.map(\.waiter) == complete)
                for answer in answers {
                    end(answer.waiter)
                    let count = expected[answer.waiter]?.replies ?? 0
                    #expect(answer.earlier + [answer.last] == (0..<count).map { reply((answer.waiter, $0)) })
                }
            case 10:
                // The number may be that of a call that has ended, or of no call.
                let (number, waiter) = numbers.randomElement(using: &random) ?? (77, 0)
                let cancelled = pipeline.cancel(number)
                let isInFlight = expected[waiter].map { !$0.isOver } ?? false
                #expect(cancelled == (isInFlight ? waiter : nil))
                if let cancelled {
                    end(cancelled)
                    expected[cancelled]?.isCancelled = true
                }
            default:
                guard random.oneIn(100) else { continue }
                isClosed = true
            }
            #expect(pipeline.commands == wire.count)
        }
        let left = pipeline.close(because: StoreError(.unavailable, "done")) ?? []
        #expect(left == left.sorted())
        for waiter in left { end(waiter) }
        #expect(expected.values.allSatisfy { $0.isOver }, "a waiter got no answer")
        #expect(pipeline.commands == 0 && pipeline.cancel(1) == nil)
    }
}

@Suite("The login's steps")
struct HandshakeTests {
    /// The commands of a login with these replies, and its result.
    private static func run(
        _ login: RedisURL.Login, database: Int = 0, _ replies: [[RESPValue]]
    ) -> (sent: [[String]], failure: String?) {
        var settings = ConnectionSettings()
        (settings.login, settings.database) = (login, database)
        var handshake = Handshake(settings)
        var (sent, next, failure) = ([[String]](), Optional(handshake.greeting), String?.none)
        for reply in replies {
            guard let commands = next else { return (sent, "went on after its end") }
            sent += commands.map(words)
            do throws(StoreError) { next = try handshake.replied(reply) } catch {
                return (sent, error.reason)
            }
        }
        if let commands = next { (sent, failure) = (sent + commands.map(words), "is not done") }
        return (sent, failure)
    }

    private static func words(_ command: RESPCommand) -> [String] {
        var (decoder, buffer) = (RESPDecoder(), command.buffer)
        return (try? decoder.next(&buffer))?.elements?.map { $0.text ?? "" } ?? []
    }

    private static let name = ["CLIENT", "SETNAME", "synheart-auth"]
    private static let user = RedisURL.Login(user: "u", password: "p")

    @Test func `a server that knows HELLO gets user, password and database`() {
        let (sent, failure) = Self.run(Self.user, database: 3, [[.map([])], [.simple("OK"), .simple("OK")]])
        #expect(sent == [["HELLO", "3", "AUTH", "u", "p"], Self.name, ["SELECT", "3"]] && failure == nil)
        let alone = Self.run(RedisURL.Login(), [[.map([])], [.simple("OK")]])
        #expect(alone.sent == [["HELLO", "3"], Self.name] && alone.failure == nil)
        let password = Self.run(RedisURL.Login(password: "p"), [[.map([])], [.simple("OK")]])
        #expect(password.sent.first == ["HELLO", "3", "AUTH", "default", "p"])
    }

    @Test(arguments: ["NOPROTO no", "ERR unknown command"])
    func `a server without HELLO gets AUTH if there is a password`(_ error: String) {
        let (sent, failure) = Self.run(Self.user, [[.error(error)], [.simple("OK")], [.simple("OK")]])
        #expect(sent == [["HELLO", "3", "AUTH", "u", "p"], ["AUTH", "u", "p"], Self.name] && failure == nil)
        let old = Self.run(RedisURL.Login(password: "p"), [[.error(error)], [.simple("OK")], [.simple("OK")]])
        #expect(old.sent.dropFirst().first == ["AUTH", "p"])
        let alone = Self.run(RedisURL.Login(), [[.error(error)], [.simple("OK")]])
        #expect(alone.sent == [["HELLO", "3"], Self.name] && alone.failure == nil)
    }

    @Test func `a refused password or database ends the login, a refused name does not`() {
        #expect(Self.run(Self.user, [[.error("WRONGPASS p")]]).failure == RedisError("WRONGPASS p").loginError.reason)
        #expect(
            Self.run(Self.user, [[.error("ERR p")], [.error("ERR p")]]).failure
                == RedisError("ERR p").loginError.reason)
        #expect(
            Self.run(Self.user, database: 3, [[.map([])], [.simple("OK"), .error("ERR no")]]).failure
                == "Redis refuses database 3")
        #expect(Self.run(Self.user, database: 3, [[.map([])], [.error("NOPERM"), .simple("OK")]]).failure == nil)
        #expect(Self.run(Self.user, [[.map([])], [.error("NOPERM")]]).failure == nil)
    }
}
