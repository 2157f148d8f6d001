@_spi(Service) internal import AuthContract
internal import HTTPTypes
internal import NIOHTTP1

/// Translates between NIO's HTTP/1 heads and the shared HTTP types, keeping what the rules need and the usual codec drops:
/// the target exactly as it stood on the wire (absolute form included, so that it can be refused) and every `Host` line.
enum WireTranslation {
    /// The request; nil where servers could differ on what it says.
    ///
    /// - Parameter scheme: `https` behind a TLS handler, else `http`.
    static func request(_ head: HTTPRequestHead, scheme: String) -> HTTPRequest? {
        guard let method = HTTPRequest.Method(head.method.rawValue), hasOneLength(head) else { return nil }
        var fields = HTTPFields()
        fields.reserveCapacity(head.headers.count)
        for (name, value) in head.headers {
            // Spaces and tabs around a value are no part of it (RFC 9110 section 5.5). Where control bytes stood HTTPField
            // would put spaces, and the value would no longer be what was sent.
            let value = value.trimmingOptionalWhitespace
            guard let name = HTTPField.Name(name), HTTPField.isValidValue(value) else { return nil }
            fields.append(HTTPField(name: name, value: value))
        }
        return HTTPRequest(
            method: method, scheme: scheme, authority: head.headers.first(name: "host"), path: head.uri,
            headerFields: fields)
    }

    /// Whether every server sees the end of the request in the same place: a transfer coding is `chunked` alone, and none in
    /// HTTP/1.0, which knows none (RFC 9112 section 6.1). The decoder has refused what else there is.
    private static func hasOneLength(_ head: HTTPRequestHead) -> Bool {
        let codings = head.headers["Transfer-Encoding"]
        guard !codings.isEmpty else { return true }
        return head.version == .http1_1 && codings.count == 1
            && codings.allSatisfy { $0.trimmingOptionalWhitespace.lowercased() == "chunked" }
    }

    /// - Parameter isLast: whether the connection ends after this answer.
    static func head(_ response: HTTPResponse, isLast: Bool) -> HTTPResponseHead {
        var headers = HTTPHeaders(response.headerFields.map { ($0.name.rawName, $0.value) })
        if isLast { headers.replaceOrAdd(name: "Connection", value: "close") }
        return HTTPResponseHead(
            version: .http1_1, status: HTTPResponseStatus(statusCode: response.status.code), headers: headers)
    }
}
