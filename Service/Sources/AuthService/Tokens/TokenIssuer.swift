internal import AuthContract
internal import StrictJSON

/// Issues device tokens and identity tokens: JWTs that a backend verifies offline with the key set.
struct TokenIssuer: Sendable {
    let keys: SigningKeys
    let apps: AppRegistry
    let issuer: String
    let random: any RandomSource

    /// Seconds for which a device token is valid. Revoking the device or rotating its key does not invalidate the token.
    static let maximumLife: Int64 = 600
    /// Seconds for which an identity token is valid: long enough for one request.
    static let identityLife: Int64 = 60
    /// The `typ` of identity tokens. No app can have it as its `token_type`, so no device token is accepted as an identity token.
    static let identityType = "synheart-identity+jwt"

    func issue(
        _ request: TokenRequest, for device: DeviceRecord, of record: AppRecord, at now: UnixTime
    ) async throws(Refusal) -> TokenResponse {
        let audience = request.audience ?? record.appID.text
        if !audience.utf8.elementsEqual(record.appID.text.utf8) {
            try requireListed(audience, of: record)
            try await requireNoOtherApp(audience, of: record)
        }
        return TokenResponse(
            token: try await sign(
                device, of: record, for: audience, at: now, life: Self.maximumLife,
                type: record.signature.tokenType.rawValue),
            expiresIn: Self.maximumLife)
    }

    /// A token for a service behind the caller of `/verify`.
    ///
    /// Unlike for device tokens, the app's own id is not an audience by default: every backend of the app accepts
    /// device tokens with that audience, and a backend that ignores `typ` would accept this token as a device token.
    func identityToken(
        for audience: String, of device: DeviceRecord, _ record: AppRecord, at now: UnixTime
    ) async throws(Refusal) -> String {
        try requireListed(audience, of: record)
        try await requireNoOtherApp(audience, of: record)
        return try await sign(
            device, of: record, for: audience, at: now, life: Self.identityLife, type: Self.identityType)
    }

    /// Refuses an audience that is not one of the app's `token_audiences`, byte for byte: a backend compares bytes.
    func requireListed(_ audience: String, of record: AppRecord) throws(Refusal) {
        guard record.signature.tokenAudiences.contains(where: { $0.utf8.elementsEqual(audience.utf8) }) else {
            throw Refusal(malformed: ContractError("audience must be one of the app's token_audiences"))
        }
    }

    /// Refuses an audience that is the id of another app. The check when an app record is saved is not enough: a stored
    /// record may be older than this rule, and two changes of apps can run concurrently.
    private func requireNoOtherApp(_ audience: String, of record: AppRecord) async throws(Refusal) {
        if let id = try? AppID(audience), id != record.appID, try await apps.isProvisioned(id) {
            throw Refusal(.invalidRequest, "audience \(id) is another app")
        }
    }

    private func sign(
        _ device: DeviceRecord, of record: AppRecord, for audience: String, at now: UnixTime, life: Int64, type: String
    ) async throws(Refusal) -> String {
        let claims = JSONObject([
            ("iss", .string(issuer)), ("aud", .string(audience)), ("sub", .string(device.deviceID.text)),
            ("client_id", .string(record.appID.text)), ("app_id", .string(record.appID.text)),
            ("channel", .string(record.buildChannel.rawValue)),
            ("platform", .string(device.platform.rawValue)), ("assurance", .object(device.assurance.json)),
            ("iat", .integer(now.seconds)), ("exp", .integer((now + life).seconds)),
            ("jti", .string(RandomUUID(from: random).text)),
            // The JWK and its RFC 7638 thumbprint (RFC 7800, RFC 9449).
            ("cnf", ["jwk": .object(device.key.jwk()), "jkt": .string(device.key.thumbprint)] as JSONValue),
        ])
        return try await keys.sign(claims, type: type)
    }
}
