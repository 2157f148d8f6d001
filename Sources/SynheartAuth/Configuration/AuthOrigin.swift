internal import AuthContract

/// The origin of an auth service: https, or http on this machine.
struct AuthOrigin: Sendable, Hashable {
    let origin: RequestOrigin

    /// `https://auth.example.com`: lower case, without the scheme's default port.
    var text: String { origin.description }

    /// Reads `https://auth.example.com` or `http://127.0.0.1:8080`, with or without a trailing slash. Refuses a path, query,
    /// fragment or user name.
    init(_ text: String) throws(SynheartAuthError) {
        let origin: RequestOrigin
        do throws(ContractError) {
            origin = try RequestOrigin(text.hasSuffix("/") ? String(text.dropLast()) : text)
        } catch {
            throw SynheartAuthError(.notConfigured, "not the URL of a service: \(error.description)")
        }
        try self.init(origin)
    }

    init(_ origin: RequestOrigin) throws(SynheartAuthError) {
        guard origin.isSecure else {
            throw SynheartAuthError(.notConfigured, "https is needed for any host but this one")
        }
        self.origin = origin
    }
}
