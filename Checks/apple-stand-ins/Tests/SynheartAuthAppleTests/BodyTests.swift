import AuthContract
import Bytes
import Crypto
import Foundation
import Security
import Testing

@testable import SynheartAuth

/// Bodies from a `BodySource`. As on Apple's systems, they go through a pair of bound streams.
@Suite(.serialized, .timeLimit(.minutes(15))) struct BodyTests {
    private func registered(_ server: BulkServer) async throws -> SynheartAuth {
        let phone = Phone()
        let sdk = try phone.launch {
            $0.origins = try [RequestOrigin("http://127.0.0.1:\(server.port)")]
            $0.scheme = .two
            $0.transport = Routing(service: phone.service, network: URLSessionTransport())
        }
        try await sdk.registerDevice(appID: Phone.app)
        return sdk
    }

    private func upload(_ server: BulkServer, _ source: BodySource) -> TransportRequest {
        TransportRequest(
            method: "PUT", url: "http://127.0.0.1:\(server.port)/v1/recordings/1", headers: HeaderFields(),
            bodySource: source, deadline: .seconds(60))
    }

    @Test("a body of any length arrives as it is", arguments: [0, 1, 65_535, 65_536, 65_537, 200_001, 5_000_000])
    func lengths(length: Int) async throws {
        let server = try BulkServer()
        defer { server.stop() }
        let sdk = try await registered(server)
        let bytes = (0..<length).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        let source = BodySource { InputStream(data: Data(bytes)) }
        #expect(try await sdk.send(upload(server, source), appID: Phone.app).status == 200)
        let received = try #require(server.received.first)
        #expect(received.isWhole && received.count == length && received.digest == Array(SHA256.hash(data: bytes)))
        try await eventually { BodyPump.threads.busy == 0 }
    }

    @Test("a body whose source fails never arrives as a complete body", arguments: 0..<20)
    func broken(round: Int) async throws {
        let server = try BulkServer()
        defer { server.stop() }
        let sdk = try await registered(server)
        let source = BodySource(Locked(0)) { MadeUp(length: 200_001, seed: $0 == 1 ? 0 : 1) }
        let error = await expectError(.signingFailed) {
            try await sdk.send(upload(server, source), appID: Phone.app).status
        }
        #expect(error?.mayHaveHappened == true)
        try await eventually { server.received.count == 1 && BodyPump.threads.busy == 0 }
        #expect(server.received.allSatisfy { !$0.isWhole })
    }

    @Test("a send that is cancelled while its body leaves sends no whole one, and gives its thread back")
    func cancelled() async throws {
        let server = try BulkServer(.init(readsSlowly: true))
        defer { server.stop() }
        let sdk = try await registered(server)
        let source = BodySource { MadeUp(length: 20 * 1024 * 1024) }
        let send = Task { try await sdk.send(upload(server, source), appID: Phone.app).status }
        try await eventually { server.arrived > 200_000 }
        send.cancel()
        await #expect(throws: CancellationError.self) { try await send.value }
        server.hurry()
        try await eventually { server.received.count == 1 && BodyPump.threads.busy == 0 }
        #expect(server.received.allSatisfy { !$0.isWhole })
    }
}
