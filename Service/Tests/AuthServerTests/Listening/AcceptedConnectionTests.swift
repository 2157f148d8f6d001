import NIOCore
import NIOPosix
import Testing

@testable import AuthServer

@Suite struct `Accepted connections` {
    @Test func `one that is never handled is closed, and does not end the process`() async throws {
        let listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { _ = try AcceptedConnection(channel) }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        let client = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .connect(to: try #require(listener.localAddress)).get()
        // The server closes the connection.
        try await client.closeFuture.get()
        try await listener.close()
    }
}
