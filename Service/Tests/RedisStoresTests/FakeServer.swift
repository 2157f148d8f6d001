import Bytes
import NIOCore
import NIOPosix
import RESP

@testable import RedisStores

/// A server with scripted answers.
final class FakeServer: Sendable {
    enum Answer: Sendable {
        case bytes([UInt8])
        case nothing
        case close

        static func text(_ text: String) -> Answer { .bytes(Array(text.utf8)) }
    }

    private let channel: any Channel

    /// - Parameter answer: the answer to a command; nil: the answer of a healthy server.
    init(_ answer: @escaping @Sendable ([String]) -> Answer?) async throws {
        channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(Handler(answer))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
    }

    var endpoint: RedisURL.Endpoint { RedisURL.Endpoint(host: "127.0.0.1", port: channel.localAddress?.port ?? 0) }

    func close() async { try? await channel.close() }

    static let info = """
        redis_version:7.0.15\r
        run_id:aaaa\r
        role:master\r
        master_replid:bbbb\r
        master_replid2:0000\r
        evicted_keys:0\r
        maxmemory:0\r
        maxmemory_policy:noeviction\r

        """

    private static func healthy(_ command: [String]) -> Answer {
        switch command.first {
        case "HELLO": .text("%1\r\n+proto\r\n:3\r\n")
        case "INFO": .text("$\(info.utf8.count)\r\n\(info)\r\n")
        case "TIME": .text("*2\r\n$10\r\n1750000000\r\n$1\r\n0\r\n")
        default: .text("+OK\r\n")
        }
    }

    private final class Handler: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer

        private let answer: @Sendable ([String]) -> Answer?
        private var decoder = RESPDecoder()
        private var received = ByteBuffer()

        init(_ answer: @escaping @Sendable ([String]) -> Answer?) { self.answer = answer }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            var part = unwrapInboundIn(data)
            received.writeBuffer(&part)
            while let command = try? decoder.next(&received) {
                let words = command.elements?.map { $0.text ?? "" } ?? []
                switch answer(words) ?? FakeServer.healthy(words) {
                case .bytes(let bytes): context.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: bytes)), promise: nil)
                case .nothing: break
                case .close: context.close(promise: nil)
                }
            }
        }
    }
}
