public import AuthContract
internal import StrictJSON

/// A request as the listener received it, or as another service describes it to `/verify`.
///
/// It is parsed once, on arrival. Its contents are unverified.
///
/// A class, because every step passes it on: each copy of a struct would retain every text in it.
public final class IncomingRequest: Sendable {
    /// The method, as sent.
    public let method: String
    /// The path and the query, as sent.
    public let target: RequestTarget
    /// The header fields as received, in their order, with repeated fields.
    public let headers: HeaderFields
    /// The body, or its digest if another service sent only that.
    public let body: VerifyRequest.Body
    /// Who sent the request, and the origin that it was sent to.
    public let provenance: RequestProvenance

    /// Memberwise initializer.
    public init(
        method: String, target: RequestTarget, headers: HeaderFields, body: VerifyRequest.Body,
        provenance: RequestProvenance
    ) {
        self.method = method
        self.target = target
        self.headers = headers
        self.body = body
        self.provenance = provenance
    }

    /// The request that another service describes.
    ///
    /// - Parameters:
    ///   - request: the body of `/verify`.
    ///   - address: the address of that service.
    /// - Throws: `ContractError` if path or query break the rules of *Strictness*.
    public convenience init(_ request: VerifyRequest, address: ClientAddress) throws(ContractError) {
        self.init(
            method: request.method,
            target: try RequestTarget(path: RequestPath(request.path), query: request.query),
            headers: request.headers, body: request.body,
            provenance: RequestProvenance(
                address: address, scheme: request.scheme, authority: request.authority))
    }
}

extension IncomingRequest {
    /// Whether the body is empty, or a JSON object whose `app_id` and `device_id`, if present, equal these ids byte for byte.
    func bodyNames(_ appID: AppID, _ deviceID: DeviceID) -> Bool {
        guard case .bytes(let body) = body, !body.isEmpty else { return true }
        do {
            let fields = try JSONFields(JSONValue(parsing: body, limits: JSONValue.Limits(bytes: body.count)))
            for (name, id) in [("app_id", appID.text), ("device_id", deviceID.text)] {
                guard try fields.optionalString(name)?.utf8.elementsEqual(id.utf8) ?? true else { return false }
            }
            return true
        } catch { return false }
    }
}

/// Who sent a request, and the origin that it was sent to.
public struct RequestProvenance: Sendable, Hashable {
    /// The address that rate limits apply to.
    public let address: ClientAddress
    /// The scheme: `http` or `https`.
    public let scheme: String
    /// Host and port as the client sent them, not proven. For scheme 2 they are compared with the configuration.
    public let authority: String

    /// Memberwise initializer.
    public init(address: ClientAddress, scheme: String, authority: String) {
        self.address = address
        self.scheme = scheme
        self.authority = authority
    }
}
