internal import NIOCore
internal import NIOHTTPTypes

/// The time limits of a connection.
package struct ReadDeadlines: Sendable {
    /// The limit between two requests of one connection.
    package var idle: Duration = .seconds(60)
    /// The limit from the first byte of a request, or from the connection's start, to the end of the head, including TLS.
    package var head: Duration = .seconds(10)
    /// The limit from the end of the head to the end of the body.
    package var body: Duration = .seconds(10)
    /// The limit from the end of the request to the end of its answer.
    package var answer: Duration = .seconds(60)

    /// The defaults.
    package init() {}

}

/// The deadline of a connection. It is used on the connection's event loop.
///
/// An idle timeout is not enough: a client that sends a byte now and then is never idle.
final class ConnectionDeadline {
    enum Phase {
        /// Before the first byte of the first request.
        case opened
        case idle, head, body, answer
    }

    private let idle: TimeAmount
    private let head: TimeAmount
    private let body: TimeAmount
    private let answer: TimeAmount
    private(set) var phase = Phase.opened
    /// Whether arriving bytes are discarded. The decoder no longer consumes them, so they would otherwise fill the memory.
    private(set) var ignoresInput = false
    private var deadline: NIODeadline

    init(_ limits: ReadDeadlines) {
        idle = TimeAmount(limits.idle)
        head = TimeAmount(limits.head)
        body = TimeAmount(limits.body)
        answer = TimeAmount(limits.answer)
        deadline = .now() + head
    }

    /// The interval of the timer.
    var tick: TimeAmount {
        let shortest = min(idle, head, body, answer).nanoseconds
        return .nanoseconds(min(max(shortest / 4, 5_000_000), 1_000_000_000))
    }

    var isPast: Bool { deadline < .now() }

    func ignoreInput() { ignoresInput = true }

    /// Notes the first byte of a request.
    func beginHead() {
        switch phase {
        // The time for the first head began with the connection.
        case .opened: phase = .head
        case .idle: enter(.head)
        case .head, .body, .answer: break
        }
    }

    /// Shortens the current wait to at most this limit.
    func hasten(_ limit: TimeAmount) { deadline = min(deadline, .now() + limit) }

    func enter(_ phase: Phase) {
        self.phase = phase
        let limit =
            switch phase {
            case .idle: idle
            case .opened, .head: head
            case .body: body
            case .answer: answer
            }
        deadline = .now() + limit
    }
}

/// Closes a connection whose deadline is past. It comes before the HTTP decoder in the pipeline, so that it sees the first byte of
/// a request. `ExchangeHandler` moves the deadline on all later events.
final class DeadlineHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    private let deadline: ConnectionDeadline
    private var checking: RepeatedTask?

    init(_ deadline: ConnectionDeadline) { self.deadline = deadline }

    func handlerAdded(context: ChannelHandlerContext) {
        // Use one timer for each connection. A timer for each request would cost too much.
        let (channel, tick) = (context.channel, deadline.tick)
        let deadline = NIOLoopBound(deadline, eventLoop: context.eventLoop)
        checking = context.eventLoop.scheduleRepeatedTask(initialDelay: tick, delay: tick) { _ in
            if deadline.value.isPast { channel.close(promise: nil) }
        }
    }

    func handlerRemoved(context: ChannelHandlerContext) { checking?.cancel() }

    func channelInactive(context: ChannelHandlerContext) {
        checking?.cancel()
        context.fireChannelInactive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !deadline.ignoresInput else { return }
        deadline.beginHead()
        context.fireChannelRead(data)
    }
}

extension TimeAmount {
    /// Converts a duration. The result is at most a quarter of the range of `TimeAmount`, so that adding it to the current time
    /// cannot overflow.
    fileprivate init(_ duration: Duration) {
        let (seconds, attoseconds) = duration.components
        let (product, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        self = .nanoseconds(overflow ? .max / 4 : min(max(product, 0), .max / 4) + attoseconds / 1_000_000_000)
    }
}
