internal import AuthContract
internal import Crypto
internal import StrictJSON

/// Parses a token, and checks its signature and its claims. The caller chooses the key for the signature. No I/O.
struct TokenRules: Sendable {
    let issuer: String
    let audience: String
    let tokenType: String
    let channels: Set<String>
    let leeway: Int64

    /// The largest token, in bytes.
    static let maximumLength = 8192
    /// The largest id of a key, in bytes.
    private static let maximumKeyIDLength = 128
    /// The longest life of a token, in seconds.
    private static let maximumLife: Int64 = 600

    /// A token whose signature is still to be verified.
    struct Unverified: Sendable {
        let keyID: String
        fileprivate let signed: [UInt8]
        fileprivate let signature: [UInt8]
        fileprivate let claims: JSONFields
    }

    init(_ configuration: TokenVerifierConfiguration) {
        issuer = configuration.issuer
        audience = configuration.audience
        tokenType = configuration.tokenType
        channels = configuration.channels
        leeway = configuration.leeway
    }

    /// Reads the three parts, and checks the header.
    func read(_ token: String) throws(TokenError) -> Unverified {
        guard token.utf8.count <= Self.maximumLength else { throw .refused("longer than 8192 bytes") }
        let parts = token.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false).map { Array($0) }
        guard parts.count == 3 else { throw .refused("not three parts") }
        guard let header = Self.object(parts[0]), let claims = Self.object(parts[1]),
            let fields = try? JSONFields(.object(claims)),
            let signature = Base64.url.decode(bytes: parts[2])
        else { throw .refused("no base64url of JSON objects") }
        // Compare JSON values, because their strings are compared byte by byte. Swift compares strings by canonical
        // equivalence.
        guard header["alg"] == .string("ES256"), header["typ"] == .string(tokenType), header["crit"] == nil else {
            throw .refused("another alg or typ")
        }
        guard let keyID = header["kid"]?.string, 1...Self.maximumKeyIDLength ~= keyID.utf8.count else {
            throw .refused("no kid")
        }
        return Unverified(
            keyID: keyID, signed: parts[0] + [UInt8(ascii: ".")] + parts[1], signature: signature, claims: fields)
    }

    /// Verifies the signature, then the claims.
    func verify(
        _ token: Unverified, with key: P256.Signing.PublicKey, at now: UnixTime
    ) throws(TokenError) -> DeviceToken {
        guard let signature = try? P256.Signing.ECDSASignature(rawRepresentation: token.signature),
            key.isValidSignature(signature, for: token.signed)
        else { throw .refused("a wrong signature") }
        do { return try verify(token.claims, at: now) } catch {
            throw error as? TokenError ?? .refused("\(error)")
        }
    }

    private func verify(_ claims: JSONFields, at now: UnixTime) throws -> DeviceToken {
        guard try claims.value("iss") == .string(issuer) else { throw TokenError.refused("another issuer") }
        guard try claims.value("aud") == .string(audience) else { throw TokenError.refused("another audience") }
        let issuedAt = UnixTime(try claims.integer("iat"))
        let expiresAt = UnixTime(try claims.integer("exp"))
        guard issuedAt.seconds >= 0, expiresAt >= issuedAt, expiresAt - issuedAt <= Self.maximumLife else {
            throw TokenError.refused("no life of at most 600 seconds")
        }
        guard issuedAt <= now + leeway else { throw TokenError.refused("not valid yet") }
        guard now < expiresAt + leeway else { throw TokenError.refused("expired") }
        let channel = try claims.string("channel")
        guard channels.contains(channel) else { throw TokenError.refused("another channel") }
        let assurance = try Assurance(claims.object("assurance"))
        guard channel != "production" || (assurance.app != .development && assurance.app != .test) else {
            throw TokenError.refused("an assurance that production does not accept")
        }
        let tokenID = try claims.string("jti")
        guard !tokenID.isEmpty, let key = try PublishedKey(claims.object("cnf").value("jwk"))?.key else {
            throw TokenError.refused("a claim is missing")
        }
        return DeviceToken(
            deviceID: try claims.parsed("sub") { try DeviceID($0) },
            appID: try claims.parsed("app_id") { try AppID($0) },
            audience: audience, channel: channel, platform: try claims.choice("platform"), assurance: assurance,
            issuedAt: issuedAt, expiresAt: expiresAt, tokenID: tokenID, deviceKey: DevicePublicKey(key))
    }

    private static func object(_ part: [UInt8]) -> JSONObject? {
        guard let bytes = Base64.url.decode(bytes: part) else { return nil }
        return (try? JSONValue(parsing: bytes))?.object
    }
}

/// A P-256 public key of a JSON Web Key (RFC 7517).
struct PublishedKey: Sendable {
    let key: P256.Signing.PublicKey

    /// Reads a JSON Web Key, of a key set or of `cnf`; nil for a key of another kind.
    ///
    /// - Throws: `TokenError` for a P-256 key that is malformed.
    init?(_ jwk: JSONValue) throws(TokenError) {
        guard let members = jwk.object, members["kty"] == .string("EC"), members["crv"] == .string("P-256") else {
            return nil
        }
        guard let x = Self.coordinate(members["x"]), let y = Self.coordinate(members["y"]),
            let key = try? P256.Signing.PublicKey(rawRepresentation: x + y)
        else { throw .refused("a malformed key") }
        self.key = key
    }

    /// The 32 bytes of a coordinate; nil if the value is malformed.
    private static func coordinate(_ value: JSONValue?) -> [UInt8]? {
        guard let bytes = (value?.string).flatMap(Base64.url.decode), bytes.count == 32 else { return nil }
        return bytes
    }
}
