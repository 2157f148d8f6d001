import Foundation
import StrictJSON

/// An HTTP response.
struct WireResponse: Sendable {
    let status: Int
    let head: String
    let body: [UInt8]

    var json: JSONObject { (try? JSONValue(parsing: body))?.object ?? JSONObject() }
    var text: String { String(decoding: body, as: UTF8.self) }
    /// The stable code of an error.
    var code: String? { json["error"]?.string }

    func value(_ name: String) -> String? {
        head.components(separatedBy: "\r\n").dropFirst().first { $0.lowercased().hasPrefix(name.lowercased() + ":") }
            .map { $0.dropFirst(name.count + 1).trimmingCharacters(in: .whitespaces) }
    }
}

/// An HTTP request.
struct WireRequest: Sendable {
    var method: String
    var target: String
    var headers: [(String, String)] = []
    var body: [UInt8] = []

    var bytes: [UInt8] {
        var text = "\(method) \(target) HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        for (name, value) in headers { text += "\(name): \(value)\r\n" }
        if !body.isEmpty || method == "POST" {
            text += "Content-Type: application/json\r\nContent-Length: \(body.count)\r\n"
        }
        return Array((text + "\r\n").utf8) + body
    }
}

/// A TCP connection to loopback whose bytes the test writes. It waits on its own thread, not on Swift's threads, so that many
/// connections can wait for a service in the same process.
///
/// `@unchecked`: one task uses a connection at a time.
final class WireConnection: @unchecked Sendable {
    private let descriptor: Int32
    private var buffer: [UInt8] = []

    /// Connects; nil if no process listens.
    ///
    /// - Parameters:
    ///   - port: the port of the service.
    ///   - host: the last three bytes of the client's loopback address 127.x.y.z; nil: 127.0.0.1.
    ///   - seconds: the longest wait of each read and each write.
    init?(port: Int, from host: UInt32? = nil, seconds: Int = 20) {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        guard descriptor >= 0 else { return nil }
        if let host {
            let bound = Self.withLoopback(host, port: 0) { [descriptor] in bind(descriptor, $0, $1) }
            guard bound == 0 else { return nil }
        }
        var wait = timeval(tv_sec: seconds, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &wait, socklen_t(MemoryLayout<timeval>.size))
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &wait, socklen_t(MemoryLayout<timeval>.size))
        let connected = Self.withLoopback(1, port: port) { [descriptor] in connect(descriptor, $0, $1) }
        guard connected == 0 else { return nil }
    }

    /// Runs after a failed `init` too. So `init` does not close the descriptor: another thread may get its number before a second
    /// close.
    deinit { close(descriptor) }

    private static func withLoopback(
        _ host: UInt32, port: Int, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32
    ) -> Int32 {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(truncatingIfNeeded: port).bigEndian
        address.sin_addr.s_addr = in_addr_t(0x7F00_0000 | host & 0xFF_FFFF).bigEndian
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
    }

    /// Sends the bytes. Returns whether all were sent.
    @discardableResult
    func send(_ bytes: [UInt8]) async -> Bool { await waiting { self.sendNow(bytes) } }

    /// The next answer; nil if the connection ends first.
    func answer() async -> WireResponse? { await waiting { self.answerNow() } }

    /// The head of the next answer, which has no body; nil if the connection ends first.
    func head() async -> String? {
        await waiting {
            let end = Array("\r\n\r\n".utf8)
            while self.buffer.firstRange(of: end) == nil { guard self.readNow() else { return nil } }
            guard let headEnd = self.buffer.firstRange(of: end) else { return nil }
            defer { self.buffer.removeFirst(headEnd.upperBound) }
            return String(decoding: self.buffer[..<headEnd.lowerBound], as: UTF8.self)
        }
    }

    /// Sends several requests at once and returns their answers; fewer if the connection ends.
    func exchange(_ requests: [WireRequest]) async -> [WireResponse] {
        await waiting {
            guard self.sendNow(requests.flatMap(\.bytes)) else { return [] }
            var answers: [WireResponse] = []
            while answers.count < requests.count, let answer = self.answerNow() { answers.append(answer) }
            return answers
        }
    }

    /// Sends one request on a new connection; nil if the answer is missing or incomplete.
    static func exchange(port: Int, from host: UInt32? = nil, _ request: WireRequest) async -> WireResponse? {
        await WireConnection(port: port, from: host)?.exchange([request]).first
    }

    private func waiting<Value: Sendable>(_ body: @escaping @Sendable () -> Value) async -> Value {
        await withCheckedContinuation { continuation in
            Thread.detachNewThread { continuation.resume(returning: body()) }
        }
    }

    private func sendNow(_ bytes: [UInt8]) -> Bool {
        var sent = 0
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes { raw in
                raw.baseAddress.map {
                    Glibc.send(descriptor, $0 + sent, raw.count - sent, Int32(MSG_NOSIGNAL))
                }
                    ?? -1
            }
            guard count > 0 else { return false }
            sent += count
        }
        return true
    }

    private func answerNow() -> WireResponse? {
        let end = Array("\r\n\r\n".utf8)
        while buffer.firstRange(of: end) == nil { guard readNow() else { return nil } }
        guard let headEnd = buffer.firstRange(of: end) else { return nil }
        let head = String(decoding: buffer[..<headEnd.lowerBound], as: UTF8.self)
        buffer.removeFirst(headEnd.upperBound)
        let status = head.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
        let length = WireResponse(status: status, head: head, body: []).value("Content-Length").flatMap { Int($0) } ?? 0
        while buffer.count < length { guard readNow() else { return nil } }
        defer { buffer.removeFirst(length) }
        return WireResponse(status: status, head: head, body: Array(buffer.prefix(length)))
    }

    private func readNow() -> Bool {
        var chunk = [UInt8](repeating: 0, count: 16_384)
        let count = recv(descriptor, &chunk, chunk.count, 0)
        guard count > 0 else { return false }
        buffer += chunk.prefix(count)
        return true
    }
}
