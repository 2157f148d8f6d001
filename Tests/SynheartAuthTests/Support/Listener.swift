import Foundation

@testable import SynheartAuth

/// A listener on a free port of the loopback interface.
struct Listener: Sendable {
    let port: UInt16
    private let descriptor: Int32

    init() throws {
        let descriptor = socket(AF_INET, Socket.stream, 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                bind(descriptor, pointer, length) == 0 && listen(descriptor, 256) == 0
                    && getsockname(descriptor, pointer, &length) == 0
            }
        }
        guard isBound else { throw StorageError("no socket") }
        self.descriptor = descriptor
        port = UInt16(bigEndian: address.sin_port)
    }

    /// Gives each connection to `serve` until `stop()`, or until `serve` returns false. One thread accepts and serves them.
    func accept(_ serve: @escaping @Sendable (Int32) -> Bool) {
        Thread.detachNewThread { [descriptor] in
            while true {
                let connection = Foundation.accept(descriptor, nil, nil)
                guard connection >= 0 else { break }
                guard serve(connection) else { return }
            }
            #if !canImport(Darwin)
                close(descriptor)
            #endif
        }
    }

    /// Accepts no more connections.
    ///
    /// Except on Darwin, the accepting thread closes the listener. If it were closed here, another listener could get its descriptor
    /// number before that thread accepts again, and this server would answer the requests of the other listener.
    func stop() {
        shutdown(descriptor, Int32(SHUT_RDWR))
        #if canImport(Darwin)
            // On Darwin, `accept` returns only if the descriptor is closed.
            close(descriptor)
        #endif
    }
}
