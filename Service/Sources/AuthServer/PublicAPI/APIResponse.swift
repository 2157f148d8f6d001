@_spi(Service) internal import AuthContract
internal import AuthService
internal import HTTPTypes
internal import HummingbirdCore
internal import NIOCore
internal import StrictJSON

/// The response of a handler, before it becomes an HTTP response.
struct APIResponse: Sendable {
    var status = 200
    var body: [UInt8]?
    var contentType = "application/json"
    var headers: [(String, String)] = []
    var cacheControl = "no-store"
    /// The outcome in log and metrics: `ok`, the status of a registration, `verified`, `observed_` and a code, or an error code.
    var outcome = "ok"

    /// The error code of the refusal, also of a refusal that mode `observe` only reports; nil: there is none.
    var code: ErrorCode?

    static func json(_ body: some WireBody, outcome: String = "ok") -> APIResponse {
        APIResponse(body: body.bytes, outcome: outcome)
    }

    static func json(_ value: JSONValue, status: Int = 200) -> APIResponse {
        APIResponse(status: status, body: value.bytes)
    }

    static func json(_ object: JSONObject, status: Int = 200) -> APIResponse { .json(.object(object), status: status) }

    static let noContent = APIResponse(status: 204)

    /// The published keys: the only answer of the public API that caches may keep.
    static func keySet(_ keys: JSONObject) -> APIResponse {
        var answer = APIResponse.json(keys)
        answer.cacheControl = "public, max-age=\(SigningKeys.cacheLife)"
        return answer
    }

    /// The answer of `/verify`.
    static func verdict(_ verdict: VerifyResponse) -> APIResponse {
        var answer = APIResponse.json(verdict)
        switch verdict {
        case .verified: answer.outcome = verified
        case .observed(let code, _): (answer.outcome, answer.code) = (observed(code), code)
        }
        return answer
    }

    /// The answer of forward authentication. The identity is in headers, which a gateway copies. If a refusal is only observed,
    /// the headers are empty and not absent, so that the copies replace headers that the client sent.
    static func forwarded(_ verdict: VerifyResponse) -> APIResponse {
        var answer = APIResponse()
        var values = VerifiedIdentity.headerNames.map { _ in "" }
        switch verdict {
        case .verified(let identity):
            answer.outcome = verified
            values = identity.headerValues
        case .observed(let code, _):
            (answer.outcome, answer.code) = (observed(code), code)
            answer.headers.append((HeaderName.error, code.rawValue))
        }
        answer.headers += zip(VerifiedIdentity.headerNames, values)
        return answer
    }

    /// The outcome if a request that another service received is accepted. The verdict history also uses it for accepted
    /// requests that devices send to this service itself.
    static let verified = "verified"

    /// The outcome of a request that mode `observe` lets pass, although mode `enforce` would refuse it with this code.
    static func observed(_ code: ErrorCode) -> String { "observed_\(code.rawValue)" }
}

/// The parts that every response has.
struct ResponseFrame: Sendable {
    let requestID: String
    let now: UnixTime
    /// Whether the client asked for `application/problem+json`.
    var prefersProblem = false
    /// Whether the request was HEAD, whose response has no body.
    var omitsBody = false

    /// The answer to a refused request. A header names the code too, for a client behind a proxy that replaces bodies.
    func answer(_ refusal: Refusal, as status: Int? = nil, verified: Bool? = nil) -> APIResponse {
        let message = refusal.hint.map { "\(refusal.code.message) \($0)." } ?? refusal.code.message
        let body = ErrorBody(
            code: refusal.code.rawValue, message: message, requestID: requestID, serverTimestamp: now,
            verified: verified)
        let status = status ?? refusal.code.httpStatus
        var answer = APIResponse(
            status: status, body: body.bytes, outcome: refusal.code.rawValue, code: refusal.code)
        if prefersProblem {
            var problem = body.problem
            problem["status"] = .integer(Int64(status))
            answer.body = JSONValue.object(problem).bytes
            answer.contentType = "application/problem+json"
        }
        answer.headers.append((HeaderName.error, refusal.code.rawValue))
        if let retryAfter = refusal.retryAfter { answer.headers.append(("Retry-After", String(retryAfter))) }
        return answer
    }

    /// The status and fields as sent.
    func head(_ answer: APIResponse) -> HTTPResponse {
        var fields: HTTPFields = [
            .date: now.httpDate, .serverTime: now.description, .requestID: requestID,
            .cacheControl: answer.cacheControl,
        ]
        for (name, value) in answer.headers {
            if let name = HTTPField.Name(name) { fields[name] = value }
        }
        if answer.body != nil {
            fields.append(HTTPField(name: .contentType, value: answer.contentType))
            fields.append(HTTPField(name: .xContentTypeOptions, value: "nosniff"))
        }
        return HTTPResponse(status: .init(code: answer.status), headerFields: fields)
    }

    /// The response on the wire.
    func response(_ answer: APIResponse) -> Response {
        let head = head(answer)
        guard let bytes = answer.body else { return Response(status: head.status, headers: head.headerFields) }
        let body =
            omitsBody
            ? ResponseBody(contentLength: bytes.count) { try await $0.finish(nil) }
            : ResponseBody(byteBuffer: ByteBuffer(bytes: bytes))
        return Response(status: head.status, headers: head.headerFields, body: body)
    }
}

extension ResponseFrame {
    /// The parts that depend only on the request: its id, the time, the error format that `Accept` asks for, and whether the body is
    /// omitted (HEAD).
    init(for request: HTTPRequest, requestID: String, now: UnixTime) {
        self.init(
            requestID: requestID, now: now,
            prefersProblem: request.headerFields[values: .accept].contains {
                $0.lowercased().contains("application/problem+json")
            }, omitsBody: request.method == .head)
    }
}

extension Refusal {
    /// The refusal of bytes that are not a request.
    ///
    /// - Parameter status: the status that the HTTP library answers with.
    convenience init(notHTTP status: Int) {
        if status < 500 {
            self.init(
                .invalidRequest, "not an HTTP/1.1 request within the limits",
                hint: "It is not an HTTP/1.1 request, or its header is too large")
        } else {
            self.init(.internalError, "the HTTP library answered \(status)")
        }
    }

    /// The refusal that answers an error of a handler.
    static func answering(_ error: any Error) -> Refusal {
        switch error {
        case let refusal as Refusal: refusal
        case let error as StoreError: Refusal(error)
        case let error as JSONError: Refusal(malformed: error)
        case let error as ContractError: Refusal(malformed: error)
        default: Refusal(.internalError, "\(type(of: error)): \(error)")
        }
    }
}
