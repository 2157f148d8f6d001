import AuthContract
import NIOCore
import NIOPosix
import StrictJSON

import class Bytes.Locked

/// An auth service on loopback that gives the vectors' answers and has the faults that they name.
final class PlayedService: Sendable {
    private struct State: Sendable {
        var answers: [JSONFields] = []
        var questions: [[UInt8]] = []
        var connections = 0
    }

    private let channel: any Channel
    private let state: Locked<State>

    init() async throws {
        let state = Locked(State())
        self.state = state
        channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelInitializer { channel in
                state.withLock { $0.connections += 1 }
                return channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(
                        Handler { question in
                            state.withLock { state in
                                state.questions.append(question)
                                return state.answers[min(state.questions.count, state.answers.count) - 1]
                            }
                        })
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
    }

    var url: String { "http://127.0.0.1:\(channel.localAddress?.port ?? 0)" }
    var questions: [[UInt8]] { state.withLock(\.questions) }
    var connections: Int { state.withLock(\.connections) }

    /// Gives these answers to the verifier's next questions. The last answer is repeated.
    func begin(_ answers: [JSONFields]) {
        state.withLock {
            $0.answers = answers
            $0.questions = []
        }
    }

    func close() async { try? await channel.close() }

    private final class Handler: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer

        private let next: (_ question: [UInt8]) -> JSONFields
        private var received: [UInt8] = []

        init(_ next: @escaping (_ question: [UInt8]) -> JSONFields) { self.next = next }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            received.append(contentsOf: unwrapInboundIn(data).readableBytesView)
            guard let question = Self.body(in: received) else { return }
            received = []
            do { try answer(next(question), context) } catch { context.close(promise: nil) }
        }

        /// The body of a request; nil until the whole request has arrived.
        private static func body(in bytes: [UInt8]) -> [UInt8]? {
            guard let end = bytes.firstRange(of: Array("\r\n\r\n".utf8)) else { return nil }
            let lines = bytes[..<end.lowerBound].split(separator: UInt8(ascii: "\n")).map { line in
                String(decoding: line.filter { $0 != UInt8(ascii: "\r") }, as: UTF8.self).lowercased()
            }
            let lengths = lines.filter { $0.hasPrefix("content-length:") }.compactMap { line in
                Int(line.dropFirst("content-length:".count).drop { $0 == " " })
            }
            let body = bytes[end.upperBound...]
            return body.count >= lengths.first ?? 0 ? Array(body) : nil
        }

        private func answer(_ answer: JSONFields, _ context: ChannelHandlerContext) throws {
            let fault = try answer.optionalString("fault")
            switch fault {
            case "close": context.close(promise: nil)
            case "silent": break
            case "cut":
                write("HTTP/1.1 200 OK\r\nContent-Length: 400\r\n\r\n{\"verified\": true", context)
                context.close(promise: nil)
            case "drip head":
                write("HTTP/1.1 200 OK\r\n", context)
                repeatedly("X-A: b\r\n", context)
            case "drip":
                write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", context)
                repeatedly("1\r\n \r\n", context)
            case "endless":
                write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", context)
                endlessly(context)
            default:
                try whole(answer, context)
                if fault == "close after" { context.close(promise: nil) }
            }
        }

        private func whole(_ answer: JSONFields, _ context: ChannelHandlerContext) throws {
            let spaces = String(repeating: " ", count: Int(try answer.optionalInteger("spaces") ?? 0))
            let body = try answer.string("body") + spaces
            // A status has three digits, even if it is below 100.
            var head = "HTTP/1.1 \(String(try answer.integer("status") + 1000).dropFirst()) X\r\n"
            for member in answer.optionalValue("headers")?.object?.members ?? [] {
                head += "\(member.name): \(member.value.string ?? "")\r\n"
            }
            if try answer.integer("status") != 204 { head += "Content-Length: \(body.utf8.count)\r\n" }
            write(head + "\r\n" + body, context)
        }

        private func repeatedly(_ text: String, _ context: ChannelHandlerContext) {
            let channel = context.channel
            context.eventLoop.scheduleRepeatedTask(initialDelay: .zero, delay: .milliseconds(20)) { task in
                guard channel.isActive else { return task.cancel() }
                channel.writeAndFlush(ByteBuffer(string: text), promise: nil)
            }
        }

        private func endlessly(_ context: ChannelHandlerContext) {
            let channel = context.channel
            let chunk = ByteBuffer(string: "1000\r\n" + String(repeating: " ", count: 0x1000) + "\r\n")
            @Sendable func next() {
                // Runs `next` in a new turn of the event loop. A direct call would make the stack grow as long as the socket
                // accepts everything.
                channel.writeAndFlush(chunk).whenSuccess { channel.eventLoop.execute { next() } }
            }
            next()
        }

        private func write(_ text: String, _ context: ChannelHandlerContext) {
            context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: text)), promise: nil)
        }
    }
}
