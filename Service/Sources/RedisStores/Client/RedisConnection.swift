internal import AuthService
internal import Bytes
internal import NIOCore
internal import NIOPosix
internal import NIOSSL
internal import RESP
internal import Synchronization

/// One connection to one server process. Commands are pipelined: each call sends its commands and waits for their replies, and
/// many calls can wait at once.
///
/// - An overdue reply closes the connection. All calls in flight fail, because it is not known which of them were executed.
/// - A cancelled call stops waiting. Its reply is still matched, and dropped.
/// - The number of commands in flight is bounded. A call beyond it fails at once.
final class RedisConnection: Sendable {
    private typealias Continuation<Value> = CheckedContinuation<Result<Value, StoreError>, Never>

    /// The continuation that waits for a call.
    private enum Waiter: Sendable {
        case one(Continuation<RESPValue>)
        case all(Continuation<[RESPValue]>)

        func resume(_ reply: RESPValue, after earlier: [RESPValue]) {
            switch self {
            case .one(let continuation): continuation.resume(returning: .success(reply))
            case .all(let continuation): continuation.resume(returning: .success(earlier + [reply]))
            }
        }

        func fail(_ error: StoreError) {
            switch self {
            case .one(let continuation): continuation.resume(returning: .failure(error))
            case .all(let continuation): continuation.resume(returning: .failure(error))
            }
        }
    }

    /// The number of a call; 0 until the call is sent.
    private final class Ticket: Sendable {
        let number = Atomic<UInt64>(0)
    }

    private struct State: Sendable {
        var pipeline: Pipeline<Waiter>
        var onClose: (@Sendable () -> Void)?
    }

    private let channel: any Channel
    private let state: Locked<State>
    private let deadline: TimeAmount
    private let counts: ConnectionCounts

    init(_ channel: any Channel, deadline: Duration, maximumInFlight: Int, counts: ConnectionCounts) {
        self.channel = channel
        self.counts = counts
        self.deadline = TimeAmount(deadline)
        state = Locked(State(pipeline: Pipeline(maximum: maximumInFlight)))
    }

    /// Whether the connection accepts calls.
    var isOpen: Bool { state.withLock { $0.pipeline.closed == nil } }

    /// Commands without a reply.
    var commandsInFlight: Int { state.withLock { $0.pipeline.commands } }

    /// The event loop of the connection.
    var eventLoop: any EventLoop { channel.eventLoop }

    /// Calls `body` once the connection is closed, or at once if it is closed already.
    func onClose(_ body: @escaping @Sendable () -> Void) {
        let isClosed = state.withLock { state in
            if state.pipeline.closed == nil { state.onClose = body }
            return state.pipeline.closed != nil
        }
        if isClosed { body() }
    }

    // MARK: Calls

    /// Sends a command and returns its reply. An error reply is returned too.
    ///
    /// - Parameters:
    ///   - asking: whether to send `ASKING` first, for a slot that is being imported.
    ///   - isBounded: whether the limit of commands in flight applies, as in the call of several commands.
    func call(
        _ command: RESPCommand, asking: Bool = false, isBounded: Bool = true
    ) async throws(StoreError) -> RESPValue {
        guard command.isComplete else { throw StoreError(.unavailable, "an incomplete command") }
        return try await wait { continuation in
            self.send([command], asking: asking, isBounded: isBounded, .one(continuation))
        }
    }

    /// Sends commands in one write and returns their replies in the same order. Error replies are returned too.
    ///
    /// - Parameter isBounded: whether the limit of commands in flight applies. A check of the server must not fail because
    ///   many calls are in flight.
    func call(_ commands: [RESPCommand], isBounded: Bool = true) async throws(StoreError) -> [RESPValue] {
        guard commands.allSatisfy(\.isComplete) else { throw StoreError(.unavailable, "an incomplete command") }
        guard !commands.isEmpty else { return [] }
        return try await wait { continuation in
            self.send(commands, asking: false, isBounded: isBounded, .all(continuation))
        }
    }

    /// Waits for the call that `send` starts. `send` returns the call's number; nil if the call has failed.
    private func wait<Value: Sendable>(
        _ send: @escaping (Continuation<Value>) -> UInt64?
    ) async throws(StoreError) -> Value {
        let ticket = Ticket()
        let result: Result<Value, StoreError> = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                guard let sent = send(continuation) else { return }
                ticket.number.store(sent, ordering: .sequentiallyConsistent)
                // The cancellation handler may have run before the call had a number.
                if Task.isCancelled { cancel(sent) }
            }
        } onCancel: {
            let sent = ticket.number.load(ordering: .sequentiallyConsistent)
            if sent != 0 { cancel(sent) }
        }
        return try result.get()
    }

    private func send(
        _ commands: [RESPCommand], asking: Bool, isBounded: Bool = true, _ waiter: Waiter
    ) -> UInt64? {
        let sending = state.withLock { state in
            state.pipeline.send(
                commands, asking: asking, isBounded: isBounded, deadline: .now() + deadline, waiter)
        }
        switch sending {
        case .refused(let error):
            if isOpen { counts.refuse() }
            waiter.fail(error)
            return nil
        case .sent(let number, let mustWrite):
            if mustWrite { channel.eventLoop.execute { self.write() } }
            return number
        }
    }

    private func cancel(_ number: UInt64) {
        let waiter = state.withLock { $0.pipeline.cancel(number) }
        waiter?.fail(StoreError(.unavailable, "the call to Redis was cancelled"))
    }

    /// Writes all unwritten commands. Runs on the event loop.
    private func write() {
        let (bytes, mustSetTimer) = state.withLock { $0.pipeline.write() }
        if bytes.readableBytes > 0 { channel.writeAndFlush(bytes, promise: nil) }
        if mustSetTimer { channel.eventLoop.scheduleTask(in: deadline) { self.checkDeadline() } }
    }

    /// Closes the connection if the oldest call is overdue.
    private func checkDeadline() {
        switch state.withLock({ $0.pipeline.timerFired(at: .now()) }) {
        case .unset: break
        case .set(let deadline): channel.eventLoop.scheduleTask(deadline: deadline) { self.checkDeadline() }
        case .overdue:
            counts.timedOut()
            close(because: StoreError(.tooSlow, "Redis did not answer in time"))
        }
    }

    // MARK: The handler's side

    func received(_ replies: [RESPValue]) {
        let (answers, failure) = state.withLock { $0.pipeline.received(replies) }
        for answer in answers { answer.waiter.resume(answer.last, after: answer.earlier) }
        if let failure { close(because: failure) }
    }

    /// Closes the connection and fails all calls in flight.
    func close(because error: StoreError) {
        let (waiting, onClose) = state.withLock { state -> ([Waiter]?, (@Sendable () -> Void)?) in
            defer { state.onClose = nil }
            return (state.pipeline.close(because: error), state.onClose)
        }
        for waiter in waiting ?? [] { waiter.fail(error) }
        channel.close(promise: nil)
        onClose?()
    }
}
