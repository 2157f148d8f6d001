internal import AuthContract
internal import StrictJSON

/// Issues device tokens: JWTs that a backend verifies offline with the key set.
struct TokenIssuer: Sendable {
    let keys: SigningKeys
    let apps: AppRegistry
    let issuer: String
    let random: any RandomSource

    /// Seconds for which a token is valid. Revocation and rotation do not invalidate it.
    static let maximumLife: Int64 = 600

    func issue(
        _ request: TokenRequest, for device: DeviceRecord, of record: AppRecord, at now: UnixTime
    ) async throws(Refusal) -> TokenResponse {
        let audience = request.audience ?? record.appID.text
        guard audience == record.appID.text || record.signature.tokenAudiences.contains(audience) else {
            throw Refusal(malformed: ContractError("audience must be one of the app's token_audiences"))
        }
        // A stored record may be older than this rule, and two changes of apps can run concurrently.
        if audience != record.appID.text, let id = try? AppID(audience), try await apps.isProvisioned(id) {
            throw Refusal(.invalidRequest, "audience \(id) is another app")
        }
        let claims = JSONObject([
            ("iss", .string(issuer)), ("aud", .string(audience)), ("sub", .string(device.deviceID.text)),
            ("app_id", .string(record.appID.text)), ("channel", .string(record.buildChannel.rawValue)),
            ("platform", .string(device.platform.rawValue)), ("assurance", .object(device.assurance.json)),
            ("iat", .integer(now.seconds)), ("exp", .integer((now + Self.maximumLife).seconds)),
            ("jti", .string(RandomUUID(from: random).text)),
            ("cnf", .object(JSONObject([("jwk", .object(device.key.jwk()))]))),
        ])
        return TokenResponse(
            token: try await keys.sign(claims, type: TokenResponse.type), expiresIn: Self.maximumLife)
    }
}
