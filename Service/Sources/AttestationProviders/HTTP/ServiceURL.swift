internal import Foundation

/// Where a provider's service is: https, or http on this machine for tests.
enum ServiceURL {
    static func isAllowed(_ text: String) -> Bool {
        guard let url = URLComponents(string: text), let scheme = url.scheme?.lowercased(), let host = url.host,
            !host.isEmpty, url.user == nil, url.password == nil
        else { return false }
        return scheme == "https" || (scheme == "http" && ["127.0.0.1", "localhost", "[::1]", "::1"].contains(host))
    }
}
