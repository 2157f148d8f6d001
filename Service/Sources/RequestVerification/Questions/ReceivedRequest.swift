public import AuthContract
public import HTTPTypes

/// A request as the server received it.
public struct ReceivedRequest: Sendable {
    /// The body, or its digest.
    public enum Body: Sendable, Hashable {
        /// The bytes as received, before any decoding.
        case bytes([UInt8])
        /// The SHA-256 of an unread body, 32 bytes: only with ``ReceivedRequest/usesSchemeTwo``. The caller must compare the body
        /// with it before the request takes effect.
        case sha256([UInt8])
    }

    /// The other end of the connection.
    public enum Peer: Sendable, Hashable {
        /// An IPv4 or IPv6 address.
        case address(String)
        /// A process on this machine.
        case unixSocket
        /// The server does not report the peer. In this case, no proxy is trusted.
        case unknown
    }

    /// The method.
    public var method: String
    /// The path, with `?` and the query if there is one, as sent: not decoded.
    public var target: String
    /// Every header line in its order, including repeated ones.
    public var headers: HeaderFields
    /// The body.
    public var body: Body
    /// The other end of the connection. Only ``RequestSource/trustedProxies(_:)`` reads it.
    public var peer: Peer

    /// Memberwise initializer.
    public init(method: String, target: String, headers: HeaderFields, body: Body, peer: Peer = .unknown) {
        self.method = method
        self.target = target
        self.headers = headers
        self.body = body
        self.peer = peer
    }

    /// A request of a server on swift-http-types. Its `path` must be the target as on the wire.
    public init(_ head: HTTPRequest, body: Body, peer: Peer = .unknown) {
        self.init(
            method: head.method.rawValue, target: head.path ?? "",
            headers: HeaderFields(head.headerFields.lazy.map { ($0.name.rawName, $0.value) }), body: body, peer: peer)
    }

    /// Whether the headers claim scheme 2 and not scheme 1. The claim is unverified. For such a request, `body` may be the digest
    /// alone.
    public var usesSchemeTwo: Bool {
        headers.contains(HeaderName.signatureInput) && !headers.contains(HeaderName.signatureVersion)
    }

    /// The SHA-256 that `Content-Digest` names, 32 bytes; nil unless the field occurs once and names nothing else.
    public var contentDigest: [UInt8]? {
        guard let value = try? headers.one(HeaderName.contentDigest) else { return nil }
        return (try? ContentDigest(field: value))?.sha256
    }
}
