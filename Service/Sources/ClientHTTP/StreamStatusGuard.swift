internal import NIOCore
internal import NIOHPACK
internal import NIOHTTP2

/// Ends a stream of HTTP/2 whose answer has a status that is not a three-digit number from 100 on. The HTTP client would
/// trap on it.
///
/// `InvalidStatus.refuse` does the same for HTTP/1.1.
final class StreamStatusGuard: ChannelInboundHandler {
    typealias InboundIn = HTTP2Frame.FramePayload

    private var hasFailed = false

    /// Adds the guard to a stream. This is a value for `HTTPClient.Configuration.http2StreamChannelDebugInitializer`.
    @Sendable static func add(to channel: any Channel) -> EventLoopFuture<Void> {
        channel.eventLoop.makeCompletedFuture {
            try channel.pipeline.syncOperations.addHandler(StreamStatusGuard(), position: .first)
        }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !hasFailed else { return }
        // Trailers have no status.
        if case .headers(let frame) = unwrapInboundIn(data),
            let wrong = frame.headers[":status"].first(where: { !Self.isStatus($0) })
        {
            hasFailed = true
            context.fireErrorCaught(InvalidStatus(Int(wrong) ?? 0))
            context.close(promise: nil)
        } else {
            context.fireChannelRead(data)
        }
    }

    private static func isStatus(_ text: String) -> Bool {
        let digits = Array(text.utf8)
        return digits.count == 3 && digits[0] != UInt8(ascii: "0")
            && digits.allSatisfy { UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }
    }
}
