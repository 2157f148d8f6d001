internal import HTTPTypes
internal import NIOCore
internal import NIOHTTP1
internal import NIOHTTPTypes

/// The requests and answers of one connection on their way between NIO's HTTP/1 codec and the listener: it translates them,
/// moves the connection's deadline, and ends the connection when that is due. It is one handler for all of it, because
/// each handler that a part passes costs about what one header does.
final class ExchangeHandler: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPRequestPart
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    /// Makes the answer to what is not HTTP, for a status of the HTTP library's.
    typealias MalformedAnswer = @Sendable (_ status: Int) -> (head: HTTPResponse, body: ByteBuffer)

    private let scheme: String
    private let deadline: ConnectionDeadline
    private let malformed: MalformedAnswer
    /// The requests that wait for their answers, oldest first.
    private var waiting: CircularBuffer<Waiting> = []
    /// Whether the server is shutting down.
    private var isQuiescing = false
    /// Whether the answer being written takes the place of the library's.
    private var isReplacing = false

    private struct Waiting {
        /// Whether its client lets the connection live on behind it.
        let keepsAlive: Bool
        /// Whether it asks for another protocol. The decoder reads nothing behind such a request.
        let changesProtocol: Bool
        /// Whether its client sends the body only after `100 Continue`.
        var awaitsContinue: Bool

        /// Whether the connection can serve another request behind this one. If the client never got its `100 Continue`,
        /// nobody can tell whether the next bytes are that body or a new request (RFC 9110 section 10.1.1).
        var allowsNext: Bool { keepsAlive && !awaitsContinue }

        init(_ head: HTTPRequestHead) {
            changesProtocol = head.method == .CONNECT || head.headers.contains(name: "Upgrade")
            keepsAlive = head.isKeepAlive && !changesProtocol
            awaitsContinue = Expectation.isContinue(of: head)
        }
    }

    /// - Parameter scheme: `https` behind a TLS handler, else `http`.
    init(scheme: String, deadline: ConnectionDeadline, malformed: @escaping MalformedAnswer) {
        self.scheme = scheme
        self.deadline = deadline
        self.malformed = malformed
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head):
            guard let request = WireTranslation.request(head, scheme: scheme) else {
                return context.fireErrorCaught(HTTPParserError.invalidHeaderToken)
            }
            waiting.append(Waiting(head))
            deadline.enter(.body)
            context.fireChannelRead(wrapInboundOut(.head(request)))
        case .body(let body): context.fireChannelRead(wrapInboundOut(.body(body)))
        case .end:
            if waiting.last?.changesProtocol == true { deadline.ignoreInput() }
            // An answer may leave before the body has been read, and then nothing is waited for.
            deadline.enter(waiting.isEmpty ? .idle : .answer)
            // Trailers are signed by neither scheme, so nobody may see them.
            context.fireChannelRead(wrapInboundOut(.end(nil)))
        }
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        switch unwrapOutboundIn(data) {
        case .head(let response) where response.status == .continue: writeContinue(context, promise)
        case .head(let response):
            // Ours all have an id: this is what the library answers by itself.
            guard response.status.kind != .informational, !response.headerFields.contains(.requestID) else {
                return write(response, context, promise)
            }
            isReplacing = true
            var (head, body) = malformed(response.status.code)
            head.headerFields[.connection] = "close"
            head.headerFields[.contentLength] = String(body.readableBytes)
            write(head, context, promise)
            context.write(wrapOutboundOut(.body(.byteBuffer(body))), promise: nil)
        case .body where isReplacing: promise?.succeed()
        case .body(let body): context.write(wrapOutboundOut(.body(.byteBuffer(body))), promise: promise)
        case .end:
            isReplacing = false
            let isLast = isLastAnswer
            _ = waiting.popFirst()
            if waiting.isEmpty, deadline.phase == .answer { deadline.enter(.idle) }
            guard isLast else { return context.write(wrapOutboundOut(.end(nil)), promise: promise) }
            context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: promise)
            context.close(mode: isQuiescing ? .all : .output, promise: nil)
        }
    }

    /// Sends the interim answer where the client waits for it.
    private func writeContinue(_ context: ChannelHandlerContext, _ promise: EventLoopPromise<Void>?) {
        guard waiting.first?.awaitsContinue == true else {
            promise?.succeed()
            return
        }
        waiting[waiting.startIndex].awaitsContinue = false
        context.writeAndFlush(wrapOutboundOut(.head(.init(version: .http1_1, status: .continue))), promise: promise)
    }

    private func write(_ response: HTTPResponse, _ context: ChannelHandlerContext, _ promise: EventLoopPromise<Void>?) {
        context.write(wrapOutboundOut(.head(WireTranslation.head(response, isLast: isLastAnswer))), promise: promise)
    }

    /// Whether the connection ends after the answer to the oldest request: its client asked for that, in its version's way,
    /// or what follows it cannot be read as a request, or the server ends and nothing else is waited for, or it answers no
    /// request at all.
    private var isLastAnswer: Bool { waiting.first?.allowsNext != true || (isQuiescing && waiting.count == 1) }

    /// Requests in flight are finished; the next one is not waited for.
    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard event is ChannelShouldQuiesceEvent else { return context.fireUserInboundEventTriggered(event) }
        isQuiescing = true
        if waiting.isEmpty { context.close(promise: nil) }
    }
}
