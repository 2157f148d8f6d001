internal import AuthContract
internal import RequestVerification

/// The rules for the headers that pass between the client and the backend.
struct ForwardedHeaders: Sendable {
    /// The scheme and the authority that clients sign for; nil: a trusted proxy's headers name them.
    let origin: RequestOrigin?
    /// Headers that every request to the backend gets.
    let upstream: UpstreamHeaders

    /// The headers of the request to the backend, without a length, which the HTTP client adds.
    ///
    /// - Parameters:
    ///   - headers: every line that the client sent.
    ///   - identity: the headers that carry the identity.
    ///   - peer: the address of the peer.
    ///   - isFromTrustedProxy: whether the peer is a trusted proxy.
    ///   - requestID: the id of the request in the log.
    func request(
        _ headers: HeaderFields, identity: [(String, String)], peer: String, isFromTrustedProxy: Bool,
        requestID: String
    ) -> HeaderFields {
        let forwarded = [
            (HeaderName.requestID, requestID),
            ("X-Forwarded-For", Self.forwardedFor(headers, peer, isFromTrustedProxy)),
        ]
        let added = forwarded + signedFor(headers) + identity + upstream.lines
        let replaced = Set(added.map { Self.comparable($0.0) })
        let dropped = Self.hopByHop.union(Self.named(in: headers)).union(Self.ended)
        let kept = headers.lines.filter { line in
            let name = Self.comparable(line.name)
            return !dropped.contains(name) && !replaced.contains(name) && !Self.isOfGateways(name)
                && Self.isPlain(line.name)
        }
        return HeaderFields(kept.map { ($0.name, $0.value) } + added)
    }

    /// The headers with the scheme and the authority that the verifier used for a request. Other headers of these names, in any
    /// spelling, are not forwarded.
    private func signedFor(_ headers: HeaderFields) -> [(String, String)] {
        if let origin {
            return [("X-Forwarded-Proto", origin.scheme.rawValue), ("X-Forwarded-Host", origin.authority)]
        }
        return ["X-Forwarded-Proto", "X-Forwarded-Host"].compactMap { name in
            (try? headers.one(name)).map { (name, $0) }
        }
    }

    /// Whether `Connection` names a header that must reach the backend, such as a signed one. The proxy must remove each
    /// header that `Connection` names, so the backend would get another request than the service verified.
    static func hidesItsMeaning(_ headers: HeaderFields) -> Bool {
        named(in: headers).contains { name in
            name == "host" || signed.contains(name)
                || ["content-", "x-forwarded-", "x-synheart-"].contains { name.hasPrefix($0) }
        }
    }

    /// The headers of the backend's answer for the client.
    static func answer(_ headers: HeaderFields) -> [HeaderFields.Line] {
        let dropped = hopByHop.union(named(in: headers))
        return headers.lines.filter { !dropped.contains(comparable($0.name)) }
    }

    /// The hop-by-hop headers (RFC 9110 section 7.6.1).
    private static let hopByHop: Set<String> = [
        "connection", "keep-alive", "proxy-connection", "proxy-authenticate", "proxy-authorization", "te", "trailer",
        "transfer-encoding", "upgrade", "http2-settings",
    ]

    /// Headers of the client that the proxy does not forward. The HTTP client sets the backend's host and the length of
    /// the body, the proxy itself handles `Expect`, and the `X-Forwarded-` headers take the place of `Forwarded`.
    private static let ended: Set<String> = ["host", "content-length", "expect", "forwarded"]

    /// Whether only a gateway may set a header: the signer and origin of a request, the service credential, `Proxy`, which
    /// CGI turns into `HTTP_PROXY`, and the headers that change the method or the path.
    private static func isOfGateways(_ name: String) -> Bool {
        IdentityHeader.isReserved(name) || name == "proxy" || name == comparable(HeaderName.serviceCredential)
            || name.hasPrefix("x-forwarded-") || name.hasPrefix("x-original-") || changingTheTarget.contains(name)
    }

    /// Headers for which a backend executes another request than the signed one. Rack, Django and others take the method from the
    /// first three. Daphne removes the value of the last one from the start of the path.
    private static let changingTheTarget: Set<String> = [
        "x-http-method-override", "x-http-method", "x-method-override", "daphne-root-path",
    ]

    /// Whether a name has only letters, digits and hyphens. Backends that use CGI variables treat other spellings as the same
    /// names. And gunicorn treats `SCRIPT_NAME` as a part of the path, so the backend would execute another path than the signed
    /// one.
    private static func isPlain(_ name: String) -> Bool {
        name.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"):
                true
            default: false
            }
        }
    }

    private static let signed: Set<String> = ["x-app-id", "x-device-id", "signature", "signature-input"]

    /// The names of the headers that `Connection` lists.
    private static func named(in headers: HeaderFields) -> Set<String> {
        Set(
            headers.values("Connection").flatMap { $0.split(separator: ",") }.map {
                comparable($0.filter { $0 != " " && $0 != "\t" })
            })
    }

    private static func comparable(_ name: String) -> String { IdentityHeader.folded(name) }

    /// The value of `X-Forwarded-For` for the backend: the addresses that a trusted proxy forwarded, and then the peer.
    private static func forwardedFor(_ headers: HeaderFields, _ peer: String, _ isFromTrustedProxy: Bool) -> String {
        ((isFromTrustedProxy ? headers.values("X-Forwarded-For") : []) + [peer]).joined(separator: ", ")
    }
}
