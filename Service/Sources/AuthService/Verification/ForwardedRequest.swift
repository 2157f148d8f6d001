@_spi(Service) package import AuthContract

/// A request that a gateway forwards for judgement (*Forward authentication* in the protocol).
///
/// The gateway forwards it in one of two forms, which the path alone selects. In the path form, the method is the original
/// one, and the original target follows the route's path. In the header form, two headers have the original method and target.
package struct ForwardedRequest: Sendable {
    /// The headers in which gateways describe the original request.
    package enum Field: String, Sendable, CaseIterable {
        case originalMethod = "X-Original-Method"
        case originalURI = "X-Original-URI"
        case originalContentLength = "X-Original-Content-Length"
        case originalTransferEncoding = "X-Original-Transfer-Encoding"
        case forwardedMethod = "X-Forwarded-Method"
        case forwardedURI = "X-Forwarded-Uri"
        case forwardedHost = "X-Forwarded-Host"
        case forwardedProto = "X-Forwarded-Proto"
        case partialBody = "X-Envoy-Auth-Partial-Body"
    }

    /// The header fields of the gateway's request, without its credential. They include those of the original request.
    package let headers: HeaderFields
    private let credentials: [String]
    /// The method and the target of the path form; nil: the header form.
    private let line: (method: String, target: String)?
    /// The scheme of the gateway's connection.
    private let scheme: String

    /// Parses the gateway's request. Nil unless its path is the route's path or below it.
    package init?(method: String, target: String, headers: HeaderFields, scheme: String) {
        guard target.utf8.starts(with: Route.forward.rawValue.utf8) else { return nil }
        let rest = target.utf8.dropFirst(Route.forward.rawValue.utf8.count)
        switch rest.first {
        case nil, UInt8(ascii: "?"): line = nil
        case UInt8(ascii: "/"): line = (method, String(Substring(rest)))
        default: return nil
        }
        credentials = headers.values(HeaderName.serviceCredential)
        var headers = headers
        headers.lines.removeAll { $0.name.lowercased() == HeaderName.serviceCredential.lowercased() }
        (self.headers, self.scheme) = (headers, scheme)
    }

    /// The gateway's credential; nil unless there is exactly one.
    package func credential() throws(Refusal) -> String? {
        guard credentials.count == 1, let credential = credentials.first else { return nil }
        return try Self.set(HeaderName.serviceCredential, credential)
    }

    /// The question that the gateway asks about the request.
    ///
    /// - Parameters:
    ///   - bodies: the bodies that the gateway forwards.
    ///   - received: the body of the gateway's request. It is used only if `bodies` is `whole`.
    /// - Throws: `INVALID_REQUEST` if the gateway's headers do not describe the request in the required form, or if the request's
    ///   body did not arrive.
    package func question(_ bodies: ForwardedBodies, received: [UInt8]) throws(Refusal) -> VerifyRequest {
        try refuseUnremoved()
        let (method, target) = if let line { line } else { try namedLine() }
        let scheme = try value(.forwardedProto) ?? scheme
        guard scheme == "http" || scheme == "https" else {
            throw Self.malformed("X-Forwarded-Proto must be http or https")
        }
        let host = try Self.set("Host", try wellFormed { try headers.one("Host") })
        let authority = line == nil ? try value(.forwardedHost) ?? host : host
        let parts = target.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        return VerifyRequest(
            method: method, scheme: scheme, authority: authority, path: String(parts[0]),
            query: parts.count > 1 ? String(parts[1]) : nil, headers: headers,
            body: try body(bodies, received: received, isRead: SignedRequest.isRead(method)))
    }

    /// The prefixes of header names that a gateway removes if a client sent such headers (*Forward authentication*).
    private static let removed = ["x-synheart-verified-", "x-original-", "x-forwarded-"]

    /// The headers with a prefix in `removed` that every gateway sets or removes by name, or that the service's answer replaces.
    private static let replaced = Set(
        Field.allCases.map { $0.rawValue.lowercased() } + ["x-forwarded-for"]
            + ["app", "device", "platform", "assurance"].map { "x-synheart-verified-\($0)" })

    /// Refuses a request in the path form if one of its headers has a prefix in `removed` but is not in `replaced`. nginx can remove only
    /// headers that its configuration names. It would pass such a header to the backend as if nginx had set it.
    private func refuseUnremoved() throws(Refusal) {
        guard line != nil else { return }
        for header in headers.lines {
            let name = header.name.lowercased()
            guard Self.removed.contains(where: name.hasPrefix), !Self.replaced.contains(name) else { continue }
            throw Self.malformed(
                "the client sent a header X-Synheart-Verified-…, X-Original-… or X-Forwarded-… that the gateway does not remove"
            )
        }
    }

    /// The original method and target in the headers: `X-Original-Method` and `X-Original-URI`, or `X-Forwarded-Method`
    /// and `X-Forwarded-Uri`.
    ///
    /// A header of the other pair is refused, even a single one: the gateway sets only one pair, so that header comes
    /// from the client.
    private func namedLine() throws(Refusal) -> (method: String, target: String) {
        let original = (try value(.originalMethod), try value(.originalURI))
        let forwarded = (try value(.forwardedMethod), try value(.forwardedURI))
        switch (original, forwarded) {
        case ((let method?, let target?), (nil, nil)), ((nil, nil), (let method?, let target?)): return (method, target)
        default:
            throw Self.malformed(
                """
                the gateway must set exactly one of two pairs of headers: X-Original-Method and X-Original-URI, or \
                X-Forwarded-Method and X-Forwarded-Uri
                """)
        }
    }

    /// The body with which the request is judged.
    private func body(
        _ bodies: ForwardedBodies, received: [UInt8], isRead: Bool
    ) throws(Refusal) -> VerifyRequest.Body {
        switch bodies {
        case .whole:
            guard try value(.partialBody) ?? "false" == "false" else {
                throw Self.malformed("the gateway forwarded only a part of the body: raise its limit for bodies")
            }
            // If the gateway describes the original body and the forwarded body does not match, it did not forward the whole body.
            if line == nil, has(.originalContentLength) || has(.originalTransferEncoding) {
                let original = try originalBody(isRead: isRead)
                guard received.isEmpty ? original.isEmpty : original.length ?? received.count == received.count else {
                    throw Self.malformed(
                        """
                        the body must be the one that X-Original-Content-Length and X-Original-Transfer-Encoding describe: \
                        the gateway must forward it whole
                        """)
                }
            }
            return .bytes(received)
        case .headers, .digest:
            guard line == nil else { throw Self.malformed("the path form needs a credential with body whole") }
            if try originalBody(isRead: isRead).isEmpty { return .bytes([]) }
            guard bodies == .digest else {
                throw Self.malformed("this gateway forwards no bodies, so the request must have none")
            }
            // The backend compares the body with Content-Digest. So the digest replaces the body, as `body_sha256` does in a
            // call of `/verify`. If the digest is malformed, the check of the headers of
            // scheme 2 refuses the request later.
            let claimed = try? ContentDigest(field: headers.one(HeaderName.contentDigest))
            return .sha256(claimed?.sha256 ?? [])
        }
    }

    /// The gateway's description of the original request's body.
    private struct OriginalBody {
        /// The length in bytes; nil: the request named none, or had a transfer coding.
        let length: Int?
        let isEmpty: Bool
    }

    private func originalBody(isRead: Bool) throws(Refusal) -> OriginalBody {
        guard let length = try value(.originalContentLength), let coding = try value(.originalTransferEncoding) else {
            throw Self.malformed(
                "the gateway must set X-Original-Content-Length and X-Original-Transfer-Encoding: none if there is none"
            )
        }
        guard coding.split(separator: ",", omittingEmptySubsequences: false).allSatisfy({ $0.isTransferCoding }) else {
            throw Self.malformed("X-Original-Transfer-Encoding must be none or transfer codings, separated by commas")
        }
        if length == Self.absent {
            // Under HTTP/2, a request with a body needs neither Content-Length nor Transfer-Encoding. So if both are absent, the
            // request is known to have no body only if its method reads, such as GET.
            return OriginalBody(length: nil, isEmpty: coding == Self.absent && isRead)
        }
        guard length.utf8.allSatisfy({ 0x30...0x39 ~= $0 }), let number = Int(length) else {
            throw Self.malformed("X-Original-Content-Length must be none or a number of bytes")
        }
        return OriginalBody(length: coding == Self.absent ? number : nil, isEmpty: coding == Self.absent && number == 0)
    }

    /// The value with which the gateway says that the original request lacks a header.
    private static let absent = "none"

    private func has(_ field: Field) -> Bool { headers.contains(field.rawValue) }

    /// The value of a header of the gateway; nil if it is absent.
    private func value(_ field: Field) throws(Refusal) -> String? {
        guard let value = try wellFormed({ try headers.atMostOne(field.rawValue) }) else { return nil }
        return try Self.set(field.rawValue, value)
    }

    /// The value of a header. Refuses an empty value, and a placeholder that the gateway did not replace.
    private static func set(_ name: String, _ value: String) throws(Refusal) -> String {
        guard let first = value.utf8.first, first != UInt8(ascii: "{"), first != UInt8(ascii: "$") else {
            throw malformed("\(name) must have a value: it is empty, or a variable that the gateway did not replace")
        }
        return value
    }

    private static func malformed(_ reason: String) -> Refusal { Refusal(malformed: ContractError(reason)) }
}

extension Substring {
    /// Whether this is the name of a transfer coding (RFC 9112 section 7), with or without white space around it.
    fileprivate var isTransferCoding: Bool {
        let name = String(self).trimmingOptionalWhitespace
        return !name.isEmpty && name.utf8.allSatisfy { 0x21...0x7E ~= $0 && !"\"(),/:;<=>?@[\\]{}".utf8.contains($0) }
    }
}
