internal import HTTPTypes
internal import NIOCore
internal import NIOHTTPTypes

/// Gives the answers that the HTTP library makes by itself, to what is not HTTP, the body and headers of every other answer.
final class MalformedRequestHandler: ChannelOutboundHandler, RemovableChannelHandler {
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = HTTPResponsePart

    private let answer: @Sendable (_ status: Int) -> (head: HTTPResponse, body: ByteBuffer)
    private var isReplacing = false

    /// - Parameter answer: makes the answer for a status of the library's.
    init(_ answer: @escaping @Sendable (_ status: Int) -> (head: HTTPResponse, body: ByteBuffer)) {
        self.answer = answer
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        switch unwrapOutboundIn(data) {
        case .head(let head) where head.status.kind != .informational && !head.headerFields.contains(.requestID):
            isReplacing = true
            var (framed, body) = answer(head.status.code)
            framed.headerFields[.connection] = "close"
            framed.headerFields[.contentLength] = String(body.readableBytes)
            context.write(wrapOutboundOut(.head(framed)), promise: promise)
            context.write(wrapOutboundOut(.body(body)), promise: nil)
        case .body where isReplacing: promise?.succeed()
        case .end:
            isReplacing = false
            context.write(data, promise: promise)
        case .head, .body: context.write(data, promise: promise)
        }
    }
}
