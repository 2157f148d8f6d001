internal import AuthService
internal import Bytes
internal import NIOCore
internal import NIOPosix
internal import NIOSSL
internal import RESP
internal import Synchronization

/// One connection to one server process. Commands are pipelined: each call sends its command and waits for its reply, and any
/// number of calls wait at once.
///
/// - A reply that is overdue closes the connection. All calls in flight fail, because nothing says which of them were executed.
/// - A cancelled call stops waiting. Its reply is still matched, and dropped.
/// - The number of calls in flight is bounded. A call beyond it fails at once.
final class RedisConnection: Sendable {
    private typealias Continuation = CheckedContinuation<Result<RESPValue, StoreError>, Never>

    private struct Call: Sendable {
        /// Nil once the caller was cancelled.
        var continuation: Continuation?
        let deadline: NIODeadline
    }

    /// The calls in flight, in the order of their commands on the wire.
    private struct InFlight: Sendable {
        private var calls: [Call] = []
        private var head = 0
        /// The number of the first call. No call has the number 0.
        private var first: UInt64 = 1

        var count: Int { calls.count - head }
        var oldest: Call? { head < calls.count ? calls[head] : nil }

        mutating func add(_ call: Call) -> UInt64 {
            calls.append(call)
            return first + UInt64(count) - 1
        }

        mutating func takeFirst() -> Call? {
            guard head < calls.count else { return nil }
            defer {
                calls[head].continuation = nil
                head += 1
                first += 1
                if head == calls.count {
                    calls.removeAll(keepingCapacity: true)
                    head = 0
                } else if head >= 1024 {
                    calls.removeFirst(head)
                    head = 0
                }
            }
            return calls[head]
        }

        mutating func cancel(_ number: UInt64) -> Continuation? {
            guard number >= first, number - first < UInt64(count) else { return nil }
            let index = head + Int(number - first)
            defer { calls[index].continuation = nil }
            return calls[index].continuation
        }
    }

    /// The number of a call, once it has one.
    private final class Ticket: Sendable {
        let number = Atomic<UInt64>(0)
    }

    private struct State: Sendable {
        var inFlight = InFlight()
        /// Commands that were not written yet. One write takes all of them.
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

    /// Whether the connection takes calls.
    var isOpen: Bool { state.withLock { $0.closed == nil } }

    /// The event loop of the connection.
    var eventLoop: any EventLoop { channel.eventLoop }

    /// Calls `body` once the connection is closed, also if it is closed already.
    func onClose(_ body: @escaping @Sendable () -> Void) {
        let isClosed = state.withLock { state in
            if state.closed == nil { state.onClose = body }
            return state.closed != nil
        }
        if isClosed { body() }
    }

    // MARK: Calls

    /// Sends a command and returns its reply. A reply that is an error is returned too.
    ///
    /// - Parameter asking: whether `ASKING` goes before it, for a slot that is being imported.
    func call(_ command: RESPCommand, asking: Bool = false) async throws(StoreError) -> RESPValue {
        guard command.isComplete else { throw StoreError(.unavailable, "an incomplete command") }
        let ticket = Ticket()
        let result: Result<RESPValue, StoreError> = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                guard let sent = send(command, asking: asking, continuation) else { return }
                ticket.number.store(sent, ordering: .sequentiallyConsistent)
                // The handler may have run before there was a number.
                if Task.isCancelled { cancel(sent) }
            }
        } onCancel: {
            let sent = ticket.number.load(ordering: .sequentiallyConsistent)
            if sent != 0 { cancel(sent) }
        }
        return try result.get()
    }

    private func send(_ command: RESPCommand, asking: Bool, _ continuation: Continuation) -> UInt64? {
        let deadline = NIODeadline.now() + deadline
        enum Outcome {
            case sent(UInt64, mustWrite: Bool)
            case refused(StoreError)
        }
        let outcome: Outcome = state.withLock { state in
            if let closed = state.closed { return .refused(closed) }
            guard state.inFlight.count + 2 <= maximumInFlight else {
                return .refused(StoreError(.unavailable, "too many calls to Redis are in flight"))
            }
            if asking {
                state.unwritten.writeImmutableBuffer(Self.asking)
                _ = state.inFlight.add(Call(continuation: nil, deadline: deadline))
            }
            state.unwritten.writeImmutableBuffer(command.buffer)
            let number = state.inFlight.add(Call(continuation: continuation, deadline: deadline))
            defer { state.isWriteScheduled = true }
            return .sent(number, mustWrite: !state.isWriteScheduled)
        }
        switch outcome {
        case .refused(let error):
            continuation.resume(returning: .failure(error))
            return nil
        case .sent(let number, let mustWrite):
            if mustWrite { channel.eventLoop.execute { self.write() } }
            return number
        }
    }

    private static let asking = RESPCommand("ASKING").buffer

    private func cancel(_ number: UInt64) {
        let continuation = state.withLock { $0.inFlight.cancel(number) }
        continuation?.resume(returning: .failure(StoreError(.unavailable, "the call to Redis was cancelled")))
    }

    /// Writes everything that waits. Runs on the event loop.
    private func write() {
        let (bytes, setTimer) = state.withLock { state in
            state.isWriteScheduled = false
            let bytes = state.unwritten
            state.unwritten = ByteBuffer()
            let setTimer = !state.isTimerSet && state.inFlight.count > 0
            if setTimer { state.isTimerSet = true }
            return (bytes, setTimer)
        }
        if bytes.readableBytes > 0 { channel.writeAndFlush(bytes, promise: nil) }
        if setTimer { channel.eventLoop.scheduleTask(in: deadline) { self.checkDeadline() } }
    }

    /// Closes the connection if the oldest call is overdue. Calls have their deadlines in the order of the wire.
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

    /// Takes a reply. Data that the server sends by itself is ignored: this client subscribes to nothing.
    fileprivate func received(_ value: RESPValue) {
        if case .push = value { return }
        guard let call = state.withLock({ $0.inFlight.takeFirst() }) else {
            return close(because: StoreError(.unreadable, "Redis sent a reply to no command"))
        }
        call.continuation?.resume(returning: .success(value))
    }

    /// Closes the connection and fails all calls in flight.
    func close(because error: StoreError) {
        let (waiting, onClose) = state.withLock { state -> ([Continuation], (@Sendable () -> Void)?) in
            guard state.closed == nil else { return ([], nil) }
            state.closed = error
            var waiting: [Continuation] = []
            while let call = state.inFlight.takeFirst() { call.continuation.map { waiting.append($0) } }
            defer { state.onClose = nil }
            return (waiting, state.onClose)
        }
        for continuation in waiting { continuation.resume(returning: .failure(error)) }
        channel.close(promise: nil)
        onClose?()
    }
}

/// Reads replies off a channel.
private final class ReplyHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private var decoder = RESPDecoder()
    private var received = ByteBuffer()
    var connection: RedisConnection?

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var part = unwrapInboundIn(data)
        if received.readableBytes == 0 { received = part } else { received.writeBuffer(&part) }
        do throws(RESPError) {
            while let value = try decoder.next(&received) { connection?.received(value) }
            if received.readableBytes > 0 { received.discardReadBytes() }
        } catch {
            received.clear()
            end(StoreError(.unreadable, "Redis sent something else than RESP: \(error)"))
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        end(StoreError(.unavailable, "the connection to Redis is closed"))
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        end(StoreError(.unavailable, "the connection to Redis failed: \(error)"))
        context.close(promise: nil)
    }

    private func end(_ error: StoreError) {
        connection?.close(because: error)
        connection = nil
    }
}

/// What every connection of a deployment needs.
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
    /// Connects, and logs in. `HELLO 3` where the server knows it, RESP2 elsewhere.
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
                        // An address cannot be a server name. The certificate must then be for the address.
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
        } catch { throw StoreError(.unavailable, "Redis at \(endpoint) cannot be reached: \(error)") }
    }

    private func logIn(_ settings: ConnectionSettings) async throws(StoreError) {
        let login = settings.login
        var hello = ["HELLO", "3"]
        if let password = login.password { hello += ["AUTH", login.user ?? "default", password] }
        let greeting = try await call(RESPCommand(hello))
        if case .error(let text) = greeting {
            // Servers before Redis 6, and proxies.
            guard ["NOPROTO", "ERR"].contains(RedisError(text).code) else { throw RedisError(text).loginError }
            if let password = login.password {
                let reply = try await call(RESPCommand(["AUTH"] + (login.user.map { [$0] } ?? []) + [password]))
                if case .error(let text) = reply { throw RedisError(text).loginError }
            }
        }
        // An ACL may forbid it; it only helps operators.
        _ = try await call(RESPCommand("CLIENT", "SETNAME", settings.clientName))
        guard settings.database != 0 else { return }
        let reply = try await call(RESPCommand("SELECT", "\(settings.database)"))
        if case .error(let text) = reply { throw RedisError(text).selectionError(settings.database) }
    }

    /// Sends a command whose reply must not be an error.
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
