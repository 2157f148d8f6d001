public import StrictJSON

/// The allowed use of a challenge.
public enum ChallengePurpose: String, Sendable, Hashable, CaseIterable {
    /// For a registration.
    case register
    /// For a rotation that attests again.
    case rotate
}

/// The request for a challenge: `POST /auth/v1/device/challenge`.
public struct ChallengeRequest: WireBody, Hashable {
    /// The app that will use the challenge. Under another app, the challenge is consumed and refused (`invalidChallenge`).
    public let appID: AppID
    /// The purpose of the challenge. If it is used for another purpose, the challenge is consumed and refused
    /// (`invalidChallenge`).
    public let purpose: ChallengePurpose

    /// Memberwise initializer.
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

/// A challenge: random bytes that can be used once, until they expire.
public struct ChallengeResponse: WireBody, Hashable {
    /// The decoded challenge, 32 bytes or more.
    public let challenge: [UInt8]
    /// The time when the challenge expires, on the service's clock.
    public let expiresAt: UnixTime
    /// The remaining life in seconds. A client measures it with a clock that does not stop while the device sleeps.
    public let ttlSeconds: Int64

    /// Memberwise initializer.
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
