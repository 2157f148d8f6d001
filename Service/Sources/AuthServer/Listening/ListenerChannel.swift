internal import HTTPTypes
internal import HummingbirdCore
internal import Logging
internal import NIOCore
internal import NIOHTTP1
internal import NIOHTTPTypes

/// The pipeline of one connection: TLS, deadlines, HTTP/1.1 within its limits, and responses to bytes that are not HTTP.
struct ListenerChannel<Listener: ListenerResponder>: HTTPChannelHandler {
    typealias Value = AcceptedConnection

    let listener: Listener
    let settings: ReloadableSettings
    let connections: OpenConnections
    let certificate: TLSCertificate?
    let stopping: Stopping
    let malformed: ExchangeHandler.MalformedAnswer

    /// Answers the requests of one connection. Set once there is a connection.
    private(set) var responder: HTTPChannelHandler.Responder = { _, _, _ in }

    init(
        listener: Listener, settings: ReloadableSettings, connections: OpenConnections, certificate: TLSCertificate?,
        stopping: Stopping, malformed: @escaping ExchangeHandler.MalformedAnswer
    ) {
        self.listener = listener
        self.settings = settings
        self.connections = connections
        self.certificate = certificate
        self.stopping = stopping
        self.malformed = malformed
    }

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
        guard connections.admit(channel) else {
            channel.close(promise: nil)
            return channel.eventLoop.makeFailedFuture(TooManyConnections())
        }
        let (limits, deadlines) = (settings.limits, settings.deadlines)
        return channel.eventLoop.makeCompletedFuture {
            let pipeline = channel.pipeline.syncOperations
            try pipeline.addHandler(FlushTogether())
            if let certificate { try pipeline.addHandler(certificate.makeHandler()) }
            let deadline = ConnectionDeadline(deadlines)
            try pipeline.addHandler(DeadlineHandler(deadline))
            var decoder = NIOHTTPDecoderLimitConfiguration()
            decoder.maxHeaderFieldSize = limits.headerBlock
            decoder.maxHeaderListSize = limits.headerBlock
            decoder.maxHeaderFieldCount = limits.headerCount
            try pipeline.configureHTTPServerPipeline(
                // HTTPTypes has validated the fields.
                withPipeliningAssistance: false, withErrorHandling: false, withOutboundHeaderValidation: false,
                withEncoderConfiguration: .init(), withDecoderLimitConfiguration: decoder)
            try pipeline.addHandler(
                ExchangeHandler(
                    scheme: certificate == nil ? "http" : "https", deadline: deadline, stopping: stopping,
                    malformed: malformed))
            return try AcceptedConnection(channel)
        }
    }

    /// Serves the connection. When the shutdown time is over, the connection is cancelled and ends at once.
    func handle(value: Value, logger: Logger) async {
        var connection = self
        let parts = value.take()
        connection.responder = answering(over: ConnectionContext(value.channel, nat64: settings.nat64))
        await withTaskCancellationHandler {
            if #available(macOS 15, iOS 18, *) {
                await withTaskExecutorPreference(EventLoopExecutor(value.channel.eventLoop)) { [connection] in
                    await connection.handleHTTP(asyncChannel: parts, logger: logger)
                }
            } else {
                await connection.handleHTTP(asyncChannel: parts, logger: logger)
            }
        } onCancel: {
            value.channel.close(promise: nil)
        }
    }

    private func answering(over connection: ConnectionContext) -> HTTPChannelHandler.Responder {
        { [listener] request, writer, _ in
            let response = try await listener.respond(to: request, over: connection)
            do {
                try await writer.write(response: response.head, body: response.body)
            } catch let error as HTTPParserError {
                // The library would answer an HTTPParserError in the middle of a response that has begun.
                throw ResponseAborted(cause: error)
            }
        }
    }
}

/// The peer has used up its share of connections. This error is not sent: the connection is closed.
private struct TooManyConnections: Error {}

private struct ResponseAborted: Error {
    let cause: HTTPParserError
}

/// Runs a connection's task on the connection's own event loop, where its bytes arrive and leave: no request changes
/// threads.
///
/// Code between two awaits delays the other connections of the loop, so no handler may block. Stores answer from their own
/// threads.
@available(macOS 15, iOS 18, *)
private final class EventLoopExecutor: TaskExecutor {
    private let eventLoop: any EventLoop

    init(_ eventLoop: any EventLoop) { self.eventLoop = eventLoop }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        eventLoop.execute { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}
