import Foundation
import NIOCore
import NIOPosix
import NIOSSL
import StrictJSON
import Testing

/// A request as bytes.
struct RawRequest: Sendable {
    var method: String
    var target: String
    var host: String? = "localhost"
    var headers: [(String, String)] = []
    var body: [UInt8]?

    var bytes: [UInt8] {
        var text = "\(method) \(target) HTTP/1.1\r\n"
        if let host { text += "Host: \(host)\r\n" }
        for (name, value) in headers { text += "\(name): \(value)\r\n" }
        if let body { text += "Content-Length: \(body.count)\r\n" }
        return Array((text + "\r\n").utf8) + (body ?? [])
    }
}

/// A response, read by its Content-Length.
struct RawResponse: Sendable {
    let status: Int
    let headers: [(name: String, value: String)]
    let body: [UInt8]

    func values(_ name: String) -> [String] {
        headers.filter { $0.name.lowercased() == name.lowercased() }.map(\.value)
    }

    func value(_ name: String) -> String? { values(name).first }

    var json: JSONObject {
        (try? JSONValue(parsing: body, limits: .init(bytes: 1 << 24, depth: 32)))?.object ?? JSONObject()
    }

    var text: String { String(decoding: body, as: UTF8.self) }

    /// The stable code of an error.
    var code: String? { json["error"]?.string }
}

/// A TCP connection whose bytes a test writes itself.
final class RawConnection {
    private var iterator: NIOAsyncChannelInboundStream<ByteBuffer>.AsyncIterator
    private let outbound: NIOAsyncChannelOutboundWriter<ByteBuffer>
    private var buffer: [UInt8] = []

    private init(
        _ inbound: NIOAsyncChannelInboundStream<ByteBuffer>, _ outbound: NIOAsyncChannelOutboundWriter<ByteBuffer>
    ) {
        iterator = inbound.makeAsyncIterator()
        self.outbound = outbound
    }

    /// Connects, runs the body with a time limit, and closes the connection.
    static func with<Value: Sendable>(
        port: Int, tls: NIOSSLContext? = nil, seconds: Int = 20,
        _ body: @escaping @Sendable (RawConnection) async throws -> Value
    ) async throws -> Value {
        let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelOption(.allowRemoteHalfClosure, value: true)
            .connect(host: "127.0.0.1", port: port) { channel in
                channel.eventLoop.makeCompletedFuture {
                    if let tls {
                        try channel.pipeline.syncOperations.addHandler(
                            NIOSSLClientHandler(context: tls, serverHostname: "localhost"))
                    }
                    return try NIOAsyncChannel<ByteBuffer, ByteBuffer>(
                        wrappingChannelSynchronously: channel, configuration: .init(isOutboundHalfClosureEnabled: true))
                }
            }
        return try await withThrowingTaskGroup(of: Value.self) { tasks in
            tasks.addTask {
                try await channel.executeThenClose { inbound, outbound in
                    try await body(RawConnection(inbound, outbound))
                }
            }
            tasks.addTask {
                try await Task.sleep(for: .seconds(seconds))
                throw TimedOut()
            }
            defer { tasks.cancelAll() }
            guard let value = try await tasks.next() else { throw TimedOut() }
            return value
        }
    }

    struct TimedOut: Error {}

    /// Sends one request, and reads one response.
    static func exchange(port: Int, _ request: RawRequest, tls: NIOSSLContext? = nil) async throws -> RawResponse {
        try await exchange(port: port, request.bytes, tls: tls, omitsBody: request.method == "HEAD")
    }

    /// Sends bytes, and reads one response.
    static func exchange(
        port: Int, _ bytes: [UInt8], tls: NIOSSLContext? = nil, omitsBody: Bool = false
    ) async throws -> RawResponse {
        try await with(port: port, tls: tls) { connection in
            try await connection.send(bytes)
            return try #require(
                try await connection.response(omitsBody: omitsBody), "the connection was closed unanswered")
        }
    }

    func send(_ bytes: [UInt8]) async throws { try await outbound.write(ByteBuffer(bytes: bytes)) }

    func send(_ text: String) async throws { try await send(Array(text.utf8)) }

    /// The next response; nil if the connection ends first.
    func response(omitsBody: Bool = false) async throws -> RawResponse? {
        let end = Array("\r\n\r\n".utf8)
        while buffer.firstRange(of: end) == nil {
            guard try await read() else { return nil }
        }
        guard let headEnd = buffer.firstRange(of: end) else { return nil }
        let lines = String(decoding: buffer[..<headEnd.lowerBound], as: UTF8.self).components(separatedBy: "\r\n")
        buffer.removeFirst(headEnd.upperBound)
        let status = lines.first?.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
        let headers = lines.dropFirst().map { line in
            let parts = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            return (
                name: String(parts[0]),
                value: parts.count > 1 ? parts[1].trimmingCharacters(in: .whitespaces) : ""
            )
        }
        let length = headers.first { $0.name.lowercased() == "content-length" }.flatMap { Int($0.value) } ?? 0
        let expected = omitsBody ? 0 : length
        while buffer.count < expected {
            guard try await read() else { return nil }
        }
        let body = Array(buffer.prefix(expected))
        buffer.removeFirst(expected)
        return RawResponse(status: status, headers: headers, body: body)
    }

    /// Whether the peer closes the connection without sending another byte.
    func isEnded() async -> Bool {
        guard buffer.isEmpty else { return false }
        return await ((try? read()) ?? false) == false
    }

    private func read() async throws -> Bool {
        guard let next = try await iterator.next(isolation: #isolation) else { return false }
        buffer.append(contentsOf: next.readableBytesView)
        return true
    }
}
