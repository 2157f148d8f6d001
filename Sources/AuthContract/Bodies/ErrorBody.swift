public import StrictJSON

/// The body of every refusal.
public struct ErrorBody: WireBody, Hashable {
    /// The stable code: an `ErrorCode`, or a code of a newer service.
    public let code: String
    /// An explanation for the developer.
    public let message: String
    /// The id of the request, as in `X-Request-ID` and in the service's log. Empty if the body has none.
    public let requestID: String
    /// The service's clock. A client corrects its own clock with it.
    public let serverTimestamp: UnixTime
    /// False if the error is the verdict on a request that another service received (`/verify`, forward authentication); otherwise nil.
    public let verified: Bool?

    /// Memberwise initializer.
    public init(
        code: String, message: String, requestID: String, serverTimestamp: UnixTime, verified: Bool? = nil
    ) {
        self.code = code
        self.message = message
        self.requestID = requestID
        self.serverTimestamp = serverTimestamp
        self.verified = verified
    }

    public init(_ fields: JSONFields) throws {
        code = try fields.string("error")
        message = try fields.optionalString("message") ?? ""
        requestID = try fields.optionalString("request_id") ?? ""
        serverTimestamp = try fields.unixTime("server_timestamp")
        verified = try fields.optionalBool("verified")
    }

    public var json: JSONObject {
        .of(
            ("error", .string(code)), ("message", .string(message)), ("request_id", .string(requestID)),
            ("server_timestamp", .integer(serverTimestamp.seconds)), ("verified", verified.map { .bool($0) }))
    }

    /// This error as problem details (RFC 9457, `application/problem+json`).
    public var problem: JSONObject {
        .of(
            ("type", "about:blank"), ("title", .string(message)),
            ("status", ErrorCode(rawValue: code).map { .integer($0.httpStatus) }), ("detail", .string(message)),
            ("code", .string(code)), ("request_id", .string(requestID)),
            ("server_timestamp", .integer(serverTimestamp.seconds)), ("verified", verified.map { .bool($0) }))
    }
}
