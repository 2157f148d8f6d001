/// The headers of a request signed under scheme 2.
public struct SchemeTwoHeaders: Sendable {
    /// The app that the request claims.
    public let appID: AppID
    /// The device that the request claims.
    public let deviceID: DeviceID
    /// The signer's digest of the body. The signature covers it; the verifier must compare it with the body.
    public let contentDigest: ContentDigest
    /// The claimed time, key and nonce.
    public let parameters: SchemeTwoParameters
    /// The signature, not verified yet.
    public let signature: RequestSignature

    /// Memberwise initializer.
    public init(
        appID: AppID, deviceID: DeviceID, contentDigest: ContentDigest, parameters: SchemeTwoParameters,
        signature: RequestSignature
    ) {
        self.appID = appID
        self.deviceID = deviceID
        self.contentDigest = contentDigest
        self.parameters = parameters
        self.signature = signature
    }

    /// Reads the headers. Ignores signatures under other labels, which proxies add.
    ///
    /// - Throws: `unsupportedSigVersion` if the request claims scheme 1, or if `Signature-Input` has no member with our label that
    ///   follows our profile; `invalidRequest` if a field is missing, repeated or malformed.
    public init(_ fields: HeaderFields) throws(ContractError) {
        guard try SignatureScheme(claimedBy: fields) == .two else {
            throw ContractError("the request is not signed under scheme 2", code: .unsupportedSigVersion)
        }
        guard let input = try Self.ours(HeaderName.signatureInput, fields) else {
            throw ContractError("\(HeaderName.signatureInput) has no \(SchemeTwo.label)", code: .unsupportedSigVersion)
        }
        guard case .innerList(let list) = input else {
            throw ContractError("\(SchemeTwo.label) must list components", code: .unsupportedSigVersion)
        }
        parameters = try SchemeTwoParameters(list)
        guard case .item(let item) = try Self.ours(HeaderName.messageSignature, fields), item.parameters.isEmpty,
            let bytes = item.value.bytes
        else { throw ContractError("\(HeaderName.messageSignature) must have \(SchemeTwo.label)=:...:") }
        signature = try RequestSignature(raw: bytes)
        contentDigest = try ContentDigest(field: fields.one(HeaderName.contentDigest))
        appID = try AppID(fields.one(HeaderName.appID))
        deviceID = try DeviceID(fields.one(HeaderName.deviceID))
    }

    /// The signature base of a request with these headers, if it was sent with this method to this origin and target.
    public func base(
        method: String, origin: RequestOrigin, target: RequestTarget
    ) throws(ContractError) -> SignatureBase {
        try SignatureBase(
            method: method, origin: origin, target: target, contentDigest: contentDigest, appID: appID,
            deviceID: deviceID, parameters: parameters)
    }

    /// The headers to send.
    public var fields: [(name: String, value: String)] {
        [
            (HeaderName.appID, appID.text), (HeaderName.deviceID, deviceID.text),
            (HeaderName.contentDigest, contentDigest.field),
            (HeaderName.signatureInput, "\(SchemeTwo.label)=\(parameters.input)"),
            (HeaderName.messageSignature, "\(SchemeTwo.label)=\(StructuredField.BareItem.bytes(signature.raw).text)"),
        ]
    }

    /// The member with our label in a dictionary field. The field's lines are joined (RFC 9110 section 5.3): a proxy may
    /// add its signature as a separate line.
    private static func ours(
        _ name: String, _ fields: HeaderFields
    ) throws(ContractError) -> StructuredField.Member? {
        let text = fields.values(name).joined(separator: ", ")
        return try StructuredField.Dictionary(parsing: text, field: name)[SchemeTwo.label]
    }
}
