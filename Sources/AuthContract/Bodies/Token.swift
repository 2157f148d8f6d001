public import StrictJSON

/// The request for a device token: `POST /auth/v1/token`.
public struct TokenRequest: WireBody, Hashable {
    /// One of the app's `token_audiences`; nil for the app itself.
    public let audience: String?

    /// Memberwise initializer.
    public init(audience: String? = nil) { self.audience = audience }

    public init(_ fields: JSONFields) throws { audience = try fields.optionalString("audience") }

    public var json: JSONObject { .of(("audience", audience.map { .string($0) })) }
}

/// A device token. Any backend can check it offline with the key set.
public struct TokenResponse: WireBody, Hashable {
    /// A JWT, ES256. Its `typ` is the app's `signature.token_type`.
    public let token: String
    /// The token's life in seconds, 600 at most.
    public let expiresIn: Int64

    /// The value of the response's `token_type`. It is the same for every app, even if the tokens of an app have another
    /// `typ`, because deployed clients compare it.
    public static let type = "synheart-device+jwt"

    /// Memberwise initializer.
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
