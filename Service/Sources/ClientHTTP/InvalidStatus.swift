package import NIOCore
internal import NIOHTTP1

/// The error for an answer whose status is not a valid final status.
package struct InvalidStatus: Error, CustomStringConvertible {
    private let status: Int

    package init(_ status: Int) { self.status = status }

    package var description: String { "status \(status)" }

    /// Ends the connection of an answer with a status below 100. AsyncHTTPClient would treat the answer as informational,
    /// and trap when the answer ends. This is a value for `HTTPClient.Configuration.http1_1ConnectionDebugInitializer`.
    @Sendable package static func refuse(on channel: any Channel) -> EventLoopFuture<Void> {
        channel.eventLoop.makeCompletedFuture {
            let pipeline = channel.pipeline.syncOperations
            let decoder = try pipeline.handler(type: ByteToMessageHandler<HTTPResponseDecoder>.self)
            try pipeline.addHandler(Handler(), position: .after(decoder))
        }
    }

    private final class Handler: ChannelInboundHandler {
        typealias InboundIn = HTTPClientResponsePart

        private var hasFailed = false

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            guard !hasFailed else { return }
            if case .head(let head) = unwrapInboundIn(data), head.status.code < 100 {
                hasFailed = true
                context.fireErrorCaught(InvalidStatus(Int(head.status.code)))
                context.close(promise: nil)
            } else {
                context.fireChannelRead(data)
            }
        }
    }
}
