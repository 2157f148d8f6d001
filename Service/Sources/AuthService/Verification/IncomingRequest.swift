public import AuthContract

/// A request as it was received, by us or by another service that asks about it.
public struct IncomingRequest: Sendable {
    public var method: String
    /// `http` or `https`.
    public var scheme: String
    public var authority: String
    /// As on the wire, undecoded, without the query.
    public var path: String
    /// The text after `?`; nil where there was none.
    public var query: String?
    public var headers: HeaderFields
    public var body: VerifyRequest.Body
    /// Whom limits count it for.
    public var address: ClientAddress

    /// A request of its parts.
    public init(
        method: String, scheme: String, authority: String, path: String, query: String?, headers: HeaderFields,
        body: VerifyRequest.Body, address: ClientAddress
    ) {
        self.method = method
        self.scheme = scheme
        self.authority = authority
        self.path = path
        self.query = query
        self.headers = headers
        self.body = body
        self.address = address
    }

    /// What another service asks about; `address` is that service's.
    public init(_ request: VerifyRequest, address: ClientAddress) {
        self.init(
            method: request.method, scheme: request.scheme, authority: request.authority, path: request.path,
            query: request.query, headers: request.headers, body: request.body, address: address)
    }
}

/// A request whose signature verified and that was not seen before.
public struct VerifiedRequest: Sendable {
    /// The app as it was when the request was judged.
    public let app: ProvisionedApp
    /// The device as it was when the request was judged.
    public var device: DeviceRecord { row.device }
    let row: DeviceRow
    /// Whose device signed.
    public var appID: AppID { row.device.appID }
    /// The device that signed.
    public var deviceID: DeviceID { row.device.deviceID }
    /// Seconds since the key was registered, or rotated to.
    public var keyAgeSeconds: Int64 { max(0, at - row.device.keySince) }
    public let scheme: SignatureScheme
    public let signedBy: SigningKeyRole
    /// The time of the judgement.
    public let at: UnixTime
    /// The time that the client signed.
    public let signedAt: UnixTime
    /// The bytes that the signature signs: what an assertion is made over.
    let message: [UInt8]
    /// An assertion that policy demands and that the header did not bring: the body of rotate-key must.
    var owedAssertion: AssertionDemand?

    /// What the device is told about rotating its key; nil: nothing.
    public var rotationDemand: RotationDemand? { device.rotationDemand(under: app.record.keys, at: at) }

    /// Who signed.
    public var identity: VerifiedIdentity {
        VerifiedIdentity(
            appID: appID, deviceID: deviceID, platform: device.platform, assurance: device.assurance,
            signatureScheme: scheme, keyAgeSeconds: keyAgeSeconds)
    }
}
