internal import AuthContract
internal import HTTPTypes
internal import NIOCore
internal import NIOHTTP1
internal import NIOHTTPTypes

/// Translates between NIO's HTTP/1 parts and the shared HTTP types, keeping what the rules need and the usual codec drops:
/// the target exactly as it stood on the wire (absolute form included, so that it can be refused) and every `Host` line.
///
/// Ends the connection after the answer where the client asked for that, in its version's way.
final class WireCodec: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPRequestPart
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    private let scheme: String
    /// For each request that waits for its answer, whether the connection lives on behind it.
    private var keepsAlive: CircularBuffer<Bool> = []

    /// - Parameter scheme: `https` behind a TLS handler, else `http`.
    init(scheme: String) { self.scheme = scheme }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head):
            guard let request = request(of: head) else {
                return context.fireErrorCaught(HTTPParserError.invalidHeaderToken)
            }
            keepsAlive.append(head.isKeepAlive)
            context.fireChannelRead(wrapInboundOut(.head(request)))
        case .body(let body): context.fireChannelRead(wrapInboundOut(.body(body)))
        // Trailers are signed by neither scheme, so nobody may see them.
        case .end: context.fireChannelRead(wrapInboundOut(.end(nil)))
        }
    }

    private func request(of head: HTTPRequestHead) -> HTTPRequest? {
        guard let method = HTTPRequest.Method(head.method.rawValue), hasOneLength(head) else { return nil }
        var fields = HTTPFields()
        fields.reserveCapacity(head.headers.count)
        for (name, value) in head.headers {
            // Spaces and tabs around a value are no part of it (RFC 9110 section 5.5). Where control bytes stood HTTPField
            // would put spaces, and the value would no longer be what was sent.
            let value = value.trimmingOptionalWhitespace
            guard let name = HTTPField.Name(name), HTTPField.isValidValue(value) else { return nil }
            fields.append(HTTPField(name: name, value: value))
        }
        return HTTPRequest(
            method: method, scheme: scheme, authority: head.headers.first(name: "host"), path: head.uri,
            headerFields: fields)
    }

    /// Whether every server sees the end of the request in the same place: a transfer coding is `chunked` alone, and none in
    /// HTTP/1.0, which knows none (RFC 9112 section 6.1). The decoder has refused what else there is.
    private func hasOneLength(_ head: HTTPRequestHead) -> Bool {
        let codings = head.headers["Transfer-Encoding"]
        guard !codings.isEmpty else { return true }
        return head.version == .http1_1 && codings.count == 1
            && codings.allSatisfy { $0.trimmingOptionalWhitespace.lowercased() == "chunked" }
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        switch unwrapOutboundIn(data) {
        case .head(let response):
            var headers = HTTPHeaders(response.headerFields.map { ($0.name.rawName, $0.value) })
            if keepsAlive.first == false { headers.replaceOrAdd(name: "Connection", value: "close") }
            let head = HTTPResponseHead(
                version: .http1_1, status: HTTPResponseStatus(statusCode: response.status.code), headers: headers)
            context.write(wrapOutboundOut(.head(head)), promise: promise)
        case .body(let body): context.write(wrapOutboundOut(.body(.byteBuffer(body))), promise: promise)
        case .end:
            let keepsAlive = keepsAlive.popFirst() ?? false
            guard !keepsAlive else { return context.write(wrapOutboundOut(.end(nil)), promise: promise) }
            context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: promise)
            context.close(mode: .output, promise: nil)
        }
    }
}
