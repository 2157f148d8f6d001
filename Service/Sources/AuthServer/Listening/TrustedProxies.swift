internal import AuthService
internal import Bytes
internal import Foundation
internal import NIOCore

/// The proxies whose `X-Forwarded-…` headers are used: networks in CIDR notation.
package struct TrustedProxies: Sendable, Hashable {
    private let networks: [IPNetwork]

    /// No proxy at all.
    package static let none = TrustedProxies(networks: [])

    private init(networks: [IPNetwork]) { self.networks = networks }

    /// Proxies in these networks (`10.0.0.0/8`, `fd00::/8`) or at these addresses.
    ///
    /// - Throws: `ConfigurationError` for any other text.
    package init(_ texts: [String]) throws(ConfigurationError) {
        var networks: [IPNetwork] = []
        for (number, text) in texts.enumerated() {
            guard let network = IPNetwork(text) else {
                throw ConfigurationError(
                    "server.trusted_proxies", "element \(number + 1) is no address and no network such as 10.0.0.0/8")
            }
            networks.append(network)
        }
        self.networks = networks
    }

    /// Whether no proxy is trusted.
    package var isEmpty: Bool { networks.isEmpty }

    /// Whether the address is a proxy's.
    func contain(_ address: IPAddress) -> Bool { networks.contains { $0.contains(address) } }

    /// The address of the client, or of the trusted proxy that named no client. If the peer is a trusted proxy, this is the
    /// nearest address of `X-Forwarded-For` that is not a trusted proxy.
    ///
    /// The elements are read from the right, because only the elements that trusted proxies appended can be believed. An
    /// element that is not an address ends the search at the proxy that appended it.
    func client(of peer: IPAddress, forwardedFor values: [String]) -> IPAddress {
        var client = peer
        let hops = values.flatMap { $0.split(separator: ",", omittingEmptySubsequences: false) }
        for hop in hops.reversed() where contain(client) {
            guard let address = IPAddress(forwarded: hop) else { break }
            client = address
        }
        return client
    }
}

/// An IPv4 or IPv6 address. An IPv4-mapped IPv6 address is treated as IPv4.
struct IPAddress: Sendable, Hashable, CustomStringConvertible {
    /// 4 or 16 bytes.
    let bytes: [UInt8]

    init?(_ text: some StringProtocol) {
        let text = String(text.prefix { $0 != "%" })
        var four = in_addr()
        var six = in6_addr()
        if inet_pton(AF_INET, text, &four) == 1 {
            self.init(four)
        } else if inet_pton(AF_INET6, text, &six) == 1 {
            self.init(six)
        } else {
            return nil
        }
    }

    /// The address of a socket; nil if it has none.
    init?(_ socket: SocketAddress?) {
        switch socket {
        case .v4(let address): self.init(address.address.sin_addr)
        case .v6(let address): self.init(address.address.sin6_addr)
        case .unixDomainSocket, nil: return nil
        }
    }

    private init(_ address: in_addr) { bytes = withUnsafeBytes(of: address) { Array($0) } }

    private init(_ address: in6_addr) {
        let all = withUnsafeBytes(of: address) { Array($0) }
        bytes = ClientAddress.mappedIPv4(in: all) ?? all
    }

    /// Reads an element of `X-Forwarded-For`: an address, which some proxies write with its port.
    init?(forwarded text: some StringProtocol) {
        let text = text.trimmingCharacters(in: CharacterSet(charactersIn: " \t"))
        if let address = IPAddress(text) {
            self = address
        } else if text.hasPrefix("["), let end = text.firstIndex(of: "]") {
            guard let address = IPAddress(text[text.index(after: text.startIndex)..<end]) else { return nil }
            self = address
        } else if let colon = text.firstIndex(of: ":"), let address = IPAddress(text[..<colon]) {
            self = address
        } else {
            return nil
        }
    }

    var isLoopback: Bool { Loopback.contains(address: bytes) }

    var description: String {
        let family = bytes.count == 4 ? AF_INET : AF_INET6
        return String(unsafeUninitializedCapacity: Int(INET6_ADDRSTRLEN)) { text in
            text.withMemoryRebound(to: CChar.self) { text in
                guard let start = text.baseAddress, inet_ntop(family, bytes, start, socklen_t(text.count)) != nil
                else { return 0 }
                return strnlen(start, text.count)
            }
        }
    }
}

/// A network: an address and the length of its prefix in bits.
private struct IPNetwork: Sendable, Hashable {
    private let address: IPAddress
    private let length: Int

    init?(_ text: String) {
        let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard let first = parts.first, let address = IPAddress(first) else { return nil }
        let width = address.bytes.count * 8
        var length = width
        if parts.count > 1 {
            guard let written = UInt8(parts[1]).map(Int.init), written <= width else { return nil }
            length = written
        }
        self.address = address
        self.length = length
    }

    func contains(_ other: IPAddress) -> Bool {
        guard other.bytes.count == address.bytes.count else { return false }
        for (index, (mine, theirs)) in zip(address.bytes, other.bytes).enumerated() {
            let counted = min(max(length - index * 8, 0), 8)
            let mask = UInt8(truncatingIfNeeded: 0xFF00 >> counted)
            guard mine & mask == theirs & mask else { return false }
        }
        return true
    }
}
