import AuthContract
import Foundation
import StrictJSON

/// An answer before it is sent to the client.
struct PlayedAnswer: Sendable {
    var status: Int
    var headers: [(name: String, value: String)] = []
    var body: [UInt8] = []

    var wire: WireResponse {
        WireResponse(status: status, headers: HeaderFields(headers.map { ($0.name, $0.value) }), body: body)
    }

    /// Sets a header, replacing any other of its name.
    mutating func set(_ name: String, _ value: String) {
        headers.removeAll { $0.name.lowercased() == name.lowercased() }
        headers.append((name, value))
    }

    /// Changes the members of a JSON body.
    mutating func edit(_ change: (inout [(String, JSONValue)]) -> Void) {
        guard let object = (try? JSONValue(parsing: body))?.object else { return }
        var members = object.members.map { ($0.name, $0.value) }
        change(&members)
        body = Array(JSONValue.object(JSONObject(members)).text().utf8)
    }
}

/// A fault that a client's request meets.
enum Fault: Sendable {
    /// The service's answer is changed.
    case changed(@Sendable (inout PlayedAnswer) -> Void)
    /// The service's answer comes later.
    case late(Duration)
    /// The service gets the request, but the connection ends without an answer.
    case lost
    /// The connection ends, and the service does not get the request.
    case dropped
    /// The service gets the request, but the connection ends in the middle of the answer.
    case cut
    /// The service does not get the request. The client gets this answer, made for the service's time.
    case answered(@Sendable (UnixTime) -> PlayedAnswer)
    /// The client's process is killed, after or before the service got the request.
    case killed(afterService: Bool)

    /// A refusal in the contract's form.
    ///
    /// - Parameters:
    ///   - code: its code and status.
    ///   - ahead: the seconds by which its time is ahead of the service's.
    ///   - retryAfter: the seconds of `Retry-After`; nil: no such header.
    ///   - hasPage: whether a gateway replaced the body by its own page, and kept the headers.
    static func refused(_ code: ErrorCode, ahead: Int64 = 0, retryAfter: Int? = nil, hasPage: Bool = false) -> Fault {
        .answered { now in
            let time = now.seconds + ahead
            var answer = hasPage ? page(code.httpStatus) : PlayedAnswer(status: code.httpStatus)
            answer.headers += [
                (HeaderName.error, code.rawValue), (HeaderName.serverTime, String(time)), ("Cache-Control", "no-store"),
            ]
            if let retryAfter { answer.set("Retry-After", String(retryAfter)) }
            guard !hasPage else { return answer }
            answer.set("Content-Type", "application/json")
            let body: JSONValue = [
                "error": .string(code.rawValue), "message": "Played by the conformance program.",
                "request_id": "00000000-0000-4000-8000-000000000000", "server_timestamp": .integer(time),
            ]
            answer.body = Array(body.text().utf8)
            return answer
        }
    }

    /// The page of a gateway or a captive portal, which is no answer of the protocol.
    static func paged(_ status: Int) -> Fault { .answered { _ in page(status) } }

    /// A redirect to another path of the same origin.
    static let redirected = Fault.answered { _ in
        PlayedAnswer(status: 307, headers: [("Location", RequestName.elsewhere)])
    }

    private static func page(_ status: Int) -> PlayedAnswer {
        var answer = PlayedAnswer(status: status, headers: [("Content-Type", "text/html")])
        // An HTTP authentication challenge, after which HTTP libraries send the request again.
        if status == 401 { answer.set("WWW-Authenticate", "Basic realm=\"gateway\"") }
        answer.body = Array("<!DOCTYPE html><title>Gateway</title><p>This page is no answer of the service.".utf8)
        return answer
    }
}

/// The listener's reaction to a request.
enum Delivery: Sendable {
    case answer(PlayedAnswer)
    /// Ends the connection in the middle of the answer's body.
    case partOf(PlayedAnswer)
    /// Ends the connection without an answer.
    case nothing
}
