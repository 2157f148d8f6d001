/// The six headers of a request signed under scheme 1.
public struct SchemeOneHeaders: Sendable {
    /// The app that the request says it is of.
    public let appID: AppID
    /// The device that the request says it is of.
    public let deviceID: DeviceID
    /// The signature, still to be verified.
    public let signature: RequestSignature
    /// When the request says it was signed; covered by the signature.
    public let timestamp: UnixTime
    /// Not covered by the signature: replay is known by `signature.r` as well.
    public let nonce: RequestNonce

    /// The value of `X-Synheart-Sig-Version`.
    public static let version = "1"

    /// Headers of their parts.
    public init(
        appID: AppID, deviceID: DeviceID, signature: RequestSignature, timestamp: UnixTime, nonce: RequestNonce
    ) {
        self.appID = appID
        self.deviceID = deviceID
        self.signature = signature
        self.timestamp = timestamp
        self.nonce = nonce
    }

    /// Reads them: exactly one of each, each in its exact form.
    public init(_ fields: HeaderFields) throws(ContractError) {
        guard try SignatureScheme(claimedBy: fields) == .one else {
            throw ContractError("the request is not signed under scheme 1", code: .unsupportedSigVersion)
        }
        try self.init(claimedIn: fields)
    }

    /// Reads the headers of a request that claims this scheme and no other.
    init(claimedIn fields: HeaderFields) throws(ContractError) {
        self.init(
            appID: try AppID(fields.one(HeaderName.appID)),
            deviceID: try DeviceID(fields.one(HeaderName.deviceID)),
            signature: try RequestSignature(base64: fields.one(HeaderName.signature)),
            timestamp: try UnixTime(header: fields.one(HeaderName.timestamp)),
            nonce: try RequestNonce(fields.one(HeaderName.nonce)))
    }

    /// The headers as they are sent.
    public var fields: [(name: String, value: String)] {
        [
            (HeaderName.appID, appID.text), (HeaderName.deviceID, deviceID.text),
            (HeaderName.signature, signature.base64), (HeaderName.timestamp, timestamp.description),
            (HeaderName.nonce, nonce.text), (HeaderName.signatureVersion, Self.version),
        ]
    }
}
