internal import AuthContract
internal import AuthService
internal import Foundation
internal import HTTPTypes
internal import Hummingbird
internal import StrictJSON

/// What a handler answers, before it becomes an HTTP response.
struct Answer: Sendable {
    var status = 200
    var body: [UInt8]?
    var contentType = "application/json"
    var headers: [(String, String)] = []
    var cacheControl = "no-store"
    /// What the log says became of the request.
    var outcome = "ok"

    static func json(_ body: some WireBody, outcome: String = "ok") -> Answer {
        Answer(body: body.bytes, outcome: outcome)
    }

    static func json(_ value: JSONValue) -> Answer { Answer(body: value.bytes) }

    static let noContent = Answer(status: 204)
}

/// What goes with every answer.
struct AnswerFrame: Sendable {
    let requestID: String
    let now: UnixTime
    /// Whether the client asked for `application/problem+json`.
    let prefersProblem: Bool

    /// The error body of a refusal.
    func answer(_ refusal: Refusal, verified: Bool? = nil) -> Answer {
        let message = refusal.hint.map { "\(refusal.code.message) \($0)." } ?? refusal.code.message
        let body = ErrorBody(
            code: refusal.code.rawValue, message: message, requestID: requestID, serverTimestamp: now,
            verified: verified)
        var answer = Answer(status: refusal.code.httpStatus, outcome: refusal.code.rawValue)
        answer.body = prefersProblem ? JSONValue.object(body.problem).bytes : body.bytes
        if prefersProblem { answer.contentType = "application/problem+json" }
        if let retryAfter = refusal.retryAfter { answer.headers.append(("Retry-After", String(retryAfter))) }
        return answer
    }

    /// The response on the wire.
    func response(_ answer: Answer) -> Response {
        var headers = HTTPFields()
        headers[Self.serverTime] = now.description
        headers[Self.requestID] = requestID
        headers[.cacheControl] = answer.cacheControl
        for (name, value) in answer.headers {
            if let name = HTTPField.Name(name) { headers[name] = value }
        }
        guard let body = answer.body else {
            return Response(status: .init(code: answer.status), headers: headers)
        }
        headers[.contentType] = answer.contentType
        headers[.xContentTypeOptions] = "nosniff"
        return Response(
            status: .init(code: answer.status), headers: headers,
            body: ResponseBody(byteBuffer: ByteBuffer(bytes: body)))
    }

    private static let serverTime = HTTPField.Name(HeaderName.serverTime) ?? .date
    private static let requestID = HTTPField.Name(HeaderName.requestID) ?? .date
}
