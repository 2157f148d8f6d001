import AsyncHTTPClient
import NIOCore
import NIOPosix
import Testing

@testable import ClientHTTP

@Suite struct StrictConfigurationTests {
    /// Sends the same answer for everything that it reads.
    private final class Answerer: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer

        private let answer: String

        init(_ answer: String) { self.answer = answer }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: answer)), promise: nil)
        }
    }

    /// Without the handler that the strict configuration adds, an answer with a status below 100 would end the process.
    @Test(.timeLimit(.minutes(5)), arguments: ["000", "042", "099", "100", "199"])
    func `an answer without a final status is an error`(status: String) async throws {
        let server = try await ServerBootstrap(group: .singletonMultiThreadedEventLoopGroup)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let answer = "HTTP/1.1 \(status) X\r\nContent-Length: 0\r\n\r\n"
                    try channel.pipeline.syncOperations.addHandler(Answerer(answer))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        let port = try #require(server.localAddress?.port)
        let client = HTTPClient(eventLoopGroupProvider: .singleton, configuration: .strict)
        let request = HTTPClientRequest(url: "http://127.0.0.1:\(port)/")
        await #expect(throws: (any Error).self) { try await client.execute(request, timeout: .milliseconds(500)) }
        try await client.shutdown()
        try await server.close()
    }
}
