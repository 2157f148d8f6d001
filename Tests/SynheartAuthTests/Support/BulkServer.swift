import Bytes
import Crypto
import Foundation

@testable import SynheartAuth

/// A server for large bodies. It stores no body: it counts and hashes the bytes that it reads, and generates the
/// bytes that it writes.
final class BulkServer: Sendable {
    /// What arrived of a request.
    struct Received: Sendable, Hashable {
        let head: String
        let count: Int
        let digest: [UInt8]
        /// Whether the body was complete.
        let isWhole: Bool
    }

    /// The server's answer, and how the server reads.
    struct Answer: Sendable {
        var status = 200
        var length = 0
        /// The number of bytes after which the connection ends; nil if the answer is complete.
        var diesAfter: Int?
        /// The number of bytes after which the server waits until the client ends the connection; nil if it does not wait.
        var stallsAfter: Int?
        /// Whether the server pauses 50 ms before each piece of a body, until `hurry()`.
        var readsSlowly = false
    }

    private struct State: Sendable {
        var received: [Received] = []
        var arrived = 0
        var written = 0
        var endedByClient = 0
        var isInAHurry = false
    }

    var port: UInt16 { listener.port }
    private let listener: Listener
    private let state = Locked(State())

    /// The requests until now, including incomplete ones.
    var received: [Received] { state.withLock { $0.received } }
    /// The number of bytes that arrived in bodies.
    var arrived: Int { state.withLock { $0.arrived } }
    /// The number of bytes that the server wrote in answers' bodies.
    var written: Int { state.withLock { $0.written } }
    /// The number of answers that the client ended early.
    var endedByClient: Int { state.withLock { $0.endedByClient } }

    private static let block = (0..<65_536).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }

    /// The byte of an answer at an index. Each block of 64 KiB begins with its number.
    static func byte(_ index: Int) -> UInt8 {
        let (number, place) = index.quotientAndRemainder(dividingBy: block.count)
        return place < 4 ? UInt8(truncatingIfNeeded: number >> (8 * place)) : block[place]
    }

    /// The bytes of an answer at these indices, which must be within one block.
    private static func bytes(_ range: Range<Int>) -> [UInt8] {
        let place = range.lowerBound % block.count
        var bytes = Array(block[place..<place + range.count])
        if place == 0 { for index in 0..<min(4, bytes.count) { bytes[index] = byte(range.lowerBound + index) } }
        return bytes
    }

    init(_ answer: Answer = Answer()) throws {
        listener = try Listener()
        listener.accept { [state] connection in
            Thread.detachNewThread {
                Connection(descriptor: connection, state: state).serve(answer)
                close(connection)
            }
            return true
        }
    }

    /// Stops the slow reading. Otherwise, reading the bytes in the socket buffers would take many seconds.
    func hurry() { state.withLock { $0.isInAHurry = true } }

    func stop() { listener.stop() }

    private final class Connection {
        private let descriptor: Int32
        private let state: Locked<State>
        private var buffer: [UInt8] = []
        private var position = 0

        init(descriptor: Int32, state: Locked<State>) { (self.descriptor, self.state) = (descriptor, state) }

        func serve(_ answer: Answer) {
            var head = ""
            while let line = line(), !line.isEmpty { head += line + "\r\n" }
            guard !head.isEmpty else { return }
            let lower = head.lowercased()
            if lower.contains("expect: 100-continue") { _ = write(Array("HTTP/1.1 100 Continue\r\n\r\n".utf8)) }
            var (hash, count, isWhole) = (SHA256(), 0, true)
            func take(_ length: Int) -> Bool {
                var rest = length
                while rest > 0 {
                    if answer.readsSlowly, !state.withLock({ $0.isInAHurry }) { Thread.sleep(forTimeInterval: 0.05) }
                    guard let piece = some(rest) else { return false }
                    hash.update(data: piece)
                    count += piece.count
                    rest -= piece.count
                    state.withLock { $0.arrived += piece.count }
                }
                return true
            }
            if lower.contains("transfer-encoding: chunked") {
                while true {
                    guard let size = line().flatMap({ Int($0, radix: 16) }), take(size), line() == "" else {
                        isWhole = false
                        break
                    }
                    if size == 0 { break }
                }
            } else if let field = lower.split(separator: "\r\n").first(where: { $0.hasPrefix("content-length:") }) {
                isWhole = take(Int(field.dropFirst(15).drop { $0 == " " }) ?? 0)
            }
            let received = Received(head: head, count: count, digest: Array(hash.finalize()), isWhole: isWhole)
            state.withLock { $0.received.append(received) }
            if isWhole { write(answer) }
        }

        private func write(_ answer: Answer) {
            guard
                write(
                    Array(
                        "HTTP/1.1 \(answer.status) Answer\r\nContent-Length: \(answer.length)\r\nConnection: close\r\n\r\n"
                            .utf8))
            else { return }
            let end = min(answer.diesAfter ?? answer.length, answer.stallsAfter ?? answer.length)
            var index = 0
            while index < end {
                let count = min(65_536, end - index)
                guard write(BulkServer.bytes(index..<index + count)) else {
                    return state.withLock { $0.endedByClient += 1 }
                }
                index += count
                state.withLock { $0.written += count }
            }
            guard answer.stallsAfter != nil else { return }
            var byte: UInt8 = 0
            _ = recv(descriptor, &byte, 1, 0)
            state.withLock { $0.endedByClient += 1 }
        }

        private func line() -> String? {
            var bytes: [UInt8] = []
            while true {
                guard let byte = some(1)?.first else { return nil }
                if byte == 10 {
                    return String(decoding: bytes.last == 13 ? bytes.dropLast() : bytes[...], as: UTF8.self)
                }
                bytes.append(byte)
            }
        }

        private func some(_ limit: Int) -> Data? {
            if position == buffer.count {
                var piece = [UInt8](repeating: 0, count: 262_144)
                let count = recv(descriptor, &piece, piece.count, 0)
                guard count > 0 else { return nil }
                (buffer, position) = (Array(piece.prefix(count)), 0)
            }
            let end = min(position + limit, buffer.count)
            defer { position = end }
            return Data(buffer[position..<end])
        }

        private func write(_ bytes: [UInt8]) -> Bool {
            var done = 0
            while done < bytes.count {
                let count = bytes.withUnsafeBytes {
                    Foundation.send(
                        descriptor, $0.baseAddress?.advanced(by: done), bytes.count - done, Socket.quietly)
                }
                guard count > 0 else { return false }
                done += count
            }
            return true
        }
    }
}
