internal import AuthContract
internal import HTTPTypes
public import Hummingbird
internal import NIOCore
public import RequestVerification

/// A middleware that passes a request to the route only if the verifier accepts it, or if observe mode lets it pass.
/// ``VerificationRequestContext/identity`` tells the route who signed.
///
/// Add it before everything that reads the body or needs an identity. If two of these middlewares are nested, only
/// the outer one asks the service, and the verifier of the inner one is not used. So use the same verifier for all
/// routes below the outer one.
public struct VerificationMiddleware<Context: VerificationRequestContext>: RouterMiddleware {
    private let verifier: RequestVerifier

    /// A middleware that verifies requests with this verifier.
    public init(_ verifier: RequestVerifier) { self.verifier = verifier }

    /// Verifies the request, and passes it on with the context's ``VerificationRequestContext/verification`` set, or refuses it.
    @concurrent public func handle(
        _ request: Request, context: Context, next: @concurrent (Request, Context) async throws -> Response
    ) async throws -> Response {
        var head = request.head
        head.headerFields.removeIdentityHeaders()
        // Do not verify the request again. The auth service would refuse the second verification of the same request as a replay.
        guard context.verification == nil else {
            return try await next(Request(head: head, body: request.body), context)
        }
        if let length = request.headers[.contentLength].flatMap({ Int($0) }), length > verifier.bodyLimit {
            return Response(verifier.bodyTooLarge(), to: request)
        }
        let body: ByteBuffer
        do { body = try await request.body.collect(upTo: verifier.bodyLimit) } catch is NIOTooManyBytesError {
            return Response(verifier.bodyTooLarge(), to: request)
        }
        let answer = await verifier.verify(
            ReceivedRequest(request.head, body: .bytes(Array(body.readableBytesView)), peer: Self.peer(of: context)))
        if let refusal = answer.refusal { return Response(refusal, to: request) }
        var context = context
        context.verification = answer
        return try await next(Request(head: head, body: RequestBody(buffer: body)), context)
    }

    private static func peer(of context: Context) -> ReceivedRequest.Peer {
        guard let context = context as? any RemoteAddressRequestContext else { return .unknown }
        guard let address = context.remoteAddress else { return .unknown }
        return address.ipAddress.map { .address($0) } ?? .unixSocket
    }
}

extension Response {
    /// A refusal as the answer to a request.
    fileprivate init(_ refusal: RefusalAnswer, to request: Request) {
        let head = refusal.head
        // The headers of a response to HEAD describe the body that the response omits, including its length.
        let body = request.method == .head ? ResponseBody() : ResponseBody(byteBuffer: ByteBuffer(bytes: refusal.body))
        self.init(status: head.status, headers: head.headerFields, body: body)
    }
}
