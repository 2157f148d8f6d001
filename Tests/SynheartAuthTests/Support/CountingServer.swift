import AuthContract
import Bytes
import Foundation

@testable import SynheartAuth

/// A server that executes every request that it accepts, and counts executions. It accepts a nonce once, as the contract demands.
/// The header `X-Id` names the counted effect. `X-Plan` lists plans: the first one is for the first nonce with this id, the second
/// one for the second nonce.
final class CountingServer: Sendable {
    /// What happens to a request.
    enum Plan: String, Sendable, CaseIterable {
        /// The request is executed and answered.
        case answer
        /// The request is executed and answered. Then the connection is closed without notice.
        case closeAfter
        /// The connection dies before the request is executed.
        case dieBefore
        /// The request is executed, and the connection dies before the answer.
        case dieAfter
        /// The request is executed, and the connection is reset.
        case reset
        /// The request is executed, and the connection dies within the answer's head, or within its body.
        case dieInHead, dieInBody
        /// A proxy sends the request twice, and gives the second answer.
        case twice
        /// The request is not executed. It is redirected, or the server asks for a password.
        case redirect302, redirect307, redirect308, challenge
        /// The request is not executed, and refused in the contract's form.
        case refused, misdirected, clockSkew, unavailable, rateLimited
        /// The request is executed and never answered.
        case silent

        var executes: Bool {
            switch self {
            case .answer, .closeAfter, .dieAfter, .reset, .dieInHead, .dieInBody, .twice, .silent: true
            default: false
            }
        }
    }

    private struct State: Sendable {
        var claims: Set<String> = []
        var executions: [String: Int] = [:]
        var copies: [String: Int] = [:]
        var attempts: [String: Int] = [:]
    }

    var port: UInt16 { listener.port }
    private let listener: Listener
    private let state = Locked(State())

    /// The number of executions of the request with this id.
    func executions(of id: String) -> Int { state.withLock { $0.executions[id] ?? 0 } }

    /// The nonces that arrived more than once.
    var repeatedNonces: [String] { state.withLock { $0.copies.filter { $0.value > 1 }.map(\.key) } }

    /// How many signed requests arrived.
    var arrivals: Int { state.withLock { $0.copies.values.reduce(0, +) } }

    init() throws {
        listener = try Listener()
        listener.accept { [weak self] connection in
            if let self { Thread.detachNewThread { self.serve(Socket(connection)) } } else { close(connection) }
            return true
        }
    }

    func stop() { listener.stop() }

    /// Serves the requests of one connection, until one of them ends it.
    private func serve(_ socket: Socket) {
        defer { socket.close() }
        while let request = socket.read() {
            guard answer(request, socket) else { return }
        }
    }

    /// Handles the request as its plan says. Returns false if the connection ends.
    private func answer(_ request: Socket.Request, _ socket: Socket) -> Bool {
        let id = request.header("x-id")
        let nonce = request.header("x-synheart-nonce")
        let plans = request.header("x-plan").split(separator: ",").compactMap { Plan(rawValue: String($0)) }
        let attempt = state.withLock { state in
            state.copies[nonce, default: 0] += 1
            if state.copies[nonce] == 1 { state.attempts[id, default: 0] += 1 }
            return state.attempts[id, default: 1] - 1
        }
        let plan = plans.indices.contains(attempt) ? plans[attempt] : .answer
        switch plan {
        case .dieBefore: return false
        case .redirect302, .redirect307, .redirect308:
            return socket.write(
                "HTTP/1.1 \(plan.rawValue.suffix(3)) Moved\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n")
        case .challenge:
            return socket.write(
                "HTTP/1.1 401 Password\r\nWWW-Authenticate: Basic realm=\"test\"\r\nContent-Length: 2\r\n\r\nno")
        case .refused: return socket.write(Self.refusal(.unknownApp))
        case .misdirected: return socket.write(Self.refusal(.misdirectedRequest))
        case .clockSkew: return socket.write(Self.refusal(.clockSkew))
        case .unavailable: return socket.write(Self.refusal(.serviceUnavailable))
        case .rateLimited: return socket.write(Self.refusal(.rateLimited))
        default: break
        }
        let isExecuted = execute(id, nonce)
        if plan == .twice { return socket.write(execute(id, nonce) ? Self.ok : Self.refusal(.nonceReplay)) }
        guard isExecuted else { return socket.write(Self.refusal(.nonceReplay)) }
        switch plan {
        case .closeAfter:
            _ = socket.write(Self.ok)
            return false
        case .dieAfter: return false
        case .reset:
            socket.reset()
            return false
        case .dieInHead:
            _ = socket.write("HTTP/1.1 200 OK\r\nContent-")
            return false
        case .dieInBody:
            _ = socket.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
            return false
        case .silent: return socket.read() != nil
        default: return socket.write(Self.ok)
        }
    }

    private func execute(_ id: String, _ nonce: String) -> Bool {
        state.withLock { state in
            guard state.claims.insert(nonce).inserted else { return false }
            state.executions[id, default: 0] += 1
            return true
        }
    }

    private static let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

    private static func refusal(_ code: ErrorCode) -> String {
        let body = ErrorBody(
            code: code.rawValue, message: "refused", requestID: "r", serverTimestamp: UnixTime(TestClock.start / 1000)
        ).bytes
        return "HTTP/1.1 \(code.httpStatus) Refused\r\nX-Synheart-Error: \(code.rawValue)\r\nContent-Length: "
            + "\(body.count)\r\n\r\n" + String(decoding: body, as: UTF8.self)
    }
}

/// A connection of a test's server.
final class Socket {
    #if canImport(Darwin)
        static let stream = SOCK_STREAM
        static let quietly: Int32 = 0
    #else
        static let stream = Int32(SOCK_STREAM.rawValue)
        static let quietly = Int32(MSG_NOSIGNAL)
    #endif

    struct Request {
        let head: String
        let body: [UInt8]

        func header(_ name: String) -> String {
            let line = head.split(separator: "\r\n").first { $0.lowercased().hasPrefix(name + ":") }
            return line.map { $0.dropFirst(name.count + 1).trimmingCharacters(in: .whitespaces) } ?? ""
        }
    }

    private let descriptor: Int32
    private var buffer: [UInt8] = []

    init(_ descriptor: Int32) { self.descriptor = descriptor }

    /// The next request; nil if the connection ended.
    func read() -> Request? {
        let end = Array("\r\n\r\n".utf8)
        var split: Int?
        while true {
            if buffer.count >= 4,
                let start = (0...buffer.count - 4).first(where: { buffer[$0..<$0 + 4].elementsEqual(end) })
            {
                split = start + 4
                break
            }
            guard fill() else { return nil }
        }
        guard let split else { return nil }
        let head = String(decoding: buffer[..<split], as: UTF8.self)
        let length = Int(Request(head: head, body: []).header("content-length")) ?? 0
        while buffer.count < split + length { guard fill() else { return nil } }
        let body = Array(buffer[split..<split + length])
        buffer.removeFirst(split + length)
        return Request(head: head, body: body)
    }

    private func fill() -> Bool {
        var piece = [UInt8](repeating: 0, count: 16_384)
        let count = recv(descriptor, &piece, piece.count, 0)
        guard count > 0 else { return false }
        buffer += piece.prefix(count)
        return true
    }

    func write(_ text: String) -> Bool {
        let bytes = Array(text.utf8)
        return bytes.withUnsafeBytes { Foundation.send(descriptor, $0.baseAddress, $0.count, Self.quietly) }
            == bytes.count
    }

    /// Makes `close` send a TCP reset (RST) instead of a FIN.
    func reset() {
        var option = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
    }

    func close() { _ = Foundation.close(descriptor) }
}
