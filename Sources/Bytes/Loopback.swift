internal import Foundation

/// Recognizes the hosts of this machine. Every rule about loopback uses it.
public enum Loopback {
    /// Whether a host is this machine: `localhost`, an IPv4 address in 127.0.0.0/8, or `::1`, with or without brackets.
    ///
    /// Other spellings, such as `127.1` or `0:0:0:0:0:0:0:1`, are not recognized, because parsers disagree about them.
    public static func contains(host: some StringProtocol) -> Bool {
        let host = host.lowercased()
        return ["localhost", "::1", "[::1]"].contains(host) || ipv4(host).map(contains(address:)) ?? false
    }

    /// Whether the bytes of an IPv4 or IPv6 address are in 127.0.0.0/8, or are `::1`.
    public static func contains(address: [UInt8]) -> Bool {
        address.count == 4 ? address[0] == 127 : address == [UInt8](repeating: 0, count: 15) + [1]
    }

    /// The bytes of an IPv4 address in four decimal numbers without leading zeros; nil for any other text.
    private static func ipv4(_ text: String) -> [UInt8]? {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        let bytes = parts.compactMap { part in UInt8(part).flatMap { String($0) == part ? $0 : nil } }
        return parts.count == 4 && bytes.count == 4 ? bytes : nil
    }
}

/// Recognizes URLs that secrets may be sent to.
public enum SecureURL {
    /// Whether a text is an absolute `https` URL, or an `http` URL of this machine, without user name and password.
    ///
    /// The URL is parsed, because `http://127.0.0.1:80@example.com` only looks like a local one.
    public static func isSecure(_ text: String) -> Bool {
        guard let url = URLComponents(string: text), let scheme = url.scheme?.lowercased(), let host = url.host,
            !host.isEmpty, url.user == nil, url.password == nil
        else { return false }
        return scheme == "https" || (scheme == "http" && Loopback.contains(host: host))
    }
}
