internal import Bytes
internal import Foundation

/// The address that a delivery may connect to.
///
/// A name is resolved here, and the connection goes to the address that was checked: a name that resolves to another address a
/// moment later (DNS rebinding) gains nothing.
enum ReceiverAddress {
    /// Why there is no address.
    enum Failure: Error, Hashable {
        case unresolved
        case refused(String)
    }

    /// A resolver that hangs blocks its thread. The global queue's threads serve the stores, so these queues have their own.
    private static let queues = (0..<4).map { DispatchQueue(label: "synheart.webhooks.names.\($0)") }
    private static let deadline = DispatchTimeInterval.seconds(5)

    /// Resolves a host within five seconds.
    ///
    /// - Parameters:
    ///   - host: a name or an address without brackets.
    ///   - isLoopback: whether the URL itself names this machine.
    static func find(_ host: String, loopback isLoopback: Bool) async throws(Failure) -> String {
        let found = OnceValue<Result<String, Failure>>()
        queues[Int(host.utf8.reduce(UInt8(0)) { $0 &+ $1 }) % queues.count].async {
            guard !found.isGiven else { return }
            found.give(Result { () throws(Failure) in try resolve(host, loopback: isLoopback) })
        }
        DispatchQueue.global().asyncAfter(deadline: .now() + deadline) { [weak found] in
            found?.give(.failure(.unresolved))
        }
        return try await found.value.get()
    }

    /// The address of a host, if all its addresses are allowed.
    static func resolve(_ host: String, loopback isLoopback: Bool) throws(Failure) -> String {
        var hints = addrinfo()
        hints.ai_socktype = streamSocket
        var list: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(host, nil, &hints, &list) == 0, let first = list else { throw .unresolved }
        defer { freeaddrinfo(first) }
        var addresses: [(text: String, bytes: [UInt8])] = []
        var next: UnsafeMutablePointer<addrinfo>? = first
        while let entry = next {
            if let address = address(of: entry.pointee) { addresses.append(address) }
            next = entry.pointee.ai_next
        }
        // One forbidden address refuses all: a name with a good and a bad one is an attack.
        for address in addresses where !isAllowed(address.bytes, loopback: isLoopback) {
            throw .refused(address.text)
        }
        guard let chosen = addresses.first else { throw .unresolved }
        return chosen.text
    }

    #if canImport(Glibc)
        private static let streamSocket = Int32(SOCK_STREAM.rawValue)
    #else
        private static let streamSocket = SOCK_STREAM
    #endif

    private static func address(of info: addrinfo) -> (text: String, bytes: [UInt8])? {
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
        return (String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self), bytes)
    }

    /// Whether deliveries may go to an address of 4 or 16 bytes. Private networks are allowed: receivers are often there.
    static func isAllowed(_ bytes: [UInt8], loopback: Bool) -> Bool {
        if bytes.count == 4 { return isAllowed(ipv4: bytes, loopback: loopback) }
        guard bytes.count == 16 else { return false }
        // An IPv4 address in an IPv6 address: mapped, compatible, NAT64, 6to4.
        let zeros = [UInt8](repeating: 0, count: 10)
        if bytes.starts(with: zeros + [0xFF, 0xFF]) || bytes.starts(with: [0, 0x64, 0xFF, 0x9B]) {
            return isAllowed(ipv4: Array(bytes.suffix(4)), loopback: loopback)
        }
        if bytes.starts(with: [0x20, 0x02]) { return isAllowed(ipv4: Array(bytes[2..<6]), loopback: loopback) }
        if bytes.starts(with: zeros + [0, 0]) { return loopback && bytes.suffix(4) == [0, 0, 0, 1] }
        let isLinkLocal = bytes[0] == 0xFE && bytes[1] & 0xC0 == 0x80
        return !isLinkLocal && bytes[0] != 0xFF && bytes != metadataOverIPv6
    }

    private static func isAllowed(ipv4 bytes: [UInt8], loopback: Bool) -> Bool {
        switch (bytes[0], bytes[1]) {
        case (127, _): loopback
        // This network, link-local with most clouds' metadata, multicast and reserved.
        case (0, _), (169, 254), (224..., _): false
        default: !metadataOverIPv4.contains(bytes)
        }
    }

    /// Metadata services outside of the link-local network: Alibaba Cloud, Azure, Oracle Cloud.
    private static let metadataOverIPv4: Set<[UInt8]> = [[100, 100, 100, 200], [168, 63, 129, 16], [192, 0, 0, 192]]
    /// `fd00:ec2::254` of AWS.
    private static let metadataOverIPv6: [UInt8] = [
        0xFD, 0, 0x0E, 0xC2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x02, 0x54,
    ]
}
