internal import HTTPTypes
internal import HummingbirdCore
internal import Logging
internal import NIOCore
internal import NIOHTTP1
internal import NIOHTTPTypes
internal import NIOPosix
internal import ServiceLifecycle

/// The pipeline of one connection: TLS, deadlines, HTTP/1.1 within its limits, and responses to bytes that are not HTTP.
struct ListenerChannel<Listener: ListenerResponder>: HTTPChannelHandler {
    typealias Value = AcceptedConnection

    let listener: Listener
    let settings: ReloadableSettings
    let connections: OpenConnections
    let certificate: TLSCertificate?
    let stopping: Stopping
    /// Whether a connection ends, and its request is cancelled, when the client closes its half of it. Only the request
    /// listener of a sidecar sets this. In the auth service, a registration continues when its client has gone.
    let endsWithClient: Bool
    let malformed: ExchangeHandler.MalformedAnswer

    /// Answers the requests of one connection. Set once there is a connection.
    private(set) var responder: HTTPChannelHandler.Responder = { _, _, _ in }

    init(
        listener: Listener, settings: ReloadableSettings, connections: OpenConnections, certificate: TLSCertificate?,
        stopping: Stopping, endsWithClient: Bool = false, malformed: @escaping ExchangeHandler.MalformedAnswer
    ) {
        self.listener = listener
        self.settings = settings
        self.connections = connections
        self.certificate = certificate
        self.stopping = stopping
        self.endsWithClient = endsWithClient
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
            if endsWithClient { try pipeline.addHandler(ClosesWithInput()) }
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
                    await connection.serve(parts, logger)
                }
            } else {
                await connection.serve(parts, logger)
            }
        } onCancel: {
            value.channel.close(promise: nil)
        }
    }

    private func serve(_ parts: AcceptedConnection.Parts, _ logger: Logger) async {
        guard endsWithClient else { return await handleHTTP(asyncChannel: parts, logger: logger) }
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await handleHTTP(asyncChannel: parts, logger: logger) }
            group.addTask { try? await parts.channel.closeFuture.get() }
            await group.next()
            group.cancelAll()
        }
    }

    private func answering(over connection: ConnectionContext) -> HTTPChannelHandler.Responder {
        { [listener] request, writer, _ in
            let response = try await listener.respond(to: request, over: connection)
            do {
                try await writer.write(response: response.head, body: response.body)
            } catch let error as HTTPParserError {
                // The HTTP library would answer an `HTTPParserError` in the middle of the response that has begun. Throw
                // another error.
                throw ResponseAborted(cause: error)
            }
        }
    }
}

extension ListenerChannel {
    /// The service that accepts connections at an address.
    ///
    /// - Parameter onRunning: gets the listening socket and `HOST:PORT` when it accepts connections.
    func service(
        host: String, port: Int, settings: ReloadableSettings, logger: Logger,
        onRunning: @escaping @Sendable (any Channel, String) async -> Void
    ) -> any Service {
        server(
            configuration: .init(
                address: .hostname(host, port: port), backlog: 1024,
                availableConnectionsDelegate: ConnectionLimit(settings: settings)),
            onServerRunning: { channel in
                let host = host.contains(":") ? "[\(host)]" : host
                await onRunning(channel, "\(host):\(channel.localAddress?.port ?? port)")
            }, eventLoopGroup: MultiThreadedEventLoopGroup.singleton, logger: logger)
    }
}

/// Closes the connection when the client closes its half.
private final class ClosesWithInput: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPRequestPart

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        context.fireUserInboundEventTriggered(event)
        if case .inputClosed? = event as? ChannelEvent { context.close(promise: nil) }
    }
}

/// The peer already has the largest number of connections. This error is not sent: the connection is closed.
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
