internal import AuthContract
internal import AuthService
internal import HTTPTypes
internal import HummingbirdCore
internal import NIOCore
internal import StrictJSON

/// A request to a route of the public API. Its head is parsed, and its body is not read yet.
struct PublicRequest {
    let http: Request
    let connection: ConnectionContext
    /// The bytes of the listener's body budget that this request's body has taken.
    let room: BodyBudget.Share
    let target: RequestTarget
    let headers: HeaderFields
    let provenance: RequestProvenance

    /// Finds the route of a request.
    ///
    /// - Throws: a `Refusal` or a `ContractError`.
    static func route(of head: HTTPRequest, _ forwarded: ForwardedRequest?) throws -> (Route, RequestTarget) {
        if forwarded == nil { try head.requireKnownExpectation() }
        // A forwarded request goes to the forward route. Its own target is parsed later, when the request is judged.
        let target = try RequestTarget(forwarded == nil ? head.path ?? "" : Route.forward.rawValue)
        guard let route = Route(rawValue: target.path.text) else { throw Refusal(.notFound, "no such path") }
        return (route, target)
    }

    /// Parses the rest of the head.
    ///
    /// - Throws: a `Refusal` or a `ContractError`.
    init(
        _ http: Request, to route: Route, _ target: RequestTarget, _ headers: HeaderFields,
        over connection: ConnectionContext, trusting proxies: TrustedProxies, room: BodyBudget.Share
    ) throws {
        if route == .forward { try http.head.requireKnownExpectation() }
        guard route == .forward || route.methods.contains(http.method.rawValue) else {
            throw Refusal(.methodNotAllowed, "not \(route.method)")
        }
        provenance = try RequestProvenance(of: http.head, over: connection, trusting: proxies)
        if route.hasJSONBody { try http.requireJSON() }
        self.http = http
        self.connection = connection
        self.room = room
        self.target = target
        self.headers = headers
    }

    /// The body, exactly as received.
    ///
    /// - Parameter limit: the largest accepted size, in bytes.
    func body(upTo limit: Int) async throws -> [UInt8] {
        try await http.bytes(upTo: limit, within: room, over: connection)
    }

    /// The request with this body, as the service judges it.
    func incoming(_ body: [UInt8]) -> IncomingRequest {
        IncomingRequest(
            method: http.method.rawValue, target: target, headers: headers, body: .bytes(body), provenance: provenance)
    }
}

extension HTTPRequest {
    /// Refuses a request with an expectation other than `100 Continue` (RFC 9110 section 10.1.1).
    func requireKnownExpectation() throws(Refusal) {
        for value in headerFields[values: .expect] where value.lowercased() != "100-continue" {
            let reason = "Expect may only be 100-continue"
            throw Refusal(.invalidRequest, reason, hint: reason)
        }
    }
}

extension Request {
    /// The bytes of the body, exactly as received. A client that waits for `100 Continue` gets it first.
    ///
    /// A body of more than `limit` bytes, or one that exceeds `room`, is refused without waiting for the rest of it.
    func bytes(
        upTo limit: Int, within room: BodyBudget.Share, over connection: ConnectionContext
    ) async throws -> [UInt8] {
        // The decoder has refused a second Content-Length.
        let length = headers.first { $0.name == .contentLength }?.value
        if let length = length.flatMap({ Int($0) }), length > limit {
            throw Refusal(.payloadTooLarge, "\(length) bytes")
        }
        // A request without a length has no body (RFC 9112 section 6.3).
        guard length != nil || headers.contains(.transferEncoding) else { return [] }
        if headers.contains(.expect) { try await connection.sendContinue() }
        var bytes: [UInt8] = []
        for try await buffer in body {
            guard bytes.count + buffer.readableBytes <= limit else {
                throw Refusal(.payloadTooLarge, "more than \(limit) bytes")
            }
            try room.cover(bytes.count + buffer.readableBytes)
            bytes.append(contentsOf: buffer.readableBytesView)
        }
        return bytes
    }

    /// Refuses a body unless its headers declare uncompressed JSON.
    func requireJSON() throws(Refusal) {
        let json = "application/json"
        let types = headers[values: .contentType]
        guard types.count == 1, let type = types.first,
            type == json || type.prefix(while: { $0 != ";" }).lowercased().trimmingSuffix(" ") == json
        else {
            throw Refusal(.unsupportedMediaType, "Content-Type is not application/json")
        }
        // The service does not decompress, because the signature would cover other bytes than the parser reads.
        let codings = headers[values: .contentEncoding]
        guard codings.isEmpty || codings.map({ $0.lowercased() }) == ["identity"] else {
            throw Refusal(.unsupportedMediaType, "Content-Encoding is not identity")
        }
    }

    /// The value of `Authorization`; nil unless there is exactly one.
    var authorization: String? {
        let values = headers[values: .authorization]
        return values.count == 1 ? values.first : nil
    }
}

extension Route {
    /// The methods that the route answers. Forward authentication also answers every other method.
    ///
    /// Only the published documents answer HEAD. A device signs the method, so its GET and HEAD are different requests.
    var methods: [String] { isPublished ? ["GET", "HEAD"] : [method] }

    /// Whether the route answers every caller with the same document.
    private var isPublished: Bool {
        switch self {
        case .keySet, .wellKnownKeySet, .openIDConfiguration, .authorizationServer: true
        case .challenge, .register, .rotateKey, .status, .device, .token, .verify, .forward: false
        }
    }

    /// The status of a refusal. Forward authentication answers only 401, 403 or 503: gateways pass on 401 and 403, and some replace
    /// every other status by 500.
    func httpStatus(of code: ErrorCode) -> Int {
        switch code.httpStatus {
        case let status where self != .forward || status == 401: status
        case 429, 500...: 503
        default: 403
        }
    }

    /// Whether a request has a body of JSON.
    var hasJSONBody: Bool { method == "POST" }
}

/// The maximum depth of JSON in a body.
let maximumJSONDepth = 16

extension WireBody {
    /// Parses a body that was bounded when it was received.
    init(received bytes: [UInt8]) throws {
        try self.init(parsing: bytes, limits: JSONValue.Limits(bytes: max(bytes.count, 1), depth: maximumJSONDepth))
    }
}

extension String {
    fileprivate func trimmingSuffix(_ character: Character) -> Substring {
        var text = self[...]
        while text.last == character { text.removeLast() }
        return text
    }
}
