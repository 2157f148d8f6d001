internal import AuthContract
internal import AuthService
internal import HTTPTypes
internal import HummingbirdCore
internal import NIOCore
internal import StrictJSON

extension Request {
    /// The bytes of the body as they stood on the wire; refuses more than `limit`, or than `hold` can cover, before they are
    /// all here. Tells a client that waits for `100 Continue` to send them.
    func bytes(
        upTo limit: Int, within hold: inout BodyBudget.Hold, over connection: ConnectionContext
    ) async throws -> [UInt8] {
        if let length = headers[.contentLength].flatMap({ Int($0) }), length > limit {
            throw Refusal(.payloadTooLarge, "\(length) bytes")
        }
        // A request that names no length has no body (RFC 9112 section 6.3).
        guard headers.contains(.contentLength) || headers.contains(.transferEncoding) else { return [] }
        if headers.contains(.expect) { try await connection.sendContinue() }
        var bytes: [UInt8] = []
        for try await buffer in body {
            guard bytes.count + buffer.readableBytes <= limit else {
                throw Refusal(.payloadTooLarge, "more than \(limit) bytes")
            }
            try hold.cover(bytes.count + buffer.readableBytes)
            bytes.append(contentsOf: buffer.readableBytesView)
        }
        return bytes
    }

    /// Refuses a body that does not say that it is JSON, as it stands.
    func requireJSON() throws(Refusal) {
        let contentType = headers[.contentType] ?? ""
        // Most write just that.
        guard
            contentType == "application/json"
                || contentType.prefix(while: { $0 != ";" }).lowercased().trimmingSuffix(" ") == "application/json"
        else {
            throw Refusal(.unsupportedMediaType, "Content-Type is not application/json")
        }
        // What is compressed could not be read here, and its signature would be over other bytes than its meaning.
        guard headers[.contentEncoding].map({ $0.lowercased() == "identity" }) ?? true else {
            throw Refusal(.unsupportedMediaType, "Content-Encoding is not identity")
        }
    }

    /// The one `Authorization` header; two of them are none.
    var authorization: String? {
        let values = headers[values: .authorization]
        return values.count == 1 ? values.first : nil
    }
}

/// Depth of JSON that any body may have.
let maximumJSONDepth = 16

extension WireBody {
    /// Reads a body whose size was bounded when it was received.
    init(received bytes: [UInt8]) throws {
        try self.init(parsing: bytes, limits: JSONValue.Limits(bytes: max(bytes.count, 1), depth: maximumJSONDepth))
    }
}

extension String {
    fileprivate func trimmingSuffix(_ character: Character) -> Substring {
        var text = self[...]
        while text.last == character { text.removeLast() }
        return text
    }
}
