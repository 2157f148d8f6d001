internal import NIOCore
internal import NIOHTTPTypes

/// Closes a connection whose client is too slow: to send the next request's head, or, once it began, the rest of it.
///
/// An idle time-out alone does not do that, because a client that sends a byte now and then is never idle.
final class ReadDeadlineHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPRequestPart
    typealias InboundOut = HTTPRequestPart

    private let limits: ReadDeadlines
    private var deadline: NIODeadline
    private var checking: RepeatedTask?

    init(_ limits: ReadDeadlines) {
        self.limits = limits
        deadline = .now() + .nanoseconds(limits.head.nanoseconds)
    }

    func handlerAdded(context: ChannelHandlerContext) {
        // One timer a connection: setting one for each request would cost more than it protects.
        let channel = context.channel
        let handler = NIOLoopBound(self, eventLoop: context.eventLoop)
        checking = context.eventLoop.scheduleRepeatedTask(initialDelay: .seconds(1), delay: .seconds(1)) { _ in
            if handler.value.deadline < .now() { channel.close(promise: nil) }
        }
    }

    func handlerRemoved(context: ChannelHandlerContext) { checking?.cancel() }

    func channelInactive(context: ChannelHandlerContext) {
        checking?.cancel()
        context.fireChannelInactive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head: deadline = .now() + .nanoseconds(limits.body.nanoseconds)
        case .body: break
        case .end: deadline = .now() + .nanoseconds(limits.head.nanoseconds)
        }
        context.fireChannelRead(data)
    }
}

/// How long a client may take.
public struct ReadDeadlines: Sendable {
    /// From the end of one request to the end of the next one's head.
    public var head: Duration = .seconds(60)
    /// From the end of the head to the end of the body.
    public var body: Duration = .seconds(10)

    /// The defaults.
    public init() {}
}

extension Duration {
    fileprivate var nanoseconds: Int64 {
        let (seconds, attoseconds) = components
        return seconds.multipliedReportingOverflow(by: 1_000_000_000).partialValue + attoseconds / 1_000_000_000
    }
}
