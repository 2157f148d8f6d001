import Bytes
import Foundation

@testable import SynheartAuth

/// Accepts one connection, reads one request to its end, and writes one text, or nothing. A trickling server continues with one
/// byte every few milliseconds.
final class LocalServer: Sendable {
    var port: UInt16 { listener.port }
    private let listener: Listener
    private let request = Locked<(head: String, body: [UInt8])?>(nil)

    /// The received request; nil before it has arrived.
    var received: (head: String, body: [UInt8])? { request.withLock { $0 } }

    convenience init(_ answer: String?, trickles: Bool = false) throws {
        try self.init(bytes: answer.map { Array($0.utf8) }, trickles: trickles)
    }

    init(bytes answer: [UInt8]?, trickles: Bool = false) throws {
        listener = try Listener()
        listener.accept { [request] connection in
            let received = Self.read(connection)
            request.withLock { $0 = received }
            guard let bytes = answer else { return false }
            _ = bytes.withUnsafeBytes { Foundation.send(connection, $0.baseAddress, $0.count, 0) }
            while trickles, bytes.withUnsafeBytes({ Foundation.send(connection, $0.baseAddress, 1, Self.quietly) }) == 1
            {
                usleep(5000)
            }
            shutdown(connection, Int32(SHUT_WR))
            close(connection)
            return false
        }
    }

    func stop() { listener.stop() }

    /// The flag that makes `send` fail on a closed connection instead of raising SIGPIPE. Darwin has no such flag.
    #if canImport(Darwin)
        private static let quietly: Int32 = 0
    #else
        private static let quietly = Int32(MSG_NOSIGNAL)
    #endif

    /// Reads the head, and a body of Content-Length bytes.
    private static func read(_ connection: Int32) -> (head: String, body: [UInt8]) {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        var data = Data()
        var needed = Int.max
        while data.count < needed {
            let count = recv(connection, &buffer, buffer.count, 0)
            guard count > 0 else { break }
            data.append(contentsOf: buffer.prefix(count))
            if needed == .max, let end = data.firstRange(of: Data("\r\n\r\n".utf8))?.upperBound {
                needed = end + contentLength(String(decoding: data[..<end], as: UTF8.self))
            }
        }
        let end = data.firstRange(of: Data("\r\n\r\n".utf8))?.upperBound ?? data.endIndex
        return (String(decoding: data[..<end], as: UTF8.self), Array(data[end...]))
    }

    private static func contentLength(_ head: String) -> Int {
        let line = head.lowercased().split(separator: "\r\n").first { $0.hasPrefix("content-length:") }
        return line.flatMap { Int($0.dropFirst(15).drop { $0 == " " }) } ?? 0
    }
}
