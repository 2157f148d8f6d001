import Foundation
import Synchronization

/// Ports of 127.0.0.1 for the servers that tests start.
package enum LoopbackPort {
    private static let kept = Mutex<[Int32]>([])

    /// Reserves a free port until this process ends.
    ///
    /// Without a reservation, a port that was free a moment ago may be the source port of a connection when the server
    /// binds it. So a socket that does not listen stays bound to the port. The system then assigns the port to no other
    /// socket. A server can still bind it, because servers set `SO_REUSEADDR`.
    /// - Parameter hasClusterBus: whether to reserve the port plus 10,000 as well. A node of a Redis Cluster listens on
    ///   both ports.
    /// - Throws: `PostgreSQLServer.Unusable` if no port is free.
    package static func reserve(hasClusterBus: Bool = false) throws -> Int {
        for _ in 0..<100 {
            guard let (descriptor, port) = bound(to: 0) else { break }
            if hasClusterBus {
                guard port + 10_000 <= UInt16.max, let (bus, _) = bound(to: port + 10_000) else {
                    close(descriptor)
                    continue
                }
                kept.withLock { $0.append(bus) }
            }
            kept.withLock { $0.append(descriptor) }
            return port
        }
        throw PostgreSQLServer.Unusable(description: "there is no free port")
    }

    /// A socket that is bound to this port; for port 0, to a free one. Nil if another socket has the port.
    private static func bound(to port: Int) -> (descriptor: Int32, port: Int)? {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(port).bigEndian
        address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, length) == 0 && getsockname(descriptor, $0, &length) == 0
            }
        }
        // Set after `bind`: with `SO_REUSEADDR`, `bind` would succeed on a port that another process has reserved.
        var reuse: Int32 = 1
        guard isBound,
            setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &reuse, socklen_t(MemoryLayout<Int32>.size)) == 0
        else {
            close(descriptor)
            return nil
        }
        return (descriptor, Int(in_port_t(bigEndian: address.sin_port)))
    }
}
