public import AuthContract

/// Sends one request and returns the answer. Follows no redirects, answers no password challenge, keeps no cookies, caches
/// nothing.
///
/// A transport sends a request once. It never sends it again by itself, not even when a connection fails, because a second copy
/// may take effect too.
public protocol HTTPTransport: Sendable {
    /// Sends the request. Throws if no answer came, if the answer is larger than the request allows, or if the request cannot be
    /// sent as it is. If the request streams its answer, returns with the answer's head, or with the complete body as bytes.
    func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse
}

extension HTTPTransport {
    /// Sends the request and abandons the transport at the deadline.
    func send(_ request: TransportRequest, _ sleeper: any Sleeper) async throws(TransportError) -> TransportResponse {
        let answer = await withDeadline(request.deadline, sleeper) { () -> Result<TransportResponse, TransportError> in
            do throws(TransportError) { return .success(try await send(request)) } catch { return .failure(error) }
        }
        guard let answer else { throw TransportError("no answer in time") }
        return try answer.get()
    }
}

/// One HTTP request.
public struct TransportRequest: Sendable, Hashable {
    /// The method. `SynheartAuth.send` converts it to upper case under scheme 1.
    public let method: String
    /// The absolute URL.
    public let url: String
    /// The header lines, without Host and Content-Length.
    public let headers: HeaderFields
    /// The body; empty if there is none, or if `bodyFile` or `bodySource` has it.
    public let body: [UInt8]
    /// The path of a file to send as the body, in pieces; nil if the body is not a file.
    public let bodyFile: String?
    /// The source of a body to send in pieces; nil if the body is bytes or a file.
    public let bodySource: BodySource?
    /// The limit of the whole exchange; for `SynheartAuth.send`, of the whole call, recoveries included.
    public let deadline: Duration
    /// The most bytes of the answer's body, unless it is streamed.
    public let maximumAnswer: Int
    /// Whether the body of a 2xx or 3xx is ``TransportResponse/stream`` instead of bytes. The deadline then applies only until the
    /// answer's head has arrived.
    public let streamsAnswer: Bool

    /// The usual limit of an answer: 4 MiB.
    public static let usualMaximumAnswer = 4 * 1024 * 1024

    /// A request with a body in memory.
    public init(
        method: String, url: String, headers: HeaderFields, body: [UInt8], deadline: Duration = .seconds(30),
        maximumAnswer: Int = Self.usualMaximumAnswer, streamsAnswer: Bool = false
    ) {
        self.init(method, url, headers, body, nil, nil, deadline, maximumAnswer, streamsAnswer)
    }

    /// A request whose body is a file. The file must not change until the answer arrives.
    public init(
        method: String, url: String, headers: HeaderFields, bodyFile: String, deadline: Duration = .seconds(30),
        maximumAnswer: Int = Self.usualMaximumAnswer, streamsAnswer: Bool = false
    ) {
        self.init(method, url, headers, [], bodyFile, nil, deadline, maximumAnswer, streamsAnswer)
    }

    /// A request whose body is read from a source, in pieces.
    public init(
        method: String, url: String, headers: HeaderFields, bodySource: BodySource, deadline: Duration = .seconds(30),
        maximumAnswer: Int = Self.usualMaximumAnswer, streamsAnswer: Bool = false
    ) {
        self.init(method, url, headers, [], nil, bodySource, deadline, maximumAnswer, streamsAnswer)
    }

    private init(
        _ method: String, _ url: String, _ headers: HeaderFields, _ body: [UInt8], _ bodyFile: String?,
        _ bodySource: BodySource?, _ deadline: Duration, _ maximumAnswer: Int, _ streamsAnswer: Bool
    ) {
        self.method = method
        self.url = url
        self.headers = headers
        self.body = body
        self.bodyFile = bodyFile
        self.bodySource = bodySource
        self.deadline = deadline
        self.maximumAnswer = maximumAnswer
        self.streamsAnswer = streamsAnswer
    }

    /// This request with another method, headers and deadline, and with this source of the body unless it is nil.
    func with(
        method: String, headers: HeaderFields, deadline: Duration, bodySource: BodySource? = nil
    ) -> TransportRequest {
        TransportRequest(
            method, url, headers, body, bodyFile, bodySource ?? self.bodySource, deadline, maximumAnswer, streamsAnswer)
    }
}

/// One HTTP answer.
public struct TransportResponse: Sendable, Hashable {
    /// The status code.
    public let status: Int
    /// The header lines.
    public let headers: HeaderFields
    /// The body, without transfer coding; empty if the body is in `stream`.
    public let body: [UInt8]
    /// The body of a streamed answer; nil if the body is in `body`.
    public let stream: AnswerStream?

    /// An answer with its body in memory.
    public init(status: Int, headers: HeaderFields = HeaderFields(), body: [UInt8] = []) {
        self.status = status
        self.headers = headers
        self.body = body
        stream = nil
    }

    /// An answer whose body is still to be read.
    public init(status: Int, headers: HeaderFields = HeaderFields(), stream: AnswerStream) {
        self.status = status
        self.headers = headers
        body = []
        self.stream = stream
    }

    /// This answer with its body as a stream, if the request asked for a stream and the status is below 400: a transport may
    /// answer such a request with bytes. In any other case, returns the answer unchanged.
    package func streamed(for request: TransportRequest) -> TransportResponse {
        guard request.streamsAnswer, stream == nil, status < 400 else { return self }
        return TransportResponse(status: status, headers: headers, stream: AnswerStream(body))
    }
}

/// The failure of an exchange.
public struct TransportError: Error, Sendable, Hashable, CustomStringConvertible {
    /// An explanation for logs.
    public let description: String
    /// Whether the request was not sent, and cannot be sent as it is: no later attempt helps.
    public let isUnsendable: Bool
    /// Whether a part of the request may have left this device, so that it may have taken effect.
    public let mayHaveArrived: Bool

    /// A failure.
    ///
    /// - Parameters:
    ///   - description: an explanation for logs.
    ///   - isUnsendable: whether the request was not sent, and cannot be sent as it is.
    ///   - mayHaveArrived: whether a part of the request may have left this device; nil means the opposite of `isUnsendable`.
    ///     Pass false only if no byte has left.
    public init(_ description: String, isUnsendable: Bool = false, mayHaveArrived: Bool? = nil) {
        self.description = description
        self.isUnsendable = isUnsendable
        self.mayHaveArrived = mayHaveArrived ?? !isUnsendable
    }

    /// The answer is larger than the request allows. The request may have succeeded.
    public static let tooLarge = TransportError("the answer is too large")

    /// The answer's reader is too slow, and the waiting bytes exceed the limit.
    static let readerTooSlow = TransportError("the reader is too slow: too much of the answer waits for it on the disk")
}
