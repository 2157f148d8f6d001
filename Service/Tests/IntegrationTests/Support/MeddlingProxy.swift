import Bytes
import Foundation
import ServiceTestHelpers

/// A request, as a proxy received or forwards it.
struct ProxiedRequest: Sendable {
    var method: String
    var target: String
    var headers: [(name: String, value: String)]
    var body: [UInt8]

    func value(_ name: String) -> String? {
        headers.first { $0.name.lowercased() == name.lowercased() }?.value
    }
}

/// An answer, as a proxy received or returns it.
struct ProxiedAnswer: Sendable {
    var status: Int
    var headers: [(name: String, value: String)] = []
    var body: [UInt8] = []

    func value(_ name: String) -> String? {
        headers.first { $0.name.lowercased() == name.lowercased() }?.value
    }
}

/// A proxy on loopback whose behaviour a test chooses. It reads a complete request, and sends the answer of `handle`. It serves
/// one request on each connection.
final class MeddlingProxy: Sendable {
    let port: Int
    private let listener: Int32
    private let isClosed = Locked(false)

    var url: String { "http://127.0.0.1:\(port)" }

    /// Listens on a free port.
    init(_ handle: @escaping @Sendable (ProxiedRequest) async -> ProxiedAnswer) throws {
        port = try LoopbackPort.reserve()
        listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var reuse: Int32 = 1
        setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &reuse, socklen_t(MemoryLayout<Int32>.size))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(truncatingIfNeeded: port).bigEndian
        address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
        let bound = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { [listener] in
                bind(listener, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard bound == 0, listen(listener, 64) == 0 else { throw CocoaError(.fileNoSuchFile) }
        Thread.detachNewThread { [listener] in
            while true {
                let client = accept(listener, nil, nil)
                guard client >= 0 else { break }
                Thread.detachNewThread { Self.serve(client, handle) }
            }
            Glibc.close(listener)
        }
    }

    /// Stops accepting connections. Later calls do nothing: after the first one, the listening thread closes the descriptor, and
    /// another file may get its number.
    func close() {
        let wasClosed = isClosed.withLock { isClosed in
            defer { isClosed = true }
            return isClosed
        }
        if !wasClosed { shutdown(listener, Int32(SHUT_RDWR)) }
    }

    deinit { close() }

    /// Forwards a request to the service at a port. Returns 502 if no answer arrives.
    static func pass(_ request: ProxiedRequest, to port: Int) async -> ProxiedAnswer {
        var text = "\(request.method) \(request.target) HTTP/1.1\r\n"
        for (name, value) in request.headers where !hopByHop.contains(name.lowercased()) {
            text += "\(name): \(value)\r\n"
        }
        if !request.body.isEmpty || request.method == "POST" { text += "Content-Length: \(request.body.count)\r\n" }
        guard let connection = WireConnection(port: port),
            await connection.send(Array((text + "\r\n").utf8) + request.body), let answer = await connection.answer()
        else { return ProxiedAnswer(status: 502) }
        return ProxiedAnswer(status: answer.status, headers: fields(answer.head), body: answer.body)
    }

    private static let hopByHop: Set = ["connection", "content-length", "transfer-encoding"]

    /// The header fields below the first line of a head.
    private static func fields(_ head: String) -> [(name: String, value: String)] {
        head.components(separatedBy: "\r\n").dropFirst().compactMap { line in
            guard let colon = line.firstIndex(of: ":") else { return nil }
            let value = line[line.index(after: colon)...].trimmingCharacters(in: .whitespaces)
            return (String(line[..<colon]), value)
        }
    }

    private static func serve(
        _ client: Int32, _ handle: @escaping @Sendable (ProxiedRequest) async -> ProxiedAnswer
    ) {
        var wait = timeval(tv_sec: 20, tv_usec: 0)
        setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &wait, socklen_t(MemoryLayout<timeval>.size))
        guard let request = read(client) else {
            Glibc.close(client)
            return
        }
        Task {
            let answer = await handle(request)
            var text = "HTTP/1.1 \(answer.status) Answer\r\nConnection: close\r\n"
            for (name, value) in answer.headers where !hopByHop.contains(name.lowercased()) {
                text += "\(name): \(value)\r\n"
            }
            if answer.status != 204 { text += "Content-Length: \(answer.body.count)\r\n" }
            let bytes = Array((text + "\r\n").utf8) + answer.body
            var sent = 0
            while sent < bytes.count {
                let count = bytes[sent...].withUnsafeBytes {
                    Glibc.send(client, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
                }
                guard count > 0 else { break }
                sent += count
            }
            Glibc.close(client)
        }
    }

    /// Reads a request, with a body of a stated length or in chunks; nil if it is malformed or incomplete.
    private static func read(_ client: Int32) -> ProxiedRequest? {
        var buffer: [UInt8] = []
        let end = Array("\r\n\r\n".utf8)
        while buffer.firstRange(of: end) == nil { guard more(client, &buffer) else { return nil } }
        guard let range = buffer.firstRange(of: end) else { return nil }
        let head = String(decoding: buffer[..<range.lowerBound], as: UTF8.self)
        buffer.removeFirst(range.upperBound)
        let words = head.prefix { $0 != "\r\n" }.split(separator: " ").map(String.init)
        guard words.count == 3 else { return nil }
        var request = ProxiedRequest(method: words[0], target: words[1], headers: fields(head), body: [])
        if request.value("Transfer-Encoding") != nil {
            while let chunk = chunk(client, &buffer) {
                guard !chunk.isEmpty else { return request }
                request.body += chunk
            }
            return nil
        }
        let length = request.value("Content-Length").flatMap { Int($0) } ?? 0
        while buffer.count < length { guard more(client, &buffer) else { return nil } }
        request.body = Array(buffer.prefix(length))
        return request
    }

    /// Reads the next chunk of a body. Returns an empty chunk at the end of the body, and nil if the chunk is malformed or incomplete.
    private static func chunk(_ client: Int32, _ buffer: inout [UInt8]) -> [UInt8]? {
        let lineEnd = Array("\r\n".utf8)
        while buffer.firstRange(of: lineEnd) == nil { guard more(client, &buffer) else { return nil } }
        guard let range = buffer.firstRange(of: lineEnd),
            let length = Int(String(decoding: buffer[..<range.lowerBound], as: UTF8.self), radix: 16)
        else { return nil }
        buffer.removeFirst(range.upperBound)
        while buffer.count < length + 2 { guard more(client, &buffer) else { return nil } }
        defer { buffer.removeFirst(length + 2) }
        return Array(buffer.prefix(length))
    }

    private static func more(_ client: Int32, _ buffer: inout [UInt8]) -> Bool {
        var piece = [UInt8](repeating: 0, count: 65_536)
        let count = recv(client, &piece, piece.count, 0)
        guard count > 0 else { return false }
        buffer += piece.prefix(count)
        return true
    }
}
