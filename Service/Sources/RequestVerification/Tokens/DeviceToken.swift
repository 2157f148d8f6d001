public import AuthContract

/// The content of a verified token. It is a bearer token: any holder can use it until it expires.
public struct DeviceToken: Sendable, Hashable {
    /// The device that the service issued the token to (`sub`).
    public let deviceID: DeviceID
    /// The app of the device.
    public let appID: AppID
    /// The audience (`aud`), which is this backend's own.
    public let audience: String
    /// The channel of the app: `production`, `staging` or `dev`.
    public let channel: String
    /// The platform of the device.
    public let platform: Platform
    /// The device's proven assurance.
    public let assurance: Assurance
    /// The time when the token was issued.
    public let issuedAt: UnixTime
    /// The time when the token expires.
    public let expiresAt: UnixTime
    /// The id of the token (`jti`).
    public let tokenID: String
    /// The public key of the device (`cnf`).
    public let deviceKey: DevicePublicKey
}

/// Why a token is not accepted.
public enum TokenError: Error, Sendable, Hashable {
    /// The token is not valid here: answer 401. The reason is for the log.
    case refused(String)
    /// The service's keys cannot be read now: answer 503.
    case unavailable
}
