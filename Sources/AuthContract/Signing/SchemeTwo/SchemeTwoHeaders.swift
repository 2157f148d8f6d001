/// The headers of a request signed under scheme 2.
public struct SchemeTwoHeaders: Sendable {
    /// The app that the request says it is of.
    public let appID: AppID
    /// The device that the request says it is of.
    public let deviceID: DeviceID
    /// What the signer says of the body; covered by the signature, still to be compared with the body.
    public let contentDigest: ContentDigest
    /// When, with which key and under which nonce the signature says it was made.
    public let parameters: SchemeTwoParameters
    /// The signature, still to be verified.
    public let signature: RequestSignature

    /// Headers of their parts.
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

    /// Reads them. Signatures under other labels, which proxies add, are not looked at; one that is labelled ours and is
    /// not of our profile, or none of ours, is `unsupportedSigVersion`.
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

    /// What the signature must sign, were the request sent like this.
    public func base(
        method: String, origin: RequestOrigin, target: RequestTarget
    ) throws(ContractError) -> SignatureBase {
        try SignatureBase(
            method: method, origin: origin, target: target, contentDigest: contentDigest, appID: appID,
            deviceID: deviceID, parameters: parameters)
    }

    /// The headers as they are sent.
    public var fields: [(name: String, value: String)] {
        [
            (HeaderName.appID, appID.text), (HeaderName.deviceID, deviceID.text),
            (HeaderName.contentDigest, contentDigest.field),
            (HeaderName.signatureInput, "\(SchemeTwo.label)=\(parameters.input)"),
            (HeaderName.messageSignature, "\(SchemeTwo.label)=\(StructuredField.BareItem.bytes(signature.raw).text)"),
        ]
    }

    /// The member of a dictionary field that is ours. Lines of the field are read as one (RFC 9110 section 5.3), because
    /// who adds a signature may add a line.
    private static func ours(
        _ name: String, _ fields: HeaderFields
    ) throws(ContractError) -> StructuredField.Member? {
        let text = fields.values(name).joined(separator: ", ")
        return try StructuredField.Dictionary(parsing: text, field: name)[SchemeTwo.label]
    }
}
