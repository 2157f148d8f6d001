import AuthContract
import Foundation
import Testing

@testable import SynheartAuth

/// URLSession against a server on this machine that answers a fixed text, or nothing.
@Suite(.serialized) struct TransportTests {
    private func send(
        _ answer: String?, path: String = "/", limit: Int = 1000, deadline: Duration = .seconds(5)
    ) async throws -> Result<TransportAnswer, TransportError> {
        let server = try FixedServer(answer)
        defer { server.stop() }
        let request = TransportRequest(
            method: "POST", url: "http://127.0.0.1:\(server.port)\(path)", headers: HeaderFields([("X-Test", "1")]),
            body: [1, 2, 3], deadline: deadline, maximumAnswer: limit)
        do throws(TransportError) {
            return .success(try await URLSessionTransport().send(request))
        } catch {
            return .failure(error)
        }
    }

    @Test("status, headers and body come back")
    func answers() async throws {
        let answer = try await send("HTTP/1.1 409 Conflict\r\nX-A: b\r\nContent-Length: 2\r\n\r\nhi").get()
        #expect(answer.status == 409 && answer.body == Array("hi".utf8) && answer.headers.values("x-a") == ["b"])
    }

    @Test("a redirect is the answer, never followed")
    func redirect() async throws {
        let answer = try await send(
            "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"
        ).get()
        #expect(answer.status == 302)
    }

    @Test("an answer beyond the limit is cut off")
    func limit() async throws {
        let body = String(repeating: "x", count: 5000)
        let result = try await send("HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n\(body)")
        #expect(throws: TransportError("the answer is too large")) { try result.get() }
    }

    @Test("a server that never answers is not waited for")
    func deadline() async throws {
        let result = try await send(nil, deadline: .milliseconds(200))
        #expect(throws: TransportError.self) { try result.get() }
    }

    @Test("nobody there")
    func refused() async throws {
        let request = TransportRequest(method: "GET", url: "http://127.0.0.1:1/", headers: HeaderFields(), body: [])
        await #expect(throws: TransportError.self) { try await URLSessionTransport().send(request) }
    }
}

/// Accepts one connection and writes one text.
private final class FixedServer: Sendable {
    let port: UInt16
    private let listener: Int32

    init(_ answer: String?) throws {
        #if canImport(Darwin)
            let kind = SOCK_STREAM
        #else
            let kind = Int32(SOCK_STREAM.rawValue)
        #endif
        let listener = socket(AF_INET, kind, 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let bound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                bind(listener, pointer, length) == 0 && listen(listener, 8) == 0
                    && getsockname(listener, pointer, &length) == 0
            }
        }
        guard bound else { throw StorageError("no socket") }
        self.listener = listener
        port = UInt16(bigEndian: address.sin_port)
        Thread.detachNewThread {
            let connection = accept(listener, nil, nil)
            guard connection >= 0 else { return }
            var buffer = [UInt8](repeating: 0, count: 4096)
            _ = recv(connection, &buffer, buffer.count, 0)
            guard let answer else { return }
            let bytes = Array(answer.utf8)
            _ = bytes.withUnsafeBytes { Foundation.send(connection, $0.baseAddress, $0.count, 0) }
            shutdown(connection, Int32(SHUT_WR))
            close(connection)
        }
    }

    func stop() { close(listener) }
}
