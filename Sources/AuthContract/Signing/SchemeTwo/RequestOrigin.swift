internal import Bytes

/// The destination of a request: scheme and authority, normalized so that equal origins are equal values.
public struct RequestOrigin: Sendable, Hashable, CustomStringConvertible {
    /// The schemes of HTTP.
    public enum Scheme: String, Sendable, Hashable, CaseIterable {
        /// Without TLS: port 80 by default.
        case http
        /// With TLS: port 443 by default.
        case https

        var defaultPort: String { self == .https ? "443" : "80" }
    }

    /// `@scheme` (RFC 9421 section 2.2.4).
    public let scheme: Scheme
    /// `@authority` (RFC 9421 section 2.2.3): the host in lower case, and the port unless it is the scheme's default.
    public let authority: String

    /// An origin from its parts.
    ///
    /// - Parameters:
    ///   - scheme: `http` or `https`, in either case.
    ///   - authority: `host` or `host:port`. The host is a name, an IPv4 address or an IPv6 address in brackets. User
    ///     information, escapes and empty parts are refused.
    public init(scheme: String, authority: String) throws(ContractError) {
        guard let scheme = Scheme(rawValue: String(decoding: scheme.utf8.map(\.lowerCased), as: UTF8.self)) else {
            throw ContractError("the scheme must be http or https")
        }
        let text = authority.utf8.map(\.lowerCased)
        // Search for the port after the brackets of an IPv6 address, because the address has colons too.
        let hostEnd = text.first == UInt8(ascii: "[") ? (text.firstIndex(of: UInt8(ascii: "]")) ?? 0) + 1 : 0
        let portStart = text[hostEnd...].firstIndex(of: UInt8(ascii: ":"))
        let host = text[..<(portStart ?? text.endIndex)]
        guard Self.isHost(host) else { throw ContractError("the authority must be a host, with or without a port") }
        self.scheme = scheme
        var normalised = String(decoding: host, as: UTF8.self)
        if let portStart {
            let port = String(decoding: text[(portStart + 1)...], as: UTF8.self)
            guard Self.isPort(port) else { throw ContractError("the port must be a number from 1 to 65535") }
            if port != scheme.defaultPort { normalised += ":" + port }
        }
        self.authority = normalised
    }

    /// Parses `scheme://authority`, without a path.
    public init(_ text: String) throws(ContractError) {
        let bytes = Array(text.utf8)
        guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")), bytes[colon...].starts(with: "://".utf8) else {
            throw ContractError("an origin must be written as scheme://authority")
        }
        guard bytes[(colon + 3)...].allSatisfy({ !"/?#".utf8.contains($0) }) else {
            throw ContractError("an origin has no path: write scheme://authority without a '/' at the end")
        }
        try self.init(
            scheme: String(decoding: bytes[..<colon], as: UTF8.self),
            authority: String(decoding: bytes[(colon + 3)...], as: UTF8.self))
    }

    /// The origin as `scheme://authority`.
    public var description: String { "\(scheme.rawValue)://\(authority)" }

    /// Whether the host is this machine: `localhost`, `127.0.0.0/8`, `[::1]`.
    public var isLoopback: Bool { Loopback.contains(host: host) }

    /// Whether secrets may be sent to this origin: https, or http to this machine.
    public var isSecure: Bool { scheme == .https || isLoopback }

    /// The authority without its port.
    private var host: Substring {
        guard authority.hasPrefix("["), let end = authority.firstIndex(of: "]") else {
            return authority.prefix { $0 != ":" }
        }
        return authority[...end]
    }

    private static func isHost(_ host: ArraySlice<UInt8>) -> Bool {
        guard (1...255).contains(host.count) else { return false }
        guard host.first == UInt8(ascii: "[") else {
            return host.allSatisfy { $0.isLetter || $0.isDigit || "-._~".utf8.contains($0) }
        }
        let address = host.dropFirst().dropLast()
        return host.last == UInt8(ascii: "]") && address.contains(UInt8(ascii: ":"))
            && address.allSatisfy {
                Hexadecimal.value(of: $0) != nil || $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: ".")
            }
    }

    private static func isPort(_ text: String) -> Bool {
        guard let port = UInt16(text), port > 0 else { return false }
        // One spelling for each port: no sign, no leading zeros.
        return String(port) == text
    }
}
