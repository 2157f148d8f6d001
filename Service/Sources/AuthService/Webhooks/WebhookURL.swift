public import AuthContract

/// The URL of a receiver: https, or http to this machine. Plain http to another machine needs `allowsHTTP`.
public struct WebhookURL: Sendable, Hashable {
    /// The whole URL, with its origin normalized, so that the HTTP client connects to the same host that the address check examined.
    public let text: String
    /// Scheme, host and port.
    public let origin: RequestOrigin

    private static let maximumBytes = 2048

    /// Parses a URL.
    ///
    /// - Parameters:
    ///   - text: `https://host[:port][/path][?query]`, at most 2048 bytes, without user information and fragment.
    ///   - allowsHTTP: whether plain http to other machines is allowed.
    public init(_ text: String, allowingHTTP allowsHTTP: Bool = false) throws(ContractError) {
        let bytes = Array(text.utf8)
        guard bytes.count <= Self.maximumBytes,
            bytes.allSatisfy({ (0x21...0x7E).contains($0) && !#"#\"<>^`{|}"#.utf8.contains($0) }),
            let colon = bytes.firstIndex(of: UInt8(ascii: ":")), bytes[colon...].starts(with: "://".utf8)
        else {
            throw ContractError(
                "url must be https://host/path: at most \(Self.maximumBytes) visible ASCII characters, no fragment")
        }
        let rest = bytes[(colon + 3)...]
        let end = rest.firstIndex { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") } ?? rest.endIndex
        guard !rest[..<end].contains(UInt8(ascii: "@")) else {
            throw ContractError("url must have no user information: a receiver checks the signature of a delivery")
        }
        do {
            origin = try RequestOrigin(String(decoding: bytes[..<end], as: UTF8.self))
        } catch {
            throw ContractError("url: \(error)")
        }
        guard origin.isSecure || allowsHTTP else {
            throw ContractError("url must begin with https://. Plain http is for this machine alone")
        }
        self.text = origin.description + String(decoding: bytes[end...], as: UTF8.self)
    }

    /// The host, without the brackets of an IPv6 address.
    public var host: String {
        guard origin.authority.hasPrefix("[") else { return String(origin.authority.prefix { $0 != ":" }) }
        return String(origin.authority.dropFirst().prefix { $0 != "]" })
    }
}
