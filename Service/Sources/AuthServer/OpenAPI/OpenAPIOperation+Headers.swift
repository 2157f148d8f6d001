internal import AuthContract
internal import AuthService
internal import StrictJSON

/// The headers of an operation, in its request and in each of its responses.
extension OpenAPIOperation {
    /// The headers of the request, except the one that the security scheme describes.
    var headerParameters: [JSONValue] {
        var names: [(String, description: String?)] = []
        if security == .deviceSignature || security == .forwardingCredential {
            names += Self.signatureHeaders.map { ($0, nil) }
        }
        if security == .forwardingCredential {
            // For other operations that a device signs, the security scheme describes this header.
            names.append((HeaderName.signature, nil))
            names += ForwardedRequest.Field.allCases.map { ($0.rawValue, $0.explanation) }
        }
        if id == "register" { names.append((HeaderName.developmentMode, "`true` with a development proof.")) }
        if errors.contains(.preconditionFailed) { names.append(("If-Match", "The version of the record to change.")) }
        return names.map { name, description in
            Self.parameter(name, in: "header", isRequired: false, ["type": "string"], description)
        }
    }

    /// The headers of both signature schemes, except `HeaderName.signature`. None is required, because a request uses only one scheme.
    private static let signatureHeaders = [
        HeaderName.appID, HeaderName.deviceID, HeaderName.timestamp, HeaderName.nonce, HeaderName.signatureVersion,
        HeaderName.contentDigest, HeaderName.signatureInput, HeaderName.messageSignature, HeaderName.assertion,
    ]

    /// The headers of the response if the operation succeeds.
    var successHeaders: JSONValue {
        var names: [String] = []
        // After a successful rotation, the device need not rotate: the response lacks this header.
        if security == .deviceSignature, path != Route.rotateKey.rawValue { names.append(HeaderName.rotate) }
        if ["AppRecord", "Device", "Webhook"].contains(successSchema) { names.append("ETag") }
        guard security == .forwardingCredential else { return .object(Self.headers(names)) }
        var headers = Self.headers(names + VerifiedIdentity.headerNames)
        headers[HeaderName.error] = Self.header("ObservedError")
        return .object(headers)
    }

    /// The headers of a response that refuses with one of these codes.
    func headers(refusing codes: Set<ErrorCode>) -> JSONValue {
        var names = [HeaderName.error]
        if security == .deviceSignature { names.append(HeaderName.rotate) }
        if codes.contains(.assertionRequired) { names.append(HeaderName.assertion) }
        if !codes.isDisjoint(with: [.rateLimited, .serviceUnavailable, .providerUnavailable]) {
            names.append("Retry-After")
        }
        if codes.contains(.unauthorized), security != .forwardingCredential { names.append("WWW-Authenticate") }
        return .object(Self.headers(names))
    }

    /// These headers, and those that every response has.
    private static func headers(_ further: [String]) -> JSONObject {
        JSONObject(([HeaderName.serverTime, HeaderName.requestID] + further).map { ($0, header($0)) })
    }

    private static func header(_ component: String) -> JSONValue {
        ["$ref": .string("#/components/headers/\(component)")]
    }
}

extension ForwardedRequest.Field {
    /// The value that a gateway sets.
    fileprivate var explanation: String {
        switch self {
        case .originalMethod: "Header form: the method. With `X-Original-URI`."
        case .originalURI: "Header form: path and query. With `X-Original-Method`."
        case .forwardedMethod: "Header form, instead of the `X-Original-` pair: the method. With `X-Forwarded-Uri`."
        case .forwardedURI: "Header form: path and query. With `X-Forwarded-Method`."
        case .forwardedHost: "Header form: the authority. Without it, `Host` is."
        case .forwardedProto: "`http` or `https`. Without it, the scheme of the gateway's connection counts."
        case .originalContentLength:
            "`Content-Length` of the request, or `none`. Required if the gateway forwards no bodies."
        case .originalTransferEncoding:
            "`Transfer-Encoding` of the request, or `none`. Required if the gateway forwards no bodies."
        case .partialBody: "Envoy: `true` if only a part of the body is forwarded, which is refused."
        }
    }
}
