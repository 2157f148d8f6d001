import AuthContract
import Bytes
import StrictJSON
import SynheartAuth

/// A request as sent. A case may change any part of it after it was signed.
struct WireRequest: Sendable {
    var method: String
    /// Path and query, as on the request line.
    var target: String
    var headers: [(name: String, value: String)] = []
    var body: [UInt8] = []
    /// Whether the body is sent in chunks, without its length.
    var isChunked = false

    /// This request with other values of these headers. Nil removes a header.
    func with(_ changes: [(String, String?)]) -> WireRequest {
        var request = self
        for (name, value) in changes {
            request.headers.removeAll { $0.name == name }
            if let value { request.headers.append((name, value)) }
        }
        return request
    }

    /// This request, sent to another path or query.
    func to(_ target: String) -> WireRequest {
        var request = self
        request.target = target
        return request
    }

    /// This request, sent with another body.
    func with(body: [UInt8]) -> WireRequest {
        var request = self
        request.body = body
        return request
    }

    /// The value of a header; empty if there is none.
    func value(_ name: String) -> String { headers.first { $0.name == name }?.value ?? "" }
}

/// An HTTP answer. It may come from an attacker: its size is bounded, and nothing in it is trusted.
struct WireResponse: Sendable {
    let status: Int
    let headers: HeaderFields
    let body: [UInt8]

    var isSuccess: Bool { 200..<300 ~= status }

    /// The body as a JSON object; empty if it is not one.
    var json: JSONObject { (try? JSONValue(parsing: body))?.object ?? JSONObject() }

    /// The code of a refusal, from the body or else from the header, because a proxy may replace the body; nil: there is none.
    var code: String? {
        guard status >= 400 else { return nil }
        return json["error"]?.string ?? json["code"]?.string ?? headers.values(HeaderName.error).first
    }

    /// A text such as `401 CLOCK_SKEW`.
    var text: String { code.map { "\(status) \($0)" } ?? "\(status)" }
}

/// No answer arrived, or the answer was too large. It is unknown whether the request arrived.
struct NoAnswer: Error, CustomStringConvertible {
    let description: String

    init(_ error: any Error) { description = "no answer: \(error)" }
}

/// One request and its answer, for a report.
struct Exchange: Sendable {
    let url: String
    let sent: WireRequest
    /// The answer, or the reason why none arrived.
    let came: Result<WireResponse, NoAnswer>

    /// The largest number of bytes of a body, and of characters of one header's value, that a report shows.
    private static let shown = 2048
    /// Headers with a credential of the operator, whose values are not shown.
    private static let secret = ["authorization", HeaderName.serviceCredential.lowercased()]

    /// The exchange as JSON, for a program.
    var json: JSONObject {
        let sentHeaders = sent.headers.map { ($0.name, Self.secret.contains($0.name.lowercased()) ? "…" : $0.value) }
        var object: [(String, JSONValue)] = [
            ("method", .string(sent.method)), ("url", .string(url)), ("headers", Self.json(sentHeaders)),
            ("body", Self.text(sent.body)),
        ]
        switch came {
        case .success(let answer):
            object += [
                ("status", .integer(answer.status)),
                ("answer_headers", Self.json(answer.headers.lines.prefix(64).map { ($0.name, $0.value) })),
                ("answer_body", Self.text(answer.body)),
            ]
        case .failure(let error): object.append(("no_answer", .string(error.description)))
        }
        return JSONObject(object)
    }

    /// The exchange on one line, for people.
    var line: String {
        let answer =
            switch came {
            case .success(let answer): answer.text
            case .failure: "no answer"
            }
        return "\(sent.method) \(url.prefix(200)) (\(sent.body.count) bytes): \(answer.prefix(100))"
    }

    private static func json(_ headers: [(String, String)]) -> JSONValue {
        .array(headers.map { [.string($0.0), .string(String($0.1.prefix(shown)))] })
    }

    private static func text(_ bytes: [UInt8]) -> JSONValue {
        .string(String(decoding: bytes.prefix(shown), as: UTF8.self))
    }
}

/// The last exchanges of one case, for its report.
final class Trace: Sendable {
    private let kept = Locked<[Exchange]>([])

    private static let maximum = 8

    var exchanges: [Exchange] { kept.withLock { $0 } }

    func add(_ exchange: Exchange) {
        kept.withLock { kept in
            if kept.count == Self.maximum { kept.removeFirst() }
            kept.append(exchange)
        }
    }
}
