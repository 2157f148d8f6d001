internal import Foundation

/// The address of a client, as rate limits count it.
public struct ClientAddress: Sendable, Hashable, CustomStringConvertible {
    /// An IPv4 address, or the /64 network of an IPv6 address, which one customer usually has alone.
    public let network: String

    /// Parses an address. Any other text is kept as it is, and has one bucket.
    public init(_ text: String) {
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
        // An IPv4 client of a dual-stack socket.
        if bytes.prefix(12) == [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF] {
            network = bytes.suffix(4).map(String.init).joined(separator: ".")
        } else {
            network =
                stride(from: 0, to: 8, by: 2)
                .map { String(UInt16(bytes[$0]) << 8 | UInt16(bytes[$0 + 1]), radix: 16) }.joined(separator: ":")
                + "::/64"
        }
    }

    public var description: String { network }
}
