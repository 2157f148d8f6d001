import NIOCore
import NIOEmbedded
import NIOHPACK
import NIOHTTP2
import Testing

@testable import ClientHTTP

@Suite("The status of an answer over HTTP/2") struct StreamStatusGuardTests {
    private func channel() throws -> EmbeddedChannel {
        let channel = EmbeddedChannel()
        try StreamStatusGuard.add(to: channel).wait()
        return channel
    }

    private func headers(_ lines: [(String, String)]) -> HTTP2Frame.FramePayload {
        .headers(.init(headers: HPACKHeaders(lines)))
    }

    @Test(arguments: ["000", "042", "99", "1000", "-1", "-100", "+200", "", "2 0", "２００"])
    func `a status on which the HTTP client would trap ends the stream`(status: String) throws {
        let channel = try channel()
        #expect(throws: InvalidStatus.self) { try channel.writeInbound(headers([(":status", status)])) }
        #expect(!channel.isActive)
        _ = try? channel.writeInbound(HTTP2Frame.FramePayload.data(.init(data: .byteBuffer(ByteBuffer(string: "x")))))
        let passed: HTTP2Frame.FramePayload? = try channel.readInbound()
        #expect(passed == nil)
    }

    @Test(arguments: [
        [(":status", "100")], [(":status", "200"), ("a", "b")], [(":status", "999")], [("trailer", "x")],
    ])
    func `every other one passes, and trailers do`(lines: [(String, String)]) throws {
        let channel = try channel()
        try channel.writeInbound(headers(lines))
        let passed: HTTP2Frame.FramePayload? = try channel.readInbound()
        #expect(passed != nil)
        _ = try? channel.finish()
    }
}
