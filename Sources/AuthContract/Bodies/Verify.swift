public import StrictJSON

/// The request to verify a signed request that another service received: `POST /auth/v1/verify`.
public struct VerifyRequest: WireBody, Hashable {
    /// The received body, or its digest.
    public enum Body: Sendable, Hashable {
        /// The bytes as received.
        case bytes([UInt8])
        /// The SHA-256 of the body, 32 bytes. It is enough to verify a signature of scheme 2.
        case sha256([UInt8])
    }

    /// The request's method.
    public let method: String
    /// `http` or `https`.
    public let scheme: String
    /// The host and port that the request was sent to.
    public let authority: String
    /// The path as received, not decoded.
    public let path: String
    /// The text after `?`; nil if there was no `?`.
    public let query: String?
    /// The header fields as received, in their order, with repeated fields.
    public let headers: HeaderFields
    /// The body as received, or its digest.
    public let body: Body
    /// An id for retries. A second call within 60 s with the same credential, id and content is not refused as a replay of the first. The
    /// service judges the second call anew, so a change in the meantime, such as a revocation, can refuse it.
    public let verificationID: String?
    /// One of the app's `token_audiences`: asks for a token that names the request's sender to a service behind the caller.
    public let identityAudience: String?

    /// Memberwise initializer.
    public init(
        method: String, scheme: String, authority: String, path: String, query: String?, headers: HeaderFields,
        body: Body, verificationID: String? = nil, identityAudience: String? = nil
    ) {
        self.method = method
        self.scheme = scheme
        self.authority = authority
        self.path = path
        self.query = query
        self.headers = headers
        self.body = body
        self.verificationID = verificationID
        self.identityAudience = identityAudience
    }

    public init(_ fields: JSONFields) throws {
        // The device chose method, path, query and headers, so their content is not checked here. An error in them must lead
        // to a verdict on the device's request, not to a refusal of the caller's request.
        method = try fields.string("method")
        scheme = try fields.string("scheme")
        guard scheme == "http" || scheme == "https" else { throw JSONError(.wrongType, path: fields.pathOf("scheme")) }
        authority = try fields.string("authority")
        path = try fields.string("path")
        query = try fields.optionalString("query")
        headers = try Self.headers(fields)
        body = try Self.body(fields)
        verificationID = try fields.optionalParsed("verification_id") { text in
            guard text.isUUID else { throw ContractError("not a UUID") }
            return text.lowercased()
        }
        identityAudience = try fields.optionalString("identity_audience")
    }

    private static func headers(_ fields: JSONFields) throws -> HeaderFields {
        let wrong = JSONError(.wrongType, path: fields.pathOf("headers"))
        guard let lines = try fields.optionalArray("headers") else {
            throw JSONError(.missing, path: fields.pathOf("headers"))
        }
        return HeaderFields(
            try lines.map { line in
                guard let pair = line.array, pair.count == 2, let name = pair[0].string, let value = pair[1].string
                else { throw wrong }
                return (name, value)
            })
    }

    private static func body(_ fields: JSONFields) throws -> Body {
        switch (try fields.optionalBase64("body"), try fields.optionalBase64("body_sha256")) {
        case (let bytes?, nil): return .bytes(bytes)
        case (nil, let digest?):
            guard digest.count == 32 else { throw JSONError(.wrongType, path: fields.pathOf("body_sha256")) }
            return .sha256(digest)
        case (nil, nil): throw JSONError(.missing, path: fields.pathOf("body"))
        // Body and digest could contradict each other, so only one is allowed.
        case (_?, _?): throw JSONError(.wrongType, path: fields.pathOf("body_sha256"))
        }
    }

    public var json: JSONObject {
        var bodyMember: (String, JSONValue)
        switch body {
        case .bytes(let bytes): bodyMember = ("body", .string(Base64.standard.encode(bytes)))
        case .sha256(let digest): bodyMember = ("body_sha256", .string(Base64.standard.encode(digest)))
        }
        return .of(
            ("method", .string(method)), ("scheme", .string(scheme)), ("authority", .string(authority)),
            ("path", .string(path)), ("query", query.map { .string($0) } ?? .null),
            ("headers", .array(headers.lines.map { [.string($0.name), .string($0.value)] })), bodyMember,
            ("verification_id", verificationID.map { .string($0) }),
            ("identity_audience", identityAudience.map { .string($0) }))
    }
}

/// The device whose signature on a request verified.
public struct VerifiedIdentity: Sendable, Hashable {
    /// The app that the device registered for.
    public let appID: AppID
    /// The device that signed the request.
    public let deviceID: DeviceID
    /// The platform of the device.
    public let platform: Platform
    /// The device's proven assurance.
    public let assurance: Assurance
    /// The scheme of the request's signature.
    public let signatureScheme: SignatureScheme
    /// The age of the device's current key in seconds, even if the previous key signed the request.
    public let keyAgeSeconds: Int64
    /// A JWT with `typ` `synheart-identity+jwt` that names this identity to a service behind the caller, for one minute; nil
    /// unless the caller asked for it with `identity_audience` and the request was accepted.
    public var identityToken: String?

    /// Memberwise initializer.
    public init(
        appID: AppID, deviceID: DeviceID, platform: Platform, assurance: Assurance, signatureScheme: SignatureScheme,
        keyAgeSeconds: Int64, identityToken: String? = nil
    ) {
        self.appID = appID
        self.deviceID = deviceID
        self.platform = platform
        self.assurance = assurance
        self.signatureScheme = signatureScheme
        self.keyAgeSeconds = keyAgeSeconds
        self.identityToken = identityToken
    }
}

/// The verdict on a request.
///
/// A refusal in mode `enforce` is an `ErrorBody` with `verified: false` instead.
public enum VerifyResponse: WireBody, Hashable {
    /// This device signed the request.
    case verified(VerifiedIdentity)
    /// The app is in mode `observe`: in mode `enforce` the service would refuse with this code. The identity is set if the
    /// signature verified.
    case observed(ErrorCode, VerifiedIdentity?)

    public init(_ fields: JSONFields) throws {
        let identity = try fields.optionalValue("device_id").map { _ in
            guard let scheme = Int(exactly: try fields.integer("signature_scheme")).flatMap(SignatureScheme.init)
            else { throw JSONError(.wrongType, path: fields.pathOf("signature_scheme")) }
            return VerifiedIdentity(
                appID: try fields.appID(), deviceID: try fields.deviceID(), platform: try fields.choice("platform"),
                assurance: try Assurance(fields.object("assurance")), signatureScheme: scheme,
                keyAgeSeconds: try fields.integer("key_age_seconds"),
                identityToken: try fields.optionalString("identity_token"))
        }
        switch (try fields.bool("verified"), identity, try fields.optionalChoice("observed", ErrorCode.self)) {
        case (true, let identity?, nil): self = .verified(identity)
        case (false, let identity, let code?): self = .observed(code, identity)
        default: throw JSONError(.wrongType, path: fields.pathOf("verified"))
        }
    }

    public var json: JSONObject {
        let (verified, code, identity): (Bool, ErrorCode?, VerifiedIdentity?) =
            switch self {
            case .verified(let identity): (true, nil, identity)
            case .observed(let code, let identity): (false, code, identity)
            }
        return .of(
            ("verified", .bool(verified)), ("observed", code.map { .string($0.rawValue) }),
            ("app_id", identity.map { .string($0.appID.text) }),
            ("device_id", identity.map { .string($0.deviceID.text) }),
            ("platform", identity.map { .string($0.platform.rawValue) }),
            ("assurance", identity.map { .object($0.assurance.json) }),
            ("signature_scheme", identity.map { .integer($0.signatureScheme.rawValue) }),
            ("key_age_seconds", identity.map { .integer($0.keyAgeSeconds) }),
            ("identity_token", identity.flatMap(\.identityToken).map { .string($0) }))
    }
}
