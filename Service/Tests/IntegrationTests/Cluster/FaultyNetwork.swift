import Foundation
import ServiceTestHelpers

/// The network between nodes and one store: a proxy that withholds bytes, delays them, or closes connections.
///
/// Withheld bytes arrive late and in order, as TCP delivers retransmitted data.
///
/// `@unchecked`: `condition` guards the variables.
final class FaultyNetwork: @unchecked Sendable {
    enum NetworkCondition: Sendable {
        case calm
        /// Each piece of the forwarded bytes is delayed by this time, in each direction.
        case slow(Duration)
        /// About one in twenty pieces of the forwarded bytes is delayed by 200 ms, as by a retransmission. At one in two
        /// hundred, the connection ends.
        case lossy(seed: UInt64)
        /// No bytes arrive, in either direction. New connections are accepted and stay silent.
        case partitioned
    }

    let port: Int
    private let target: Int
    private let listener: Int32
    private let condition = NSCondition()
    private var weather = NetworkCondition.calm
    private var random = SeededNumbers(seed: 0)
    private var isOver = false

    /// Connects each client to `target`.
    ///
    /// - Parameter port: the loopback port to listen on; nil: a free one.
    init(to target: Int, port: Int? = nil) throws {
        self.target = target
        let free = try port ?? LoopbackPort.reserve()
        self.port = free
        listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var reuse: Int32 = 1
        setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &reuse, socklen_t(MemoryLayout<Int32>.size))
        let listener = listener
        guard Self.withLoopback(free, { bind(listener, $0, $1) }) == 0, listen(listener, 64) == 0 else {
            throw CocoaError(.fileNoSuchFile)
        }
        Thread.detachNewThread { [self] in accept() }
    }

    /// Stops accepting connections. Ends each connection when its next bytes arrive.
    func close() {
        condition.withLock {
            isOver = true
            condition.broadcast()
        }
        shutdown(listener, Int32(SHUT_RDWR))
    }

    func turn(_ weather: NetworkCondition) {
        condition.withLock {
            self.weather = weather
            if case .lossy(let seed) = weather { random = SeededNumbers(seed: seed) }
            condition.broadcast()
        }
    }

    private static func withLoopback(_ port: Int, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32) -> Int32 {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(truncatingIfNeeded: port).bigEndian
        address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
    }

    private func accept() {
        while true {
            let client = Glibc.accept(listener, nil, nil)
            guard client >= 0 else { break }
            let server = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            guard Self.withLoopback(target, { connect(server, $0, $1) }) == 0 else {
                Glibc.close(client)
                Glibc.close(server)
                continue
            }
            var noDelay: Int32 = 1
            for descriptor in [client, server] {
                setsockopt(
                    descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &noDelay, socklen_t(MemoryLayout<Int32>.size))
            }
            let pair = Pair(client, server)
            Thread.detachNewThread { [self] in carry(from: client, to: server, pair) }
            Thread.detachNewThread { [self] in carry(from: server, to: client, pair) }
        }
        Glibc.close(listener)
    }

    /// Both ends of one connection: closed when the threads of both directions have ended.
    private final class Pair: Sendable {
        private let descriptors: [Int32]

        init(_ descriptors: Int32...) { self.descriptors = descriptors }

        func end() { for descriptor in descriptors { shutdown(descriptor, Int32(SHUT_RDWR)) } }

        deinit { for descriptor in descriptors { Glibc.close(descriptor) } }
    }

    private func carry(from source: Int32, to target: Int32, _ pair: Pair) {
        defer { pair.end() }
        var piece = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = recv(source, &piece, piece.count, 0)
            guard count > 0, passes() else { return }
            var sent = 0
            while sent < count {
                let written = piece.withUnsafeBytes { raw in
                    raw.baseAddress.map { send(target, $0 + sent, count - sent, Int32(MSG_NOSIGNAL)) } ?? -1
                }
                guard written > 0 else { return }
                sent += written
            }
        }
    }

    /// Delays a received piece as the current condition of the network requires. Returns false if the connection must end instead.
    private func passes() -> Bool {
        condition.lock()
        defer { condition.unlock() }
        switch weather {
        case .calm, .partitioned: break
        case .slow(let delay): hold(delay)
        case .lossy:
            let fate = Int.random(in: 0..<200, using: &random)
            if fate == 0 { return false }
            if fate < 10 { hold(.milliseconds(200)) }
        }
        while case .partitioned = weather, !isOver { condition.wait() }
        return !isOver
    }

    private func hold(_ delay: Duration) {
        condition.unlock()
        usleep(UInt32(delay / .microseconds(1)))
        condition.lock()
    }
}
