internal import Foundation

/// A network of IPv4 or IPv6: an address and the length of its prefix in bits.
struct IPNetwork: Sendable, Hashable {
    private let address: [UInt8]
    private let length: Int

    /// A network such as `10.0.0.0/8`, or one address.
    init?(_ text: String) {
        let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard let address = parts.first.flatMap({ Self.address(String($0)) }) else { return nil }
        let width = address.count * 8
        var length = width
        if parts.count > 1 {
            guard parts[1].utf8.allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }),
                let written = UInt8(parts[1]).map(Int.init), written <= width
            else { return nil }
            length = written
        }
        self.address = address
        self.length = length
    }

    /// Whether the network has the address.
    func contains(_ other: [UInt8]) -> Bool {
        guard other.count == address.count else { return false }
        return zip(address, other).enumerated().allSatisfy { index, pair in
            let counted = min(max(length - index * 8, 0), 8)
            let mask = UInt8(truncatingIfNeeded: 0xFF00 >> counted)
            return pair.0 & mask == pair.1 & mask
        }
    }

    /// The 4 or 16 bytes of an address; nil: this is not an address. An IPv4-mapped IPv6 address counts as IPv4.
    static func address(_ text: String) -> [UInt8]? {
        // Ignore a zone: it names an interface of this machine (RFC 4007 section 11).
        let text = String(text.prefix { $0 != "%" })
        var four = in_addr()
        if inet_pton(AF_INET, text, &four) == 1 { return withUnsafeBytes(of: four) { Array($0) } }
        var six = in6_addr()
        guard inet_pton(AF_INET6, text, &six) == 1 else { return nil }
        let bytes = withUnsafeBytes(of: six) { Array($0) }
        return bytes.starts(with: [UInt8](repeating: 0, count: 10) + [0xFF, 0xFF]) ? Array(bytes[12...]) : bytes
    }
}
