public import AuthContract
internal import Foundation

/// The prefixes with which a translator shows IPv4 clients as IPv6 addresses (RFC 6052).
public struct NAT64Prefixes: Sendable, Hashable {
    private struct Prefix: Sendable, Hashable {
        let bytes: [UInt8]
        /// The length of the prefix in bytes.
        let length: Int
    }

    /// The prefixes, the longest first.
    private let prefixes: [Prefix]

    /// The largest number of prefixes that an operator can name.
    private static let maximum = 16

    /// The well-known prefix `64:ff9b::/96` (RFC 6052 section 2.1), which is always included.
    private static let wellKnown = Prefix(bytes: [0, 0x64, 0xFF, 0x9B] + [UInt8](repeating: 0, count: 12), length: 12)

    /// Only the well-known prefix.
    public static let standard = NAT64Prefixes(prefixes: [wellKnown])

    private init(prefixes: [Prefix]) { self.prefixes = prefixes }

    /// The well-known prefix and those of an operator, such as `2001:db8:64::/96`.
    ///
    /// - Throws: `ContractError` for more than 16 texts, and for a text that is not an IPv6 prefix of 32, 40, 48, 56, 64 or 96 bits
    ///   (RFC 6052 section 2.2). Bits 64 to 71 and all bits beyond the length must be zero. The first 32 bits must not all be zero.
    public init(_ texts: [String]) throws(ContractError) {
        guard texts.count <= Self.maximum else { throw ContractError("has more than \(Self.maximum) prefixes") }
        var prefixes = [Self.wellKnown]
        for (number, text) in texts.enumerated() {
            guard let prefix = Self.prefix(text) else {
                throw ContractError(
                    "element \(number + 1) is no NAT64 prefix such as 2001:db8:64::/96: an IPv6 network of 32, 40, 48, 56, 64 or 96 bits"
                )
            }
            prefixes.append(prefix)
        }
        self.init(
            prefixes: Set(prefixes).sorted { ($1.length, $0.bytes.description) < ($0.length, $1.bytes.description) })
    }

    /// The IPv4 address in this IPv6 address, 4 bytes; nil if no prefix contains the IPv6 address, or if its bits 64 to 71 are not
    /// zero.
    ///
    /// The IPv4 address follows the prefix and skips bits 64 to 71 (RFC 6052 section 2.2).
    func embeddedIPv4(in address: [UInt8]) -> [UInt8]? {
        guard address.count == 16, address[8] == 0,
            let prefix = prefixes.first(where: { address.starts(with: $0.bytes.prefix($0.length)) })
        else { return nil }
        return Array(address.indices.dropFirst(prefix.length).filter { $0 != 8 }.prefix(4).map { address[$0] })
    }

    private static func prefix(_ text: String) -> Prefix? {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2, let bits = [32, 40, 48, 56, 64, 96].first(where: { String($0) == parts[1] }) else {
            return nil
        }
        var address = in6_addr()
        guard inet_pton(AF_INET6, String(parts[0]), &address) == 1 else { return nil }
        let bytes = withUnsafeBytes(of: &address) { Array($0) }
        let length = bits / 8
        // Refuse a prefix in ::/32, which has the unspecified address, loopback and IPv4-mapped addresses.
        guard bytes.prefix(4) != [0, 0, 0, 0], bytes.dropFirst(length).allSatisfy({ $0 == 0 }), bytes[8] == 0 else {
            return nil
        }
        return Prefix(bytes: bytes, length: length)
    }
}
