internal import AuthServer

/// The cookie that has a session's id. `__Host-` binds it to this host: no other host of the same domain can set it.
enum SessionCookie {
    static let name = "__Host-synheart-console"

    /// The session id in a request; nil unless the request has exactly one such cookie with a value of the right length.
    static func id(in request: PageRequest) -> String? {
        guard let values = request.cookies[name], values.count == 1, values[0].utf8.count == 43 else { return nil }
        return values[0]
    }

    /// The header that gives a session id to the browser. When the browser is closed, it forgets the id.
    static func set(_ id: String) -> (String, String) { ("Set-Cookie", "\(name)=\(id); \(attributes)") }

    /// The header that removes the session id from the browser.
    static let removal = ("Set-Cookie", "\(name)=; Max-Age=0; \(attributes)")

    private static let attributes = "Path=/; Secure; HttpOnly; SameSite=Strict"
}
