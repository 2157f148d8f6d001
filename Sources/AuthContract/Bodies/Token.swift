public import StrictJSON

/// Asks for a device token: `POST /auth/v1/token`.
public struct TokenRequest: WireBody, Hashable {
    /// Whom the token is for: one of the app's `token_audiences`; the app itself where absent.
    public let audience: String?

    /// A request.
    public init(audience: String? = nil) { self.audience = audience }

    public init(_ fields: JSONFields) throws { audience = try fields.optionalString("audience") }

    public var json: JSONObject { .of(("audience", audience.map { .string($0) })) }
}

/// A device token, which any backend can check offline against the key set.
public struct TokenResponse: WireBody, Hashable {
    /// A JWT with `typ` `synheart-device+jwt`, ES256.
    public let token: String
    /// How long it is good, in seconds; at most 600.
    public let expiresIn: Int64

    /// The token's type, in the answer and in its own header.
    public static let type = "synheart-device+jwt"

    /// A response of its parts.
    public init(token: String, expiresIn: Int64) {
        self.token = token
        self.expiresIn = expiresIn
    }

    public init(_ fields: JSONFields) throws {
        guard try fields.string("token_type") == Self.type else {
            throw JSONError(.wrongType, path: fields.pathOf("token_type"))
        }
        token = try fields.string("token")
        expiresIn = try fields.integer("expires_in")
    }

    public var json: JSONObject {
        .of(("token", .string(token)), ("token_type", .string(Self.type)), ("expires_in", .integer(expiresIn)))
    }
}
