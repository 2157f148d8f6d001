internal import AuthService
internal import NIOCore
internal import RESP

/// The state of a `RedisConnection`: the commands to write, the calls that wait for replies, and their deadlines.
///
/// A value without I/O. Replies arrive in the order of the commands, so each belongs to the oldest call. If `send` refuses a call,
/// its waiter stays with the caller. Every other waiter is returned exactly once: by `received`, `cancel` or `close`.
struct Pipeline<Waiter: Sendable>: Sendable {
    /// All replies to a call.
    struct Answer: Sendable {
        let waiter: Waiter
        /// The replies to the commands before the last one.
        let earlier: [RESPValue]
        let last: RESPValue
    }

    enum Sending: Sendable {
        /// - Parameters:
        ///   - number: identifies the call; it is never 0.
        ///   - mustWrite: whether `write` must be called. If not, a scheduled `write` sends the commands of this call too.
        case sent(number: UInt64, mustWrite: Bool)
        case refused(StoreError)
    }

    enum Timer: Sendable, Equatable {
        case unset
        case set(NIODeadline)
        /// A reply is overdue: the connection must be closed.
        case overdue
    }

    private struct Call: Sendable {
        /// The caller that waits for the replies; nil after the caller was cancelled, and for `ASKING`.
        var waiter: Waiter?
        let deadline: NIODeadline
        /// The number of commands without a reply.
        var missing = 1
        /// The replies to the commands before the last one.
        var replies: [RESPValue] = []
    }

    private let maximum: Int
    /// The calls in flight, in the order of their commands on the wire. The first `head` elements are calls that have ended.
    private var calls: [Call] = []
    private var head = 0
    /// The number of the oldest call in flight, or of the next call if there is none.
    private var first: UInt64 = 1
    /// The number of commands without a reply.
    private(set) var commands = 0
    /// Commands that are not written yet. One write sends all of them.
    private var unwritten = ByteBuffer()
    private var isWriteScheduled = false
    private var isTimerSet = false
    private(set) var closed: StoreError?

    /// - Parameter maximum: the largest number of commands in flight.
    init(maximum: Int) { self.maximum = maximum }

    private var count: Int { calls.count - head }

    // MARK: The callers' side

    /// Adds a call.
    ///
    /// - Parameters:
    ///   - asking: whether to send `ASKING` first.
    ///   - isBounded: whether the largest number of commands applies.
    ///   - deadline: not before the deadlines of earlier calls.
    mutating func send(
        _ commands: [RESPCommand], asking: Bool, isBounded: Bool, deadline: NIODeadline, _ waiter: Waiter
    ) -> Sending {
        if let closed { return .refused(closed) }
        guard !isBounded || self.commands + commands.count + (asking ? 1 : 0) <= maximum else {
            return .refused(StoreError(.unavailable, "too many calls to Redis are in flight"))
        }
        if asking {
            unwritten.writeImmutableBuffer(askingCommand)
            add(Call(waiter: nil, deadline: deadline))
        }
        for command in commands { unwritten.writeImmutableBuffer(command.buffer) }
        add(Call(waiter: waiter, deadline: deadline, missing: commands.count))
        defer { isWriteScheduled = true }
        return .sent(number: first + UInt64(count) - 1, mustWrite: !isWriteScheduled)
    }

    private mutating func add(_ call: Call) {
        calls.append(call)
        commands += call.missing
    }

    /// Takes the waiter of a call in flight; nil: the call has ended or was cancelled before. The call's replies are still matched,
    /// and dropped.
    mutating func cancel(_ number: UInt64) -> Waiter? {
        guard number >= first, number - first < UInt64(count) else { return nil }
        let index = head + Int(number - first)
        defer { (calls[index].waiter, calls[index].replies) = (nil, []) }
        return calls[index].waiter
    }

    // MARK: The connection's side

    /// Takes the bytes to write.
    ///
    /// - Returns: the bytes, and whether a timer for the oldest call's deadline must be set.
    mutating func write() -> (bytes: ByteBuffer, mustSetTimer: Bool) {
        isWriteScheduled = false
        defer { unwritten = ByteBuffer() }
        let mustSetTimer = !isTimerSet && commands > 0
        if mustSetTimer { isTimerSet = true }
        return (unwritten, mustSetTimer)
    }

    /// Checks the oldest call's deadline when the timer has fired. Calls are sent in the order of their deadlines, so
    /// only the oldest needs a check.
    mutating func timerFired(at now: NIODeadline) -> Timer {
        guard closed == nil, head < calls.count else {
            isTimerSet = false
            return .unset
        }
        return calls[head].deadline <= now ? .overdue : .set(calls[head].deadline)
    }

    /// Assigns replies that have arrived to the calls in flight. Data that the server sends unasked is ignored, because
    /// this client has no subscriptions.
    ///
    /// - Returns: the complete calls, and the error with which the connection must be closed; nil: the connection stays
    ///   open.
    mutating func received(_ replies: [RESPValue]) -> (answers: [Answer], failure: StoreError?) {
        var answers: [Answer] = []
        for reply in replies {
            if case .push = reply { continue }
            guard head < calls.count else {
                return (answers, StoreError(.unreadable, "Redis sent a reply to no command"))
            }
            if calls[head].missing > 1 {
                calls[head].missing -= 1
                commands -= 1
                if calls[head].waiter != nil { calls[head].replies.append(reply) }
            } else if let call = takeFirst(), let waiter = call.waiter {
                answers.append(Answer(waiter: waiter, earlier: call.replies, last: reply))
            }
        }
        return (answers, nil)
    }

    /// Closes the pipeline, because the connection ends. Later calls are refused with the error.
    ///
    /// - Returns: the waiters of all calls in flight, because it is not known which commands were executed; nil: the
    ///   connection has ended already.
    mutating func close(because error: StoreError) -> [Waiter]? {
        guard closed == nil else { return nil }
        closed = error
        var waiting: [Waiter] = []
        while let call = takeFirst() { call.waiter.map { waiting.append($0) } }
        return waiting
    }

    private mutating func takeFirst() -> Call? {
        guard head < calls.count else { return nil }
        let call = calls[head]
        commands -= call.missing
        calls[head] = Call(waiter: nil, deadline: call.deadline)
        head += 1
        first += 1
        if head == calls.count {
            calls.removeAll(keepingCapacity: true)
            head = 0
        } else if head >= 1024 {
            calls.removeFirst(head)
            head = 0
        }
        return call
    }
}

private let askingCommand = RESPCommand("ASKING").buffer
