internal import Foundation

/// Scheme, host and port of a service: https anywhere, http only on this machine.
struct AuthOrigin: Sendable, Hashable {
    /// Without a slash at the end, in lower case, the default port left out.
    let text: String

    /// Reads `https://auth.example.com` or `http://127.0.0.1:8080`; a path, query, fragment or user name is refused.
    init(_ text: String) throws(SynheartAuthError) {
        guard text.utf8.count <= 2048, let parts = URLComponents(string: text),
            let scheme = parts.scheme?.lowercased(), let host = parts.host?.lowercased(), !host.isEmpty,
            parts.user == nil, parts.password == nil, parts.query == nil, parts.fragment == nil,
            parts.path.isEmpty || parts.path == "/", (parts.port ?? 443) > 0, (parts.port ?? 443) < 65_536
        else { throw Self.refusal("not the URL of a service: scheme, host and port are all it may have") }
        guard scheme == "https" || (scheme == "http" && Self.isLoopback(host)) else {
            throw Self.refusal("https is needed for any host but this one")
        }
        let port = parts.port.flatMap { $0 == (scheme == "https" ? 443 : 80) ? nil : $0 }
        self.text = "\(scheme)://\(host)\(port.map { ":\($0)" } ?? "")"
    }

    private static func refusal(_ message: String) -> SynheartAuthError {
        SynheartAuthError(.notConfigured, message)
    }

    private static func isLoopback(_ host: String) -> Bool {
        if host == "localhost" || host == "::1" || host == "[::1]" { return true }
        let octets = host.split(separator: ".", omittingEmptySubsequences: false)
        return octets.count == 4 && octets.first == "127" && octets.allSatisfy { UInt8($0) != nil }
    }
}
