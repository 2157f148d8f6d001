internal import AuthContract
public import StrictJSON

/// One call of the admin API, by whatever way it goes: over HTTP to a running service, or straight to the store.
public struct AdminCall: Sendable {
    /// The operation.
    public let route: AdminRoute
    let parameters: [String: String]
    let query: [(name: String, value: String)]
    /// The body; nil for none.
    public let body: JSONObject?

    /// A call.
    ///
    /// - Parameters:
    ///   - route: the operation.
    ///   - parameters: what stands in place of the braces of `AdminRoute.template`.
    ///   - query: by name; what is nil is left out.
    ///   - body: nil for none.
    public init(
        _ route: AdminRoute, _ parameters: [String: String] = [:], query: [(String, String?)] = [],
        body: JSONObject? = nil
    ) {
        self.route = route
        self.parameters = parameters
        self.query = query.compactMap { name, value in value.map { (name, $0) } }
        self.body = body
    }

    /// Path and query as they stand in an HTTP request.
    public var target: String {
        let path = route.template.split(separator: "/").map { part in
            guard part.hasPrefix("{"), part.hasSuffix("}") else { return String(part) }
            return Self.encoded(parameters[String(part.dropFirst().dropLast())] ?? "")
        }
        let query = query.map { "\($0.name)=\(Self.encoded($0.value))" }
        return "/" + path.joined(separator: "/") + (query.isEmpty ? "" : "?" + query.joined(separator: "&"))
    }

    /// Everything but the unreserved characters of RFC 3986 as escapes.
    private static func encoded(_ text: String) -> String {
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

/// What a call is answered: an HTTP status, and a body of the API's, which is an error's where the status is 400 or more.
public struct AdminAnswer: Sendable {
    public let status: Int
    /// Null where there is none.
    public let body: JSONValue

    /// An answer of its parts.
    public init(status: Int, body: JSONValue) {
        self.status = status
        self.body = body
    }
}
