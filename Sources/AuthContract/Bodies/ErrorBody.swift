public import StrictJSON

/// What every refusal says.
public struct ErrorBody: WireBody, Hashable {
    /// The stable code: one of `ErrorCode`, or one of a newer service.
    public let code: String
    /// For an honest developer.
    public let message: String
    public let requestID: String
    /// The service's clock: what a client corrects its own by.
    public let serverTimestamp: UnixTime
    /// Where the refusal judges somebody else's request (`/verify`): always false there, absent elsewhere.
    public let verified: Bool?

    /// A body of its parts.
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

    /// The same as RFC 9457 problem details (`application/problem+json`).
    public var problem: JSONObject {
        .of(
            ("type", "about:blank"), ("title", .string(message)),
            ("status", ErrorCode(rawValue: code).map { .integer($0.httpStatus) }), ("detail", .string(message)),
            ("code", .string(code)), ("request_id", .string(requestID)),
            ("server_timestamp", .integer(serverTimestamp.seconds)), ("verified", verified.map { .bool($0) }))
    }
}
