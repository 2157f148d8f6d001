import Foundation
import Glibc

/// A backend on this machine that records requests, and answers as the test says.
///
/// `@unchecked`: `condition` guards the variables.
final class RecordingBackend: @unchecked Sendable {
    /// A request as it arrived.
    struct Seen: Sendable {
        let head: String
        var body: [UInt8] = []
        /// Whether its last byte arrived.
        var isComplete = false
        /// Whether its connection ended before its last byte arrived, or while the backend gave no answer.
        var isAbandoned = false

        /// Every value of a header.
        func values(_ name: String) -> [String] {
            head.components(separatedBy: "\r\n").dropFirst().filter {
                $0.lowercased().hasPrefix(name.lowercased() + ":")
            }.map { $0.dropFirst(name.count + 1).trimmingCharacters(in: .whitespaces) }
        }

        var requestLine: String { head.components(separatedBy: "\r\n")[0] }
    }

    enum Reply: Sendable {
        case bytes(String)
        /// No answer: waits until the connection ends.
        case none
        /// The answer after this time.
        case late(String, Duration)
    }

    static let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Backend: yes\r\n\r\nok"

    let port: Int
    private let listener: Int32
    private let condition = NSCondition()
    private var requests: [Seen] = []
    private var current = Reply.bytes(ok)
    private var endsConnections = false

    /// Listens on a free loopback port.
    init() throws {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isListening = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, size) == 0 && listen(listener, 64) == 0 && getsockname(listener, $0, &size) == 0
            }
        }
        guard isListening else { throw CocoaError(.fileNoSuchFile) }
        self.listener = listener
        port = Int(in_port_t(bigEndian: address.sin_port))
        Thread.detachNewThread { [self] in accept() }
    }

    func close() { shutdown(listener, Int32(SHUT_RDWR)) }

    var url: String { "http://127.0.0.1:\(port)" }

    /// All received requests, including incomplete ones.
    var seen: [Seen] { condition.withLock { requests } }

    /// The answer to later requests.
    var reply: Reply {
        get { condition.withLock { current } }
        set { condition.withLock { current = newValue } }
    }

    /// Whether the connection ends after each answer.
    var endsAfterReply: Bool {
        get { condition.withLock { endsConnections } }
        set { condition.withLock { endsConnections = newValue } }
    }

    /// Polls until the condition holds for the received requests, for at most 20 seconds. Returns whether it holds.
    func eventually(_ holds: ([Seen]) -> Bool) async -> Bool {
        let deadline = ContinuousClock.now + .seconds(20)
        while ContinuousClock.now < deadline {
            if holds(seen) { return true }
            try? await Task.sleep(for: .milliseconds(5))
        }
        return false
    }

    private func accept() {
        while true {
            let client = Glibc.accept(listener, nil, nil)
            guard client >= 0 else { break }
            Thread.detachNewThread { [self] in
                serve(client)
                Glibc.close(client)
            }
        }
        Glibc.close(listener)
    }

    private func serve(_ client: Int32) {
        var buffer: [UInt8] = []
        while true {
            let end = Array("\r\n\r\n".utf8)
            while buffer.firstRange(of: end) == nil { guard read(client, &buffer) else { return } }
            guard let headEnd = buffer.firstRange(of: end) else { return }
            let head = Seen(head: String(decoding: buffer[..<headEnd.lowerBound], as: UTF8.self))
            buffer.removeFirst(headEnd.upperBound)
            let index = condition.withLock {
                requests.append(head)
                return requests.count - 1
            }
            guard receive(client, head, &buffer, index) else {
                return condition.withLock { requests[index].isAbandoned = true }
            }
            condition.withLock { requests[index].isComplete = true }
            switch reply {
            case .bytes(let text): guard send(client, text), !endsAfterReply else { return }
            case .late(let text, let time):
                Thread.sleep(
                    forTimeInterval: Double(time.components.seconds) + Double(time.components.attoseconds) / 1e18)
                guard send(client, text) else { return }
            case .none:
                var rest: [UInt8] = []
                while read(client, &rest) {}
                return condition.withLock { requests[index].isAbandoned = true }
            }
        }
    }

    /// Reads a body. Returns whether it was complete.
    private func receive(_ client: Int32, _ head: Seen, _ buffer: inout [UInt8], _ index: Int) -> Bool {
        if let length = head.values("Content-Length").first.flatMap({ Int($0) }) {
            return take(length, client, &buffer, index)
        }
        guard head.values("Transfer-Encoding") == ["chunked"] else { return true }
        let lineEnd = Array("\r\n".utf8)
        while true {
            while buffer.firstRange(of: lineEnd) == nil { guard read(client, &buffer) else { return false } }
            guard let end = buffer.firstRange(of: lineEnd),
                let size = Int(String(decoding: buffer[..<end.lowerBound], as: UTF8.self), radix: 16)
            else { return false }
            buffer.removeFirst(end.upperBound)
            guard take(size, client, &buffer, index) else { return false }
            while buffer.count < 2 { guard read(client, &buffer) else { return false } }
            buffer.removeFirst(2)
            if size == 0 { return true }
        }
    }

    private func take(_ length: Int, _ client: Int32, _ buffer: inout [UInt8], _ index: Int) -> Bool {
        var left = length
        while left > 0 {
            if buffer.isEmpty { guard read(client, &buffer) else { return false } }
            let piece = Array(buffer.prefix(left))
            buffer.removeFirst(piece.count)
            left -= piece.count
            condition.withLock { requests[index].body += piece }
        }
        return true
    }

    private func read(_ client: Int32, _ buffer: inout [UInt8]) -> Bool {
        var chunk = [UInt8](repeating: 0, count: 16_384)
        let count = recv(client, &chunk, chunk.count, 0)
        guard count > 0 else { return false }
        buffer += chunk.prefix(count)
        return true
    }

    private func send(_ client: Int32, _ text: String) -> Bool {
        let bytes = Array(text.utf8)
        var sent = 0
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes { raw in
                raw.baseAddress.map { Glibc.send(client, $0 + sent, raw.count - sent, Int32(MSG_NOSIGNAL)) } ?? -1
            }
            guard count > 0 else { return false }
            sent += count
        }
        return true
    }
}
