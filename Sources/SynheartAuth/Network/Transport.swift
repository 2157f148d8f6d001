public import AuthContract

/// Carries one request to a service and its answer back. Follows no redirects, keeps no cookies, caches nothing.
public protocol Transport: Sendable {
    /// Sends the request; throws where no answer came, or one larger than the request allows.
    func send(_ request: TransportRequest) async throws(TransportError) -> TransportAnswer
}

extension Transport {
    /// Sends the request; one that has no answer by its deadline is left behind, whatever the transport does about it.
    func send(_ request: TransportRequest, _ sleeper: any Sleeper) async throws(TransportError) -> TransportAnswer {
        let answer = await withDeadline(request.deadline, sleeper) { () -> Result<TransportAnswer, TransportError> in
            do throws(TransportError) { return .success(try await send(request)) } catch { return .failure(error) }
        }
        guard let answer else { throw TransportError("no answer in time") }
        return try answer.get()
    }
}

/// One HTTP request.
public struct TransportRequest: Sendable, Hashable {
    /// The method, upper-case.
    public let method: String
    /// The absolute URL.
    public let url: String
    /// The header lines beside Host and Content-Length.
    public let headers: HeaderFields
    /// The body; empty for none, and where it is a file's content.
    public let body: [UInt8]
    /// The path of the file whose content is the body, to be sent in pieces, however large it is; nil: `body` is.
    public let bodyFile: String?
    /// How long the whole exchange may take; with `SynheartAuth.send`, the whole call, whatever it recovers from.
    public let deadline: Duration
    /// Bytes that the answer's body may have.
    public let maximumAnswer: Int

    /// A request of its parts.
    public init(
        method: String, url: String, headers: HeaderFields, body: [UInt8], deadline: Duration = .seconds(30),
        maximumAnswer: Int = 64 * 1024
    ) {
        self.method = method
        self.url = url
        self.headers = headers
        self.body = body
        bodyFile = nil
        self.deadline = deadline
        self.maximumAnswer = maximumAnswer
    }

    /// A request whose body is the content of the file at this path, which must not change until the answer is there.
    public init(
        method: String, url: String, headers: HeaderFields, bodyFile: String, deadline: Duration = .seconds(30),
        maximumAnswer: Int = 64 * 1024
    ) {
        self.method = method
        self.url = url
        self.headers = headers
        body = []
        self.bodyFile = bodyFile
        self.deadline = deadline
        self.maximumAnswer = maximumAnswer
    }

    /// The same with another method, other headers and less time.
    func with(method: String, headers: HeaderFields, deadline: Duration) -> TransportRequest {
        if let bodyFile {
            return TransportRequest(
                method: method, url: url, headers: headers, bodyFile: bodyFile, deadline: deadline,
                maximumAnswer: maximumAnswer)
        }
        return TransportRequest(
            method: method, url: url, headers: headers, body: body, deadline: deadline, maximumAnswer: maximumAnswer)
    }
}

/// One HTTP answer.
public struct TransportAnswer: Sendable, Hashable {
    /// The status code.
    public let status: Int
    /// The header lines.
    public let headers: HeaderFields
    /// The body, decoded of any transfer coding.
    public let body: [UInt8]

    /// An answer of its parts.
    public init(status: Int, headers: HeaderFields = HeaderFields(), body: [UInt8] = []) {
        self.status = status
        self.headers = headers
        self.body = body
    }
}

/// No answer came. Whether the request arrived is unknown.
public struct TransportError: Error, Sendable, Hashable, CustomStringConvertible {
    /// For logs.
    public let description: String

    /// An error.
    public init(_ description: String) { self.description = description }
}
