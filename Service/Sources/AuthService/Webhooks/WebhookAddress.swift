#if canImport(Darwin)
    internal import Darwin
#elseif canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#endif

/// An address of a receiver, and the rule that decides to which addresses deliveries may go.
package struct WebhookAddress: Sendable, Hashable {
    /// The address as the system writes it.
    package let text: String
    /// The address in 4 or 16 bytes.
    let bytes: [UInt8]

    /// The addresses of a host.
    ///
    /// - Parameters:
    ///   - host: a name or an address without brackets.
    ///   - isLiteral: whether the host must be an address, in any notation that the system knows. In that case no resolver is
    ///     asked.
    /// - Returns: nil if there is none.
    package static func all(of host: String, literal isLiteral: Bool) -> [Self]? {
        var hints = addrinfo()
        hints.ai_socktype = streamSocket
        if isLiteral { hints.ai_flags = AI_NUMERICHOST }
        var list: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(host, nil, &hints, &list) == 0, let first = list else { return nil }
        defer { freeaddrinfo(first) }
        var addresses: [Self] = []
        var next: UnsafeMutablePointer<addrinfo>? = first
        while let entry = next {
            if let address = address(of: entry.pointee) { addresses.append(address) }
            next = entry.pointee.ai_next
        }
        return addresses.isEmpty ? nil : addresses
    }

    /// Whether deliveries may go to this address.
    ///
    /// - Parameter isNamed: whether the URL itself names this machine. Only then are loopback addresses allowed.
    package func isAllowed(loopback isNamed: Bool) -> Bool { Self.isAllowed(bytes, loopback: isNamed) }

    #if canImport(Glibc)
        private static let streamSocket = Int32(SOCK_STREAM.rawValue)
    #else
        private static let streamSocket = SOCK_STREAM
    #endif

    private static func address(of info: addrinfo) -> WebhookAddress? {
        guard let raw = info.ai_addr.map({ UnsafeRawPointer($0) }) else { return nil }
        let bytes: [UInt8]
        switch info.ai_family {
        case AF_INET:
            bytes = withUnsafeBytes(of: raw.loadUnaligned(as: sockaddr_in.self).sin_addr) { Array($0) }
        case AF_INET6:
            bytes = withUnsafeBytes(of: raw.loadUnaligned(as: sockaddr_in6.self).sin6_addr) { Array($0) }
        default: return nil
        }
        var buffer = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        guard inet_ntop(info.ai_family, bytes, &buffer, socklen_t(buffer.count)) != nil else { return nil }
        let text = String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        return WebhookAddress(text: text, bytes: bytes)
    }

    /// Whether deliveries may go to an address of 4 or 16 bytes. Private networks are allowed: receivers are often there.
    package static func isAllowed(_ bytes: [UInt8], loopback: Bool) -> Bool {
        if bytes.count == 4 { return isAllowed(ipv4: bytes, loopback: loopback) }
        guard bytes.count == 16 else { return false }
        // Judge mapped, NAT64 (RFC 6052) and 6to4 addresses by the IPv4 address in them. Refuse IPv4-compatible addresses.
        let zeros = [UInt8](repeating: 0, count: 10)
        if bytes.starts(with: zeros + [0xFF, 0xFF]) || bytes.starts(with: nat64 + zeros.dropLast(2)) {
            return isAllowed(ipv4: Array(bytes.suffix(4)), loopback: loopback)
        }
        // The translator decides where an address under a local-use NAT64 prefix (RFC 8215) holds the IPv4 address. So all of them
        // are refused.
        if bytes.starts(with: nat64) { return false }
        if bytes.starts(with: [0x20, 0x02]) { return isAllowed(ipv4: Array(bytes[2..<6]), loopback: loopback) }
        if bytes.starts(with: zeros + [0, 0]) { return loopback && bytes.suffix(4) == [0, 0, 0, 1] }
        // Addresses that a gateway translates to IPv4 (SIIT), or to which it sends in UDP over IPv4 (Teredo).
        let isTunneled = bytes.starts(with: translated) || bytes.starts(with: [0x20, 0x01, 0, 0])
        // fe80::/10 and the former site-local fec0::/10.
        let isLocal = bytes[0] == 0xFE && bytes[1] & 0x80 == 0x80
        return !isTunneled && !isLocal && bytes[0] != 0xFF && !metadataOverIPv6.contains(bytes)
    }

    private static func isAllowed(ipv4 bytes: [UInt8], loopback: Bool) -> Bool {
        switch (bytes[0], bytes[1]) {
        case (127, _): loopback
        // Refuse 0.0.0.0/8, link-local (most clouds have their metadata service there), multicast and reserved addresses.
        case (0, _), (169, 254), (224..., _): false
        default: !metadataOverIPv4.contains(bytes)
        }
    }

    /// Metadata services outside of the link-local network: Alibaba Cloud, Azure, Oracle Cloud.
    private static let metadataOverIPv4: Set<[UInt8]> = [[100, 100, 100, 200], [168, 63, 129, 16], [192, 0, 0, 192]]
    /// The beginning of 64:ff9b::/96 and of 64:ff9b:1::/48.
    private static let nat64: [UInt8] = [0, 0x64, 0xFF, 0x9B]
    /// The prefix of IPv4-translated addresses (SIIT), `::ffff:0:0:0/96`.
    private static let translated: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 0, 0]
    /// The metadata services of AWS (`fd00:ec2::254`), Google Cloud (`fd20:ce::254`), Oracle Cloud (`fd00:c1::a9fe:a9fe`) and
    /// Scaleway (`fd00:42::42`).
    private static let metadataOverIPv6: Set<[UInt8]> = [
        [0xFD, 0x00, 0x0E, 0xC2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x02, 0x54],
        [0xFD, 0x20, 0x00, 0xCE, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x02, 0x54],
        [0xFD, 0x00, 0x00, 0xC1, 0, 0, 0, 0, 0, 0, 0, 0, 0xA9, 0xFE, 0xA9, 0xFE],
        [0xFD, 0x00, 0x00, 0x42, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x42],
    ]
}
