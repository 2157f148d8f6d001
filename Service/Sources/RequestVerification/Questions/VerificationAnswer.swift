public import AuthContract
public import HTTPTypes

/// The result of verifying a request: what the backend must do with it.
public enum VerificationAnswer: Sendable, Hashable {
    /// Pass the request on. This device signed it.
    case accepted(VerifiedIdentity)
    /// Pass the request on without an identity: the app is in mode `observe`. In mode `enforce`, the request would be refused
    /// with this code.
    case observed(code: String)
    /// Send this answer to the client.
    case refused(RefusalAnswer)
    /// There is no verdict, so the request must not pass. Send this answer, a 503, to the client. The reason is for the log.
    case unavailable(RefusalAnswer, reason: String)

    /// The device that signed the request; nil in observe mode, and if the request does not pass.
    public var identity: VerifiedIdentity? {
        if case .accepted(let identity) = self { identity } else { nil }
    }

    /// The code with which mode `enforce` would refuse a request that mode `observe` lets pass; nil for other answers.
    public var observedCode: String? {
        if case .observed(let code) = self { code } else { nil }
    }

    /// The answer for the client; nil if the request passes.
    public var refusal: RefusalAnswer? {
        switch self {
        case .accepted, .observed: nil
        case .refused(let refusal), .unavailable(let refusal, _): refusal
        }
    }
}

/// A complete answer to a client whose request does not pass, in the form of the protocol's errors.
public struct RefusalAnswer: Error, Sendable, Hashable {
    /// The HTTP status.
    public let status: Int
    /// The code: an `ErrorCode`, or a code of a newer service.
    public let code: String
    /// The headers, `Content-Length` included. The answer to HEAD has them too.
    public let headers: HeaderFields
    /// The JSON body. The answer to HEAD leaves it out.
    public let body: [UInt8]
    /// Whether other requests would get no verdict either: the service is unreachable, or refuses the credential.
    package internal(set) var isOutage = false
    /// Whether the service refused the request. If so, it works.
    package internal(set) var isVerdict = false

    init(status: Int, _ error: ErrorBody, _ further: [(String, String)] = []) {
        self.status = status
        code = error.code
        body = error.bytes
        headers = HeaderFields(
            [
                ("Content-Type", "application/json"), ("Content-Length", String(body.count)),
                ("Cache-Control", "no-store"), (HeaderName.error, error.code),
            ] + further)
    }

    /// A refusal that this backend makes itself.
    ///
    /// - Parameter retryAfter: in seconds.
    package init(status: Int, code: ErrorCode, message: String, requestID: String, retryAfter: Int? = nil) {
        let error = ErrorBody(
            code: code.rawValue, message: message, requestID: requestID, serverTimestamp: .current)
        self.init(status: status, error, retryAfter.map { [("Retry-After", String($0))] } ?? [])
    }

    /// The head of the answer in the types of swift-http-types.
    public var head: HTTPResponse {
        var fields = HTTPFields()
        for line in headers.lines {
            guard let name = HTTPField.Name(line.name) else { continue }
            fields.append(HTTPField(name: name, value: line.value))
        }
        return HTTPResponse(status: HTTPResponse.Status(code: status), headerFields: fields)
    }
}
