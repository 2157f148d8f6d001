@_spi(Service) internal import AuthContract
internal import Foundation
internal import HTTPTypes
internal import NIOCore
internal import NIOHTTP1
internal import NIOHTTPTypes

/// The handler between NIO's HTTP/1 codec and the listener: translates requests and answers, moves the connection's deadline, and
/// ends the connection when that is due.
///
/// It is one handler, because each handler adds about the cost of one header field to every part of a request.
final class ExchangeHandler: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPRequestPart
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    /// Creates the response to bytes that are not HTTP, for a status of the HTTP library.
    typealias MalformedAnswer = @Sendable (_ status: Int) -> (head: HTTPResponse, body: ByteBuffer)

    private let scheme: String
    private let deadline: ConnectionDeadline
    private let stopping: Stopping
    private let malformed: MalformedAnswer
    /// The unanswered requests, oldest first.
    private var waiting: CircularBuffer<Waiting> = []
    /// Whether the listener is closed, so that the connection ends as soon as possible.
    private var isQuiescing = false
    /// Whether the response being written announces the connection's end.
    private var announcesEnd = false
    /// Whether the request being read came after the announced end of the connection, or after an unanswered request of
    /// HTTP/1.0.
    private var ignoresRequest = false
    /// Whether the response being written replaces a response of the HTTP library.
    private var isReplacing = false
    /// Whether the client takes the end of the connection as the end of the body that is being written.
    private var endsWithConnection = false

    private struct Waiting {
        /// Whether the request allows the connection to stay open after the response.
        var keepsAlive: Bool
        /// Whether the client cannot read chunks: it speaks HTTP/1.0.
        let needsLength: Bool
        /// Whether the answer has no body, whatever its head says.
        let isHead: Bool
        /// Whether the request asks for another protocol. The decoder stops after such a request.
        let changesProtocol: Bool
        /// Whether the client still waits for `100 Continue` before it sends the body.
        var awaitsContinue: Bool

        /// Whether the connection can serve another request after this one. If the client never got its `100 Continue`, the next
        /// bytes may be that body or a new request (RFC 9110 section 10.1.1).
        var allowsNext: Bool { keepsAlive && !awaitsContinue }

        init(_ head: HTTPRequestHead) {
            isHead = head.method == .HEAD
            changesProtocol = head.method == .CONNECT || head.headers.contains(name: "Upgrade")
            keepsAlive = head.isKeepAlive && !changesProtocol
            needsLength = head.version == .http1_0
            awaitsContinue = head.awaitsContinue
        }
    }

    /// - Parameter scheme: `https` behind a TLS handler, else `http`.
    init(
        scheme: String, deadline: ConnectionDeadline, stopping: Stopping, malformed: @escaping MalformedAnswer
    ) {
        self.scheme = scheme
        self.deadline = deadline
        self.stopping = stopping
        self.malformed = malformed
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head):
            // Once an answer has announced the end of the connection, no request is handled, because the client could not learn
            // its result. The answer to a request of HTTP/1.0 may be the last one, so a request that arrives before that answer
            // is not handled either.
            guard !announcesEnd, waiting.last?.needsLength != true else {
                if !waiting.isEmpty { waiting[offset: waiting.count - 1].keepsAlive = false }
                ignoresRequest = true
                return deadline.ignoreInput()
            }
            guard let request = WireTranslation.request(head, scheme: scheme) else {
                return context.fireErrorCaught(HTTPParserError.invalidHeaderToken)
            }
            waiting.append(Waiting(head))
            deadline.enter(.body)
            context.fireChannelRead(wrapInboundOut(.head(request)))
        case .body where ignoresRequest, .end where ignoresRequest: break
        case .body(let body): context.fireChannelRead(wrapInboundOut(.body(body)))
        case .end:
            if waiting.last?.changesProtocol == true || announcesEnd { deadline.ignoreInput() }
            // If the response was sent before the body was read, no request waits for an answer now.
            deadline.enter(waiting.isEmpty ? .idle : .answer)
            // Neither signature scheme covers trailers, so no handler may see them.
            context.fireChannelRead(wrapInboundOut(.end(nil)))
            if isQuiescing, waiting.isEmpty { context.close(promise: nil) }
        }
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        switch unwrapOutboundIn(data) {
        case .head(let response) where response.status == .continue: writeContinue(context, promise)
        case .head(let response):
            // The HTTP library answers malformed input itself, without a request id. Replace such a response.
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
            (isReplacing, endsWithConnection) = (false, false)
            let isLast = announcesEnd || (waiting.count == 1 && (isQuiescing || ignoresRequest))
            let isHead = waiting.popFirst()?.isHead ?? false
            if waiting.isEmpty, deadline.phase == .answer { deadline.enter(.idle) }
            // Without a length, the encoder would write the end of a chunked body here, but the answer to HEAD has none.
            if isHead { promise?.succeed() } else { context.write(wrapOutboundOut(.end(nil)), promise: promise) }
            guard isLast else { return }
            announcesEnd = true
            if deadline.phase != .body { deadline.ignoreInput() }
            context.flush()
            // If both directions were closed with an unread body, the connection would be reset, and the client might lose the
            // answer.
            context.close(mode: isQuiescing && deadline.phase != .body ? .all : .output, promise: nil)
        }
    }

    /// Sends `100 Continue` if the client waits for it.
    private func writeContinue(_ context: ChannelHandlerContext, _ promise: EventLoopPromise<Void>?) {
        guard waiting.first?.awaitsContinue == true else {
            promise?.succeed()
            return
        }
        waiting[waiting.startIndex].awaitsContinue = false
        context.writeAndFlush(wrapOutboundOut(.head(.init(version: .http1_1, status: .continue))), promise: promise)
    }

    private func write(_ response: HTTPResponse, _ context: ChannelHandlerContext, _ promise: EventLoopPromise<Void>?) {
        // For a client of HTTP/1.0, a body without a length ends with the connection (RFC 9112 section 6.3).
        endsWithConnection = waiting.first?.needsLength == true && response.headerFields[.contentLength] == nil
        announcesEnd = isLastAnswer || endsWithConnection
        var head = WireTranslation.head(response, isLast: announcesEnd)
        // The encoder sends chunks in every answer of HTTP/1.1 without a length, so make this an answer of HTTP/1.0.
        if endsWithConnection { head.version = .http1_0 }
        context.write(wrapOutboundOut(.head(head)), promise: promise)
    }

    /// Resets a connection whose response body is not complete, if the end of the connection would look like the end of the
    /// body.
    func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        guard endsWithConnection, mode != .input else { return context.close(mode: mode, promise: promise) }
        _ = (context.channel as? any SocketOptionProvider)?.setSoLinger(linger(l_onoff: 1, l_linger: 0))
        context.close(mode: .all, promise: promise)
    }

    /// Whether the connection ends after the response to the oldest request, whatever its body is. The connection ends in four
    /// cases: the client requested it, by the rules of its HTTP version; the following bytes cannot be parsed as a request; the
    /// server stops and no other request waits; or the response answers no request.
    private var isLastAnswer: Bool {
        waiting.first?.allowsNext != true || ((isQuiescing || stopping.hasBegun) && waiting.count == 1)
    }

    /// Ends the connection when the listener closes, but lets requests finish that are in flight or about to arrive.
    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard event is ChannelShouldQuiesceEvent else { return context.fireUserInboundEventTriggered(event) }
        isQuiescing = true
        guard waiting.isEmpty else { return }
        switch deadline.phase {
        // Wait for the first request: a load balancer opens a connection to send one at once.
        case .opened: deadline.hasten(.seconds(1))
        // The request has begun to arrive.
        case .head: deadline.hasten(.seconds(2))
        // The answer was sent. Closing with an unread body would reset the connection, and the client might lose the answer.
        case .body: break
        case .idle, .answer: context.close(promise: nil)
        }
    }
}

extension HTTPRequestHead {
    /// Whether the client waits for `100 Continue` before it sends a body (RFC 9110 section 10.1.1). HTTP/1.0 clients and
    /// requests without a body do not wait.
    fileprivate var awaitsContinue: Bool {
        guard version != .http1_0, headers.contains(name: "Expect") else { return false }
        let hasBody =
            headers.contains(name: "Transfer-Encoding")
            || headers["Content-Length"].contains { $0.trimmingOptionalWhitespace != "0" }
        return hasBody
            && headers["Expect"].contains { $0.trimmingOptionalWhitespace.lowercased() == "100-continue" }
    }
}

/// Translates between NIO's HTTP/1 heads and the shared HTTP types.
///
/// It keeps every `Host` line and the exact target, because the service checks them. The codec of swift-nio-extras removes the
/// first `Host` line, and the host from a target in absolute form. The service refuses such a target later.
enum WireTranslation {
    /// The request; nil if it is invalid, or if two servers could parse it differently.
    ///
    /// - Parameter scheme: `https` behind a TLS handler, else `http`.
    static func request(_ head: HTTPRequestHead, scheme: String) -> HTTPRequest? {
        // NIO's name for M-SEARCH lacks the hyphen, and the signature covers the method.
        let name = head.method == .MSEARCH ? "M-SEARCH" : head.method.rawValue
        guard let method = HTTPRequest.Method(name), hasOneLength(head) else { return nil }
        var fields = HTTPFields()
        fields.reserveCapacity(head.headers.count)
        for (name, value) in head.headers {
            // Spaces and tabs around a value are not part of it (RFC 9110 section 5.5). HTTPField would replace control bytes
            // with spaces, and so change the value.
            let value = value.trimmingOptionalWhitespace
            guard let name = HTTPField.Name(name), HTTPField.isValidValue(value) else { return nil }
            fields.append(HTTPField(name: name, value: value))
        }
        return HTTPRequest(
            method: method, scheme: scheme, authority: head.headers.first(name: "host"), path: head.uri,
            headerFields: fields)
    }

    /// Whether every server finds the same end of the request: the only transfer coding is `chunked`, and HTTP/1.0 has none (RFC
    /// 9112 section 6.1). The decoder has already refused other ambiguities.
    private static func hasOneLength(_ head: HTTPRequestHead) -> Bool {
        let codings = head.headers["Transfer-Encoding"]
        guard !codings.isEmpty else { return true }
        return head.version == .http1_1 && codings.count == 1
            && codings.allSatisfy { $0.trimmingOptionalWhitespace.lowercased() == "chunked" }
    }

    /// - Parameter isLast: whether the connection ends after this answer.
    static func head(_ response: HTTPResponse, isLast: Bool) -> HTTPResponseHead {
        var headers = HTTPHeaders(response.headerFields.map { ($0.name.rawName, $0.value) })
        if isLast { headers.replaceOrAdd(name: "Connection", value: "close") }
        return HTTPResponseHead(
            version: .http1_1, status: HTTPResponseStatus(statusCode: response.status.code), headers: headers)
    }
}
