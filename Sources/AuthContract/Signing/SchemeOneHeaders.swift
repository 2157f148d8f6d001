/// The six headers of a request signed under scheme 1.
public struct SchemeOneHeaders: Sendable {
    /// The app that the request claims.
    public let appID: AppID
    /// The device that the request claims.
    public let deviceID: DeviceID
    /// The signature, not verified yet.
    public let signature: RequestSignature
    /// The claimed time of signing. The signature covers it.
    public let timestamp: UnixTime
    /// The nonce. The signature does not cover it, so replay protection also records `signature.r` as used.
    public let nonce: RequestNonce

    /// The value of `X-Synheart-Sig-Version`.
    public static let version = "1"

    /// Memberwise initializer.
    public init(
        appID: AppID, deviceID: DeviceID, signature: RequestSignature, timestamp: UnixTime, nonce: RequestNonce
    ) {
        self.appID = appID
        self.deviceID = deviceID
        self.signature = signature
        self.timestamp = timestamp
        self.nonce = nonce
    }

    /// Reads the headers: exactly one of each, each in its exact form.
    public init(_ fields: HeaderFields) throws(ContractError) {
        guard try SignatureScheme(claimedBy: fields) == .one else {
            throw ContractError("the request is not signed under scheme 1", code: .unsupportedSigVersion)
        }
        try self.init(claimedIn: fields)
    }

    /// Reads the headers of a request that is known to claim only this scheme.
    init(claimedIn fields: HeaderFields) throws(ContractError) {
        self.init(
            appID: try AppID(fields.one(HeaderName.appID)),
            deviceID: try DeviceID(fields.one(HeaderName.deviceID)),
            signature: try RequestSignature(base64: fields.one(HeaderName.signature)),
            timestamp: try UnixTime(header: fields.one(HeaderName.timestamp)),
            nonce: try RequestNonce(fields.one(HeaderName.nonce)))
    }

    /// The headers to send.
    public var fields: [(name: String, value: String)] {
        [
            (HeaderName.appID, appID.text), (HeaderName.deviceID, deviceID.text),
            (HeaderName.signature, signature.base64), (HeaderName.timestamp, timestamp.description),
            (HeaderName.nonce, nonce.text), (HeaderName.signatureVersion, Self.version),
        ]
    }
}
