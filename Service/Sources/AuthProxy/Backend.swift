internal import AsyncHTTPClient
internal import AuthContract
internal import ClientHTTP
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix
internal import RequestVerification

/// The backend, over persistent connections: HTTP/1.1, or HTTP/2 where TLS negotiates it. Redirects are not followed, nothing
/// is decompressed, and nothing is sent twice.
final class Backend: Sendable {
    private let origin: RequestOrigin
    private let timeout: TimeAmount
    private let client: HTTPClient

    private static let connections = 256

    /// - Parameter timeout: the longest wait for the head of an answer, and between two pieces of its body.
    init(_ origin: RequestOrigin, timeout: Duration) {
        self.origin = origin
        self.timeout = TimeAmount(timeout)
        var configuration = HTTPClient.Configuration.strict
        configuration.timeout.connect = min(.seconds(5), self.timeout)
        configuration.timeout.read = self.timeout
        // Close idle connections before the server does, because a request that is sent while the server closes its
        // connection is lost. Some servers close idle connections after 2 s.
        configuration.connectionPool.idleTimeout = origin.scheme == .https ? .seconds(30) : .milliseconds(1500)
        configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = Self.connections
        // The default tracer records nothing, and the client would parse each URL a second time for it.
        configuration.tracing.tracer = nil
        client = HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
    }

    /// Closes the connections. Every later request fails.
    func shutdown() async { try? await client.shutdown() }

    /// The body of a request.
    enum Body: Sendable {
        case bytes([UInt8])
        /// Streamed, with its length if the client stated one. The wait for the head of the answer is longer by `within`.
        case pipe(BodyPipe, length: Int64?, within: Duration)
    }

    /// The head of an answer, and its unread body.
    struct Answer: Sendable {
        let status: Int
        let headers: HeaderFields
        let body: HTTPClientResponse.Body
        /// Closes the pipe of a streamed request body when the answer was read or is dropped; nil if the body was not streamed.
        let pipe: BodyPipe.Closer?
    }

    /// Sends a request once, and returns when the head of the answer has arrived. If the task is cancelled, the request is
    /// aborted.
    func send(
        _ method: String, _ target: String, headers: HeaderFields, body: Body
    ) async throws(BackendFailure) -> Answer {
        var message = HTTPClientRequest(url: origin.description + target)
        message.method = HTTPMethod(rawValue: method)
        for line in headers.lines { message.headers.add(name: line.name, value: line.value) }
        var limit = timeout
        var streamed: BodyPipe?
        switch body {
        case .bytes(let bytes): if !bytes.isEmpty { message.body = .bytes(ByteBuffer(bytes: bytes)) }
        case .pipe(let pipe, let length, let time):
            message.body = .stream(pipe, length: length.map { .known($0) } ?? .unknown)
            limit = limit + TimeAmount(time)
            streamed = pipe
        }
        do {
            let answer = try await client.execute(message, timeout: limit)
            let status = Int(answer.status.code)
            guard 200...999 ~= status else { throw InvalidStatus(status) }
            // After a status of 300 or more, the HTTP client does not read the rest of the request's body, so drop it.
            if status >= 300 { streamed?.discard() }
            return Answer(
                status: status, headers: HeaderFields(answer.headers.lazy.map { ($0.name, $0.value) }),
                body: answer.body, pipe: streamed.map { BodyPipe.Closer($0) })
        } catch {
            throw BackendFailure(error)
        }
    }
}

/// Why the backend gave no answer.
enum BackendFailure: Error, Sendable, CustomStringConvertible {
    /// Nothing was sent.
    case unreachable(String)
    /// The backend did not answer in time. It may have executed the request.
    case tooSlow
    /// Any other error, such as a connection that ended or bytes that are not HTTP. The backend may have executed the request.
    case broken(String)

    init(_ error: any Error) {
        switch error as? HTTPClientError {
        case HTTPClientError.connectTimeout?: self = .unreachable("no connection in time")
        case HTTPClientError.getConnectionFromPoolTimeout?: self = .unreachable("all connections are busy")
        case HTTPClientError.deadlineExceeded?, HTTPClientError.readTimeout?: self = .tooSlow
        default:
            let reason = String("\(error)".prefix(200))
            self = error is NIOConnectionError ? .unreachable(reason) : .broken(reason)
        }
    }

    var description: String {
        switch self {
        case .unreachable(let reason): "the backend cannot be reached: \(reason)"
        case .tooSlow: "the backend did not answer in time"
        case .broken(let reason): "the backend broke off: \(reason)"
        }
    }
}

extension TimeAmount {
    /// The time as a `TimeAmount`, at most a day, so that it always fits.
    init(_ duration: Duration) {
        let (seconds, attoseconds) = min(duration, .seconds(86_400)).components
        self = .nanoseconds(seconds * 1_000_000_000 + attoseconds / 1_000_000_000)
    }
}
