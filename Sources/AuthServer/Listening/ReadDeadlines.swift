internal import NIOCore
internal import NIOHTTPTypes

/// How long a client may take.
public struct ReadDeadlines: Sendable {
    /// Between two requests of one connection.
    public var idle: Duration = .seconds(60)
    /// From the first byte of a request, or from the connection's start, to the end of the head; TLS included.
    public var head: Duration = .seconds(10)
    /// From the end of the head to the end of the body.
    public var body: Duration = .seconds(10)
    /// From the end of the request to the end of its answer.
    public var answer: Duration = .seconds(60)

    /// The defaults.
    public init() {}

    /// How often a connection looks at its deadline.
    fileprivate var tick: TimeAmount {
        let shortest = [idle, head, body, answer].map(\.nanoseconds).min() ?? 0
        return .nanoseconds(min(max(shortest / 4, 5_000_000), 1_000_000_000))
    }
}

/// What a connection waits for, and until when. Lives on the connection's event loop.
///
/// An idle time-out alone would not do: a client that sends a byte now and then is never idle.
private final class ConnectionDeadline {
    enum Phase {
        case idle, head, body, answer
    }

    private let limits: ReadDeadlines
    private(set) var phase = Phase.head
    private var deadline: NIODeadline

    init(_ limits: ReadDeadlines) {
        self.limits = limits
        deadline = .now() + .nanoseconds(limits.head.nanoseconds)
    }

    var isPast: Bool { deadline < .now() }

    func enter(_ phase: Phase) {
        self.phase = phase
        let limit =
            switch phase {
            case .idle: limits.idle
            case .head: limits.head
            case .body: limits.body
            case .answer: limits.answer
            }
        deadline = .now() + .nanoseconds(limit.nanoseconds)
    }
}

/// Closes connections whose client is too slow. Two handlers of one connection: one sees its bytes, one its requests.
enum ReadDeadlineHandlers {
    /// Puts both into the pipeline, around the HTTP decoder that `addDecoder` adds.
    static func add(
        _ limits: ReadDeadlines, to pipeline: ChannelPipeline.SynchronousOperations,
        around addDecoder: () throws -> Void
    ) throws {
        let deadline = ConnectionDeadline(limits)
        try pipeline.addHandler(Bytes(deadline, tick: limits.tick))
        try addDecoder()
        try pipeline.addHandler(Requests(deadline))
    }

    private final class Bytes: ChannelInboundHandler, RemovableChannelHandler {
        typealias InboundIn = ByteBuffer
        typealias InboundOut = ByteBuffer

        private let deadline: ConnectionDeadline
        private let tick: TimeAmount
        private var checking: RepeatedTask?

        init(_ deadline: ConnectionDeadline, tick: TimeAmount) {
            self.deadline = deadline
            self.tick = tick
        }

        func handlerAdded(context: ChannelHandlerContext) {
            // One timer a connection: setting one for each request would cost more than it protects.
            let channel = context.channel
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
            if deadline.phase == .idle { deadline.enter(.head) }
            context.fireChannelRead(data)
        }
    }

    private final class Requests: ChannelDuplexHandler, RemovableChannelHandler {
        typealias InboundIn = HTTPRequestPart
        typealias InboundOut = HTTPRequestPart
        typealias OutboundIn = HTTPResponsePart
        typealias OutboundOut = HTTPResponsePart

        private let deadline: ConnectionDeadline
        private var unanswered = 0

        init(_ deadline: ConnectionDeadline) { self.deadline = deadline }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            switch unwrapInboundIn(data) {
            case .head:
                unanswered += 1
                deadline.enter(.body)
            case .body: break
            // An answer may leave before the body has been read, and then nothing is waited for.
            case .end: deadline.enter(unanswered > 0 ? .answer : .idle)
            }
            context.fireChannelRead(data)
        }

        func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
            if case .end = unwrapOutboundIn(data) {
                unanswered -= 1
                if unanswered <= 0, deadline.phase == .answer { deadline.enter(.idle) }
            }
            context.write(data, promise: promise)
        }
    }
}

extension Duration {
    fileprivate var nanoseconds: Int64 {
        let (seconds, attoseconds) = components
        let (product, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        guard !overflow else { return .max / 4 }
        // A quarter of the range, so that adding it to now cannot overflow.
        return min(max(product, 0), .max / 4) + attoseconds / 1_000_000_000
    }
}
