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

    private struct Call: Sendable {
        /// Nil after the caller was cancelled.
        var waiter: Waiter?
        let deadline: NIODeadline
        /// The number of commands without a reply.
        var missing = 1
        /// The replies to the commands before the last one.
        var replies: [RESPValue] = []
    }

    /// The calls in flight, in the order of their commands on the wire.
    private struct InFlight: Sendable {
        private var calls: [Call] = []
        private var head = 0
        /// The number of the first call. 0 is not used.
        private var first: UInt64 = 1
        /// The number of commands without a reply.
        private(set) var commands = 0

        private var count: Int { calls.count - head }
        var oldest: Call? { head < calls.count ? calls[head] : nil }

        mutating func add(_ call: Call) -> UInt64 {
            calls.append(call)
            commands += call.missing
            return first + UInt64(count) - 1
        }

        /// Gives the oldest call its next reply. Returns the call if it is complete.
        ///
        /// - Throws: if there is no call.
        mutating func answer(_ reply: RESPValue) throws(StoreError) -> Call? {
            guard head < calls.count else { throw StoreError(.unreadable, "Redis sent a reply to no command") }
            guard calls[head].missing > 1 else { return takeFirst() }
            calls[head].missing -= 1
            commands -= 1
            if calls[head].waiter != nil { calls[head].replies.append(reply) }
            return nil
        }

        mutating func takeFirst() -> Call? {
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

        mutating func cancel(_ number: UInt64) -> Waiter? {
            guard number >= first, number - first < UInt64(count) else { return nil }
            let index = head + Int(number - first)
            defer { (calls[index].waiter, calls[index].replies) = (nil, []) }
            return calls[index].waiter
        }
    }

    /// The number of a call, once it has one.
    private final class Ticket: Sendable {
        let number = Atomic<UInt64>(0)
    }

    private struct State: Sendable {
        var inFlight = InFlight()
        /// Commands that are not written yet. One write sends all of them.
        var unwritten = ByteBuffer()
        var isWriteScheduled = false
        var isTimerSet = false
        var closed: StoreError?
        var onClose: (@Sendable () -> Void)?
    }

    private let channel: any Channel
    private let state = Locked(State())
    private let deadline: TimeAmount
    private let maximumInFlight: Int

    fileprivate init(_ channel: any Channel, deadline: Duration, maximumInFlight: Int) {
        self.channel = channel
        self.deadline = TimeAmount(deadline)
        self.maximumInFlight = maximumInFlight
    }

    /// Whether the connection accepts calls.
    var isOpen: Bool { state.withLock { $0.closed == nil } }

    /// The event loop of the connection.
    var eventLoop: any EventLoop { channel.eventLoop }

    /// Calls `body` once the connection is closed, or at once if it is closed already.
    func onClose(_ body: @escaping @Sendable () -> Void) {
        let isClosed = state.withLock { state in
            if state.closed == nil { state.onClose = body }
            return state.closed != nil
        }
        if isClosed { body() }
    }

    // MARK: Calls

    /// Sends a command and returns its reply. An error reply is returned too.
    ///
    /// - Parameter asking: whether to send `ASKING` first, for a slot that is being imported.
    func call(_ command: RESPCommand, asking: Bool = false) async throws(StoreError) -> RESPValue {
        guard command.isComplete else { throw StoreError(.unavailable, "an incomplete command") }
        return try await wait { continuation in
            self.send([command], asking: asking, .one(continuation))
        }
    }

    /// Sends commands in one write and returns their replies in the same order. Error replies are returned too.
    ///
    /// - Parameter isBounded: whether the limit of commands in flight applies. A check of the server must not fail because of
    ///   the load that it measures.
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
        let deadline = NIODeadline.now() + deadline
        enum Outcome {
            case sent(UInt64, mustWrite: Bool)
            case refused(StoreError)
        }
        let outcome: Outcome = state.withLock { state in
            if let closed = state.closed { return .refused(closed) }
            let count = state.inFlight.commands + commands.count + (asking ? 1 : 0)
            guard !isBounded || count <= maximumInFlight else {
                return .refused(StoreError(.unavailable, "too many calls to Redis are in flight"))
            }
            if asking {
                state.unwritten.writeImmutableBuffer(Self.asking)
                _ = state.inFlight.add(Call(waiter: nil, deadline: deadline))
            }
            for command in commands { state.unwritten.writeImmutableBuffer(command.buffer) }
            let number = state.inFlight.add(Call(waiter: waiter, deadline: deadline, missing: commands.count))
            defer { state.isWriteScheduled = true }
            return .sent(number, mustWrite: !state.isWriteScheduled)
        }
        switch outcome {
        case .refused(let error):
            waiter.fail(error)
            return nil
        case .sent(let number, let mustWrite):
            if mustWrite { channel.eventLoop.execute { self.write() } }
            return number
        }
    }

    private static let asking = RESPCommand("ASKING").buffer

    private func cancel(_ number: UInt64) {
        let waiter = state.withLock { $0.inFlight.cancel(number) }
        waiter?.fail(StoreError(.unavailable, "the call to Redis was cancelled"))
    }

    /// Writes all unwritten commands. Runs on the event loop.
    private func write() {
        let (bytes, setTimer) = state.withLock { state in
            state.isWriteScheduled = false
            let bytes = state.unwritten
            state.unwritten = ByteBuffer()
            let setTimer = !state.isTimerSet && state.inFlight.commands > 0
            if setTimer { state.isTimerSet = true }
            return (bytes, setTimer)
        }
        if bytes.readableBytes > 0 { channel.writeAndFlush(bytes, promise: nil) }
        if setTimer { channel.eventLoop.scheduleTask(in: deadline) { self.checkDeadline() } }
    }

    /// Closes the connection if the oldest call is overdue. Calls are sent in the order of their deadlines, so only the oldest
    /// needs a check.
    private func checkDeadline() {
        let oldest = state.withLock { state in
            let oldest = state.inFlight.oldest?.deadline
            state.isTimerSet = oldest != nil && state.closed == nil
            return state.isTimerSet ? oldest : nil
        }
        guard let oldest else { return }
        if oldest <= .now() {
            close(because: StoreError(.tooSlow, "Redis did not answer in time"))
        } else {
            channel.eventLoop.scheduleTask(deadline: oldest) { self.checkDeadline() }
        }
    }

    // MARK: The handler's side

    /// Handles replies. Data that the server sends unasked is ignored, because this client has no subscriptions.
    fileprivate func received(_ replies: [RESPValue]) {
        let (complete, failure) = state.withLock { state -> ([(Call, RESPValue)], StoreError?) in
            var complete: [(Call, RESPValue)] = []
            do throws(StoreError) {
                for reply in replies {
                    if case .push = reply { continue }
                    if let call = try state.inFlight.answer(reply) { complete.append((call, reply)) }
                }
                return (complete, nil)
            } catch { return (complete, error) }
        }
        for (call, reply) in complete { call.waiter?.resume(reply, after: call.replies) }
        if let failure { close(because: failure) }
    }

    /// Closes the connection and fails all calls in flight.
    func close(because error: StoreError) {
        let (waiting, onClose) = state.withLock { state -> ([Waiter], (@Sendable () -> Void)?) in
            guard state.closed == nil else { return ([], nil) }
            state.closed = error
            var waiting: [Waiter] = []
            while let call = state.inFlight.takeFirst() { call.waiter.map { waiting.append($0) } }
            defer { state.onClose = nil }
            return (waiting, state.onClose)
        }
        for waiter in waiting { waiter.fail(error) }
        channel.close(promise: nil)
        onClose?()
    }
}

/// Reads replies from a channel.
private final class ReplyHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private var decoder = RESPDecoder()
    private var received = ByteBuffer()
    var connection: RedisConnection?

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        // After an error, TLS may still deliver received data.
        guard connection != nil else { return }
        var part = unwrapInboundIn(data)
        if received.readableBytes == 0 { received = part } else { received.writeBuffer(&part) }
        // All replies of one read are handed over together.
        var replies: [RESPValue] = []
        do throws(RESPError) {
            while let value = try decoder.next(&received) { replies.append(value) }
            connection?.received(replies)
            if received.readableBytes > 0 { received.discardReadBytes() }
        } catch {
            connection?.received(replies)
            received.clear()
            end(StoreError(.unreadable, "Redis sent something else than RESP: \(error)"))
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        end(StoreError(.unavailable, "the connection to Redis is closed"))
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        end(StoreError(.unavailable, "the connection to Redis failed: \(ConnectionFailure.reason(error))"))
        context.close(promise: nil)
    }

    private func end(_ error: StoreError) {
        connection?.close(because: error)
        connection = nil
    }
}

/// The settings of every connection of a deployment.
struct ConnectionSettings: Sendable {
    var login = RedisURL.Login()
    var database = 0
    var tls: NIOSSLContext?
    var deadline: Duration = .seconds(2)
    var maximumInFlight = 8192
    var clientName = "synheart-auth"
    var group: any EventLoopGroup = MultiThreadedEventLoopGroup.singleton
}

extension RedisConnection {
    /// Connects and logs in. Uses `HELLO 3` if the server knows it, and RESP2 otherwise.
    static func open(
        _ endpoint: RedisURL.Endpoint, _ settings: ConnectionSettings
    ) async throws(StoreError) -> RedisConnection {
        let connection = try await connect(endpoint, settings)
        do throws(StoreError) {
            try await connection.logIn(settings)
            return connection
        } catch {
            connection.close(because: error)
            throw error
        }
    }

    private static func connect(
        _ endpoint: RedisURL.Endpoint, _ settings: ConnectionSettings
    ) async throws(StoreError) -> RedisConnection {
        do {
            let bootstrap = ClientBootstrap(group: settings.group)
                .connectTimeout(TimeAmount(settings.deadline))
                .channelOption(.tcpOption(.tcp_nodelay), value: 1)
            return try await bootstrap.connect(host: endpoint.host, port: endpoint.port) { channel in
                channel.eventLoop.makeCompletedFuture {
                    let handler = ReplyHandler()
                    if let tls = settings.tls {
                        // An IP address cannot be sent as a server name. The certificate must then be for the address.
                        let isAddress = (try? SocketAddress(ipAddress: endpoint.host, port: 0)) != nil
                        try channel.pipeline.syncOperations.addHandler(
                            NIOSSLClientHandler(context: tls, serverHostname: isAddress ? nil : endpoint.host))
                    }
                    try channel.pipeline.syncOperations.addHandler(handler)
                    let connection = RedisConnection(
                        channel, deadline: settings.deadline, maximumInFlight: settings.maximumInFlight)
                    handler.connection = connection
                    return connection
                }
            }
        } catch {
            throw StoreError(.unavailable, "Redis at \(endpoint) cannot be reached: \(ConnectionFailure.reason(error))")
        }
    }

    private func logIn(_ settings: ConnectionSettings) async throws(StoreError) {
        let login = settings.login
        var hello = ["HELLO", "3"]
        if let password = login.password { hello += ["AUTH", login.user ?? "default", password] }
        let greeting = try await call(RESPCommand(hello))
        if case .error(let text) = greeting {
            // For servers before Redis 6, and for proxies.
            guard ["NOPROTO", "ERR"].contains(RedisError(text).code) else { throw RedisError(text).loginError }
            if let password = login.password {
                let reply = try await call(RESPCommand(["AUTH"] + (login.user.map { [$0] } ?? []) + [password]))
                if case .error(let text) = reply { throw RedisError(text).loginError }
            }
        }
        // An ACL may forbid `SETNAME`. The name only helps operators.
        var commands = [RESPCommand("CLIENT", "SETNAME", settings.clientName)]
        if settings.database != 0 { commands.append(RESPCommand("SELECT", "\(settings.database)")) }
        let replies = try await call(commands)
        if settings.database != 0, case .error(let text)? = replies.last {
            throw RedisError(text).selectionError(settings.database)
        }
    }

    /// Sends commands and throws if a reply is an error.
    func require(_ commands: [RESPCommand], isBounded: Bool = true) async throws(StoreError) -> [RESPValue] {
        let replies = try await call(commands, isBounded: isBounded)
        for case .error(let text) in replies { throw RedisError(text).storeError }
        return replies
    }

    /// Sends a command and throws if the reply is an error.
    @discardableResult
    func require(_ command: RESPCommand) async throws(StoreError) -> RESPValue {
        let reply = try await call(command)
        if case .error(let text) = reply { throw RedisError(text).storeError }
        return reply
    }
}

extension TimeAmount {
    init(_ duration: Duration) {
        let (seconds, attoseconds) = duration.components
        self = .seconds(seconds) + .nanoseconds(attoseconds / 1_000_000_000)
    }
}
