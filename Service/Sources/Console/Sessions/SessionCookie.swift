internal import AuthServer

/// The cookie that has a session's id. `__Host-` binds it to this host: no other name of the same domain can set it.
enum SessionCookie {
    static let name = "__Host-synheart-console"

    /// The id in a request; nil unless there is exactly one of a session id's length.
    static func id(in request: PageRequest) -> String? {
        guard let values = request.cookies[name], values.count == 1, values[0].utf8.count == 43 else { return nil }
        return values[0]
    }

    /// Gives the browser an id, which it keeps until it is closed.
    static func set(_ id: String) -> (String, String) { ("Set-Cookie", "\(name)=\(id); \(attributes)") }

    /// Takes the id away.
    static let removal = ("Set-Cookie", "\(name)=; Max-Age=0; \(attributes)")

    private static let attributes = "Path=/; Secure; HttpOnly; SameSite=Strict"
}
