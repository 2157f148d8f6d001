internal import AuthContract
package import StrictJSON

/// One call of the admin API: over HTTP to a running service, from a console page, or directly on the store.
package struct AdminCall: Sendable {
    /// The operation.
    package let route: AdminRoute
    /// The values for the braces of `AdminRoute.template`.
    package let parameters: [String: String]
    /// The query, without names that have no value.
    package let query: [(name: String, value: String)]
    /// The body; nil for none.
    package let body: JSONObject?
    /// The version that the record must have, from `If-Match`; nil: any.
    package var ifMatch: String?

    /// A call.
    ///
    /// - Parameters:
    ///   - route: the operation.
    ///   - parameters: the values for the braces of `AdminRoute.template`.
    ///   - query: by name. Nil values are left out.
    ///   - body: nil for none.
    package init(
        _ route: AdminRoute, _ parameters: [String: String] = [:], query: [(String, String?)] = [],
        body: JSONObject? = nil
    ) {
        self.route = route
        self.parameters = parameters
        self.query = query.compactMap { name, value in value.map { (name, $0) } }
        self.body = body
    }

    /// The query parameter that finds a device by its id, or by the hash that the log has (`DeviceHash`).
    package static func device(_ text: String?) -> (String, String?) {
        (text?.utf8.count == 16 ? "device_hash" : "device_id", text)
    }

    /// Path and query as in an HTTP request.
    package var target: String {
        let path = route.template.split(separator: "/").map { part in
            guard part.hasPrefix("{"), part.hasSuffix("}") else { return String(part) }
            return Self.encoded(parameters[String(part.dropFirst().dropLast())] ?? "")
        }
        let query = query.map { "\($0.name)=\(Self.encoded($0.value))" }
        return "/" + path.joined(separator: "/") + (query.isEmpty ? "" : "?" + query.joined(separator: "&"))
    }

    /// Percent-encodes everything but the unreserved characters of RFC 3986.
    package static func encoded(_ text: String) -> String {
        var encoded = ""
        for byte in text.utf8 {
            let scalar = Unicode.Scalar(byte)
            switch scalar {
            case "a"..."z", "A"..."Z", "0"..."9", "-", ".", "_", "~": encoded.unicodeScalars.append(scalar)
            default: encoded += "%" + Hexadecimal.encode([byte]).uppercased()
            }
        }
        return encoded
    }
}

/// The response to a call: an HTTP status and a body of the API. From status 400 on, the body is an error.
package struct AdminResponse: Sendable {
    package let status: Int
    /// The body; null if there is none.
    package let body: JSONValue
    /// The version of the read or changed record, for `If-Match`; nil: the answer has none.
    package let entityTag: String?
    /// The reason of a refusal, for the log; nil: it is not known here.
    package let reason: String?

    /// Memberwise initializer.
    package init(status: Int, body: JSONValue, entityTag: String? = nil, reason: String? = nil) {
        self.status = status
        self.body = body
        self.entityTag = entityTag
        self.reason = reason
    }
}
