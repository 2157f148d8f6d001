internal import Foundation

/// The address of a client, in the form for which rate limits count requests.
public struct ClientAddress: Sendable, Hashable, CustomStringConvertible {
    /// An IPv4 address, or the /64 network of an IPv6 address, which usually belongs to one customer. Any other text is kept.
    public let network: String
    /// Whether the address stands for all requests of a trusted proxy that name no client. Then `network` is the proxy's own
    /// address.
    public let isUnnamed: Bool

    /// The requests of a trusted proxy that name no client address. They share one bucket of ten times the enrolment rate. No
    /// other limit by address applies to them.
    public init(unnamedBy proxy: String) { (network, isUnnamed) = (proxy, true) }

    /// Parses an address. Any other text is kept unchanged, and has one bucket.
    ///
    /// - Parameters:
    ///   - text: an address as `inet_pton` reads it. An IPv6 address may have a zone.
    ///   - nat64: the prefixes with which an IPv6 address stands for an IPv4 client. The embedded IPv4 address is used, because
    ///     otherwise all clients behind a translator would share a /64.
    public init(_ text: String, nat64: NAT64Prefixes = .standard) {
        isUnnamed = false
        guard text.utf8.contains(UInt8(ascii: ":")) else {
            network = text
            return
        }
        var address = in6_addr()
        let withoutZone = text.split(separator: "%").first.map(String.init) ?? text
        guard inet_pton(AF_INET6, withoutZone, &address) == 1 else {
            network = text
            return
        }
        let bytes = withUnsafeBytes(of: &address) { Array($0) }
        if let four = Self.mappedIPv4(in: bytes) ?? nat64.embeddedIPv4(in: bytes) {
            network = four.map(String.init).joined(separator: ".")
        } else {
            network =
                stride(from: 0, to: 8, by: 2)
                .map { String(UInt16(bytes[$0]) << 8 | UInt16(bytes[$0 + 1]), radix: 16) }.joined(separator: ":")
                + "::/64"
        }
    }

    /// The IPv4 address in an IPv4-mapped IPv6 address of 16 bytes (RFC 4291 section 2.5.5.2): an IPv4 client on a dual-stack
    /// socket. Nil for any other address.
    package static func mappedIPv4(in bytes: [UInt8]) -> [UInt8]? {
        bytes.prefix(12) == [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF] ? Array(bytes.suffix(4)) : nil
    }

    public var description: String { network }
}
