internal import AuthService
internal import NIOCore
internal import RESP

/// Reads replies from a channel.
final class ReplyHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private var decoder = RESPDecoder()
    private var received = ByteBuffer()
    var connection: RedisConnection?

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        // TLS may deliver received data even after an error.
        guard connection != nil else { return }
        var part = unwrapInboundIn(data)
        if received.readableBytes == 0 { received = part } else { received.writeBuffer(&part) }
        // All replies of one read are handed over together.
        var replies: [RESPValue] = []
        do throws(RESPError) {
            while let value = try decoder.next(&received) { replies.append(value) }
            connection?.received(replies)
            if received.readableBytes > 0 { received.discardReadBytes() }
        } catch {
            connection?.received(replies)
            received.clear()
            end(StoreError(.unreadable, "Redis sent something else than RESP: \(error)"))
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        end(StoreError(.unavailable, "the connection to Redis is closed"))
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        end(StoreError(.unavailable, "the connection to Redis failed: \(ConnectionFailure.reason(error))"))
        context.close(promise: nil)
    }

    private func end(_ error: StoreError) {
        connection?.close(because: error)
        connection = nil
    }
}
