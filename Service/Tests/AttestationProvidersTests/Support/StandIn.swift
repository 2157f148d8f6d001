import AuthService
import HTTPTypes
import Hummingbird
import Logging
import NIOCore
import ServiceLifecycle
import Testing

import class Bytes.Locked

@testable import AttestationProviders

/// A service on loopback that gives scripted answers and records the requests.
struct StandIn: Sendable {
    struct Received: Sendable {
        let method: String
        let path: String
        let headers: HTTPFields
        let body: [UInt8]

        subscript(header: String) -> String? { HTTPField.Name(header).flatMap { headers[$0] } }
        var text: String { String(decoding: body, as: UTF8.self) }
    }

    enum Answer: Sendable, CustomTestStringConvertible {
        case whole(Int, [String: String] = [:], [UInt8] = [])
        /// No answer at all.
        case silence
        /// A valid head, and then a body byte by byte.
        case drip

        static func text(_ status: Int, _ text: String, _ headers: [String: String] = [:]) -> Answer {
            .whole(status, headers, Array(text.utf8))
        }

        /// Leaves out the bytes of the body: printing them would take seconds for each answer.
        var testDescription: String {
            switch self {
            case .whole(let status, let headers, let body): "\(status) \(headers), \(body.count) bytes"
            case .silence: "silence"
            case .drip: "byte by byte"
            }
        }
    }

    let port: Int
    private let log: Locked<[Received]>

    var url: String { "http://127.0.0.1:\(port)" }
    var received: [Received] { log.withLock { $0 } }

    /// Runs the service for as long as `body` runs.
    static func run(
        _ react: @escaping @Sendable (Received) async throws -> Answer,
        _ body: (StandIn) async throws -> Void
    ) async throws {
        let log = Locked<[Received]>([])
        let (ports, started) = AsyncStream.makeStream(of: Int.self)
        var quiet = Logger(label: "stand-in")
        quiet.logLevel = .critical
        let app = Application(
            responder: CallbackResponder { (request: Request, _: BasicRequestContext) in
                let bytes = try await Array(request.body.collect(upTo: 1 << 20).readableBytesView)
                let received = Received(
                    method: request.method.rawValue, path: request.uri.path, headers: request.headers, body: bytes)
                log.withLock { $0.append(received) }
                return try await response(react(received))
            }, configuration: .init(address: .hostname("127.0.0.1", port: 0)),
            onServerRunning: { channel in started.yield(channel.localAddress?.port ?? 0) }, logger: quiet)
        let service = ServiceGroup(configuration: .init(services: [app], logger: quiet))
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await service.run() }
            let outcome: Result<Void, any Error>
            do {
                for await port in ports {
                    try await body(StandIn(port: port, log: log))
                    break
                }
                outcome = .success(())
            } catch {
                outcome = .failure(error)
            }
            // Stops the service instead of cancelling its task. NIO traps if a task is cancelled between accepting a connection and
            // serving it.
            await service.triggerGracefulShutdown()
            try await group.waitForAll()
            try outcome.get()
        }
    }

    private static func response(_ answer: Answer) async throws -> Response {
        switch answer {
        case .whole(let status, let headers, let body):
            var fields = HTTPFields()
            for (name, value) in headers { HTTPField.Name(name).map { fields[$0] = value } }
            return Response(
                status: .init(code: status), headers: fields,
                body: ResponseBody(byteBuffer: ByteBuffer(bytes: body)))
        case .silence:
            // Ends when the stand-in stops, or when the client disconnects.
            try? await cancelWhenGracefulShutdown { try await Task.sleep(for: .seconds(600)) }
            return Response(status: .ok)
        case .drip:
            return Response(
                status: .ok,
                body: ResponseBody { writer in
                    while !Task.isCancelled, !Task.isShuttingDownGracefully {
                        try await writer.write(ByteBuffer(string: " "))
                        try await Task.sleep(for: .milliseconds(20))
                    }
                    try await writer.finish(nil)
                })
        }
    }
}

/// Answers that are each given once, before the usual one.
final class Script: Sendable {
    private let answers = Locked<[StandIn.Answer]>([])

    func then(_ answers: StandIn.Answer...) { self.answers.withLock { $0 += answers } }

    func next() -> StandIn.Answer? { answers.withLock { $0.isEmpty ? nil : $0.removeFirst() } }
}
