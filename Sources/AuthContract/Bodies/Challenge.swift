public import StrictJSON

/// What a challenge may be used for.
public enum ChallengePurpose: String, Sendable, Hashable, CaseIterable {
    case register, rotate
}

/// Asks for a challenge: `POST /auth/v1/device/challenge`.
public struct ChallengeRequest: WireBody, Hashable {
    public let appID: AppID
    public let purpose: ChallengePurpose

    /// A request of its parts.
    public init(appID: AppID, purpose: ChallengePurpose = .register) {
        self.appID = appID
        self.purpose = purpose
    }

    public init(_ fields: JSONFields) throws {
        appID = try fields.appID()
        purpose = try fields.optionalChoice("purpose") ?? .register
    }

    public var json: JSONObject {
        .of(("app_id", .string(appID.text)), ("purpose", .string(purpose.rawValue)))
    }
}

/// A challenge: 32 random bytes, good once and until it expires.
public struct ChallengeResponse: WireBody, Hashable {
    /// The decoded challenge; at least 32 bytes.
    public let challenge: [UInt8]
    /// When it expires, on the service's clock.
    public let expiresAt: UnixTime
    /// How long it lives from now, in seconds: what a client counts, on a clock that runs on while the device sleeps.
    public let ttlSeconds: Int64

    /// A response of its parts.
    public init(challenge: [UInt8], expiresAt: UnixTime, ttlSeconds: Int64) {
        self.challenge = challenge
        self.expiresAt = expiresAt
        self.ttlSeconds = ttlSeconds
    }

    public init(_ fields: JSONFields) throws {
        challenge = try fields.base64("challenge")
        expiresAt = try fields.parsed("expires_at") { try UnixTime(iso8601: $0) }
        ttlSeconds = try fields.integer("ttl_seconds")
    }

    public var json: JSONObject {
        .of(
            ("challenge", .string(Base64.standard.encode(challenge))), ("expires_at", .string(expiresAt.iso8601)),
            ("ttl_seconds", .integer(ttlSeconds)))
    }
}
