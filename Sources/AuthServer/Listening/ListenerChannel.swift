internal import HTTPTypes
internal import HummingbirdCore
internal import Logging
internal import NIOCore
internal import NIOHTTP1
internal import NIOHTTPTypes

/// The pipeline of one connection: TLS, deadlines, HTTP/1.1 within its limits, answers to what is not HTTP.
struct ListenerChannel: HTTPChannelHandler {
    typealias Value = NIOAsyncChannel<HTTPRequestPart, HTTPResponsePart>

    let responder: Responder
    let limits: RequestLimits
    let deadlines: ReadDeadlines
    let certificate: TLSCertificate?
    let malformed: @Sendable (_ status: Int) -> (head: HTTPResponse, body: ByteBuffer)

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
        channel.eventLoop.makeCompletedFuture {
            let pipeline = channel.pipeline.syncOperations
            try pipeline.addHandler(FlushTogether())
            if let certificate { try pipeline.addHandler(certificate.makeHandler()) }
            try ReadDeadlineHandlers.add(deadlines, to: pipeline) {
                var decoder = NIOHTTPDecoderLimitConfiguration()
                decoder.maxHeaderFieldSize = limits.headerBlock
                decoder.maxHeaderListSize = limits.headerBlock
                decoder.maxHeaderFieldCount = limits.headerCount
                try pipeline.configureHTTPServerPipeline(
                    withPipeliningAssistance: false, withErrorHandling: false, withOutboundHeaderValidation: true,
                    withEncoderConfiguration: .init(), withDecoderLimitConfiguration: decoder)
                try pipeline.addHandler(WireCodec(scheme: certificate == nil ? "http" : "https"))
            }
            try pipeline.addHandler(MalformedRequestHandler(malformed))
            try pipeline.addHandler(HTTPConnectionStateHandler(logger: logger))
            return try NIOAsyncChannel(
                wrappingChannelSynchronously: channel, configuration: .init(isOutboundHalfClosureEnabled: true))
        }
    }

    /// Cancelled, after the time that requests in flight had to finish, it ends at once, whatever the client does.
    func handle(value: Value, logger: Logger) async {
        await withTaskCancellationHandler {
            if #available(macOS 15, iOS 18, *) {
                await withTaskExecutorPreference(EventLoopExecutor(value.channel.eventLoop)) {
                    await handleHTTP(asyncChannel: value, logger: logger)
                }
            } else {
                await handleHTTP(asyncChannel: value, logger: logger)
            }
        } onCancel: {
            value.channel.close(promise: nil)
        }
    }
}
