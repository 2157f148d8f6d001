/// Which scheme a request was signed under.
public enum SignatureScheme: Int, Sendable, Hashable, Comparable, CaseIterable {
    case one = 1
    case two = 2

    /// A later scheme is the higher one.
    public static func < (left: SignatureScheme, right: SignatureScheme) -> Bool { left.rawValue < right.rawValue }

    /// The scheme that a request claims: scheme 1 by `X-Synheart-Sig-Version`, scheme 2 by `Signature-Input`.
    ///
    /// Both are `invalidRequest`, as is neither; another version than 1 is `unsupportedSigVersion`.
    public init(claimedBy fields: HeaderFields) throws(ContractError) {
        switch (try fields.atMostOne(HeaderName.signatureVersion), !fields.contains(HeaderName.signatureInput)) {
        case (_?, false):
            throw ContractError("\(HeaderName.signatureVersion) and \(HeaderName.signatureInput) exclude each other")
        case (SchemeOneHeaders.version, true): self = .one
        case (_?, true):
            throw ContractError(
                "\(HeaderName.signatureVersion) must be \(SchemeOneHeaders.version)", code: .unsupportedSigVersion)
        case (nil, false): self = .two
        case (nil, true): throw ContractError("\(HeaderName.signatureVersion) is missing")
        }
    }
}

/// The headers of a signed request, of the scheme that it claims.
public enum SignatureHeaders: Sendable {
    case one(SchemeOneHeaders)
    case two(SchemeTwoHeaders)

    /// Reads them; a `ContractError` has the code to answer with.
    public init(_ fields: HeaderFields) throws(ContractError) {
        switch try SignatureScheme(claimedBy: fields) {
        case .one: self = .one(try SchemeOneHeaders(claimedIn: fields))
        case .two: self = .two(try SchemeTwoHeaders(fields))
        }
    }

    /// The app that the request says it is of.
    public var appID: AppID {
        switch self {
        case .one(let headers): headers.appID
        case .two(let headers): headers.appID
        }
    }

    /// The device that the request says it is of.
    public var deviceID: DeviceID {
        switch self {
        case .one(let headers): headers.deviceID
        case .two(let headers): headers.deviceID
        }
    }

    /// When the request says it was signed.
    public var timestamp: UnixTime {
        switch self {
        case .one(let headers): headers.timestamp
        case .two(let headers): headers.parameters.created
        }
    }

    /// The signature, still to be verified.
    public var signature: RequestSignature {
        switch self {
        case .one(let headers): headers.signature
        case .two(let headers): headers.signature
        }
    }
}
