import AuthContract
import NIOCore
import NIOHTTP1
import NIOPosix

/// Listens for a client on a free port, and answers as instructed. It can also end a connection without an
/// answer, or in the middle of an answer.
struct FaultListener: Sendable {
    private typealias Connection = NIOAsyncChannel<HTTPServerRequestPart, HTTPServerResponsePart>
    typealias Responder = @Sendable (WireRequest) async -> Delivery

    private let listener: NIOAsyncChannel<Connection, Never>
    let port: Int

    /// The largest body of a client's request, in bytes.
    private static let maximumBody = 1024 * 1024

    init(host: String) async throws {
        listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton).bind(host: host, port: 0) {
            channel in
            channel.eventLoop.makeCompletedFuture {
                // No pipelining assistance: it would hold back the end of a connection until the answer is sent.
                try channel.pipeline.syncOperations.configureHTTPServerPipeline(
                    withPipeliningAssistance: false, withErrorHandling: false)
                return try Connection(wrappingChannelSynchronously: channel)
            }
        }
        guard let port = listener.channel.localAddress?.port else {
            throw CommandFailure(.impossible, "\(host) gives no port to listen on")
        }
        self.port = port
    }

    /// Serves connections until the task is cancelled.
    func run(_ respond: @escaping Responder) async throws {
        try await withThrowingDiscardingTaskGroup { group in
            try await listener.executeThenClose { connections in
                for try await connection in connections {
                    group.addTask { await Self.serve(connection, respond) }
                }
            }
        }
    }

    /// Serves the requests of one connection, one after another. A client may end it at any point.
    private static func serve(_ connection: Connection, _ respond: Responder) async {
        try? await connection.executeThenClose { parts, answers in
            var request: WireRequest?
            for try await part in parts {
                switch part {
                case .head(let head):
                    request = WireRequest(
                        method: head.method.rawValue, target: head.uri,
                        headers: head.headers.map { ($0.name, $0.value) })
                case .body(let bytes):
                    request?.body += Array(bytes.readableBytesView)
                    guard request?.body.count ?? 0 <= maximumBody else { return }
                case .end:
                    guard let whole = request else { return }
                    request = nil
                    switch await respond(whole) {
                    case .nothing: return
                    case .partOf(let answer):
                        try await answers.write(.head(head(of: answer)))
                        return try await answers.write(.body(.byteBuffer(ByteBuffer(bytes: answer.body.prefix(2)))))
                    case .answer(let answer):
                        try await answers.write(.head(head(of: answer)))
                        try await answers.write(.body(.byteBuffer(ByteBuffer(bytes: answer.body))))
                        try await answers.write(.end(nil))
                    }
                }
            }
        }
    }

    private static func head(of answer: PlayedAnswer) -> HTTPResponseHead {
        var headers = HTTPHeaders(answer.headers.map { ($0.name, $0.value) })
        if answer.status != 204 { headers.replaceOrAdd(name: "Content-Length", value: String(answer.body.count)) }
        return HTTPResponseHead(
            version: .http1_1, status: HTTPResponseStatus(statusCode: answer.status), headers: headers)
    }
}
