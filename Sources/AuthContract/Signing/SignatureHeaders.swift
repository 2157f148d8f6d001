/// The signature schemes.
public enum SignatureScheme: Int, Sendable, Hashable, Comparable, CaseIterable {
    /// The contract's own layout. It covers method, path, timestamp and body, but not host and query.
    case one = 1
    /// A profile of HTTP Message Signatures (RFC 9421). It covers the target and the query too.
    case two = 2

    /// Orders the schemes by age.
    public static func < (left: SignatureScheme, right: SignatureScheme) -> Bool { left.rawValue < right.rawValue }

    /// The scheme that a request claims: 1 by `X-Synheart-Sig-Version`, 2 by `Signature-Input`.
    ///
    /// - Throws: `invalidRequest` if the request has both fields or neither, or repeats `X-Synheart-Sig-Version`;
    ///   `unsupportedSigVersion` for a version other than 1.
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

/// The headers of a signed request, under the scheme that it claims.
public enum SignatureHeaders: Sendable {
    /// The six headers of scheme 1.
    case one(SchemeOneHeaders)
    /// The fields of scheme 2, read under its profile.
    case two(SchemeTwoHeaders)

    /// Reads the headers. If it throws, the service refuses the request with the error's code.
    public init(_ fields: HeaderFields) throws(ContractError) {
        switch try SignatureScheme(claimedBy: fields) {
        case .one: self = .one(try SchemeOneHeaders(claimedIn: fields))
        case .two: self = .two(try SchemeTwoHeaders(fields))
        }
    }

    /// The app that the request claims.
    public var appID: AppID {
        switch self {
        case .one(let headers): headers.appID
        case .two(let headers): headers.appID
        }
    }

    /// The device that the request claims.
    public var deviceID: DeviceID {
        switch self {
        case .one(let headers): headers.deviceID
        case .two(let headers): headers.deviceID
        }
    }

    /// The claimed time of signing.
    public var timestamp: UnixTime {
        switch self {
        case .one(let headers): headers.timestamp
        case .two(let headers): headers.parameters.created
        }
    }

    /// The signature, not verified yet.
    public var signature: RequestSignature {
        switch self {
        case .one(let headers): headers.signature
        case .two(let headers): headers.signature
        }
    }
}
