import AuthContract
import Bytes
import Testing

@testable import SynheartAuth

/// Requests with assertions, which are sent one at a time.
@Suite struct AssertionTurnTests {
    /// A transport that does not answer requests to a path until they are cancelled.
    private struct Silent: HTTPTransport {
        let base: any HTTPTransport
        let path: String
        let started = Locked(0)

        func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
            guard request.url.hasSuffix(path) else { return try await base.send(request) }
            started.withLock { $0 += 1 }
            let ended = OnceValue<Void>()
            await withTaskCancellationHandler {
                await ended.value
            } onCancel: {
                ended.give(())
            }
            throw TransportError("cancelled")
        }
    }

    private func upload(_ path: String) -> TransportRequest {
        TransportRequest(
            method: "PUT", url: SendTests.api + path, headers: HeaderFields(), body: [], deadline: .seconds(3600))
    }

    @Test func `a cancelled request leaves the line to the next one`() async throws {
        let phone = Phone()
        let transport = Silent(base: phone.network, path: "/v1/upload")
        let sdk = try phone.launch {
            $0.origins = SendTests.origins
            $0.transport = transport
        }
        try await sdk.registerDevice(appID: Phone.app)
        let first = Task { try await sdk.send(upload("/v1/upload"), appID: Phone.app, asserting: true) }
        try await eventually { transport.started.withLock { $0 } == 1 }
        first.cancel()
        #expect(try await sdk.send(upload("/v1/pay"), appID: Phone.app, asserting: true).status == 200)
    }

    @Test func `a request is signed at its turn, so that its time is current`() async throws {
        let phone = Phone()
        let transport = CallDeadlineTests.HeldTransport(phone.network, holding: "/v1/upload")
        let sdk = try phone.launch {
            $0.origins = SendTests.origins
            $0.transport = transport
        }
        try await sdk.registerDevice(appID: Phone.app)
        let first = Task { try await sdk.send(upload("/v1/upload"), appID: Phone.app, asserting: true).status }
        try await eventually { await transport.waiting == 1 }
        let second = Task { try await sdk.send(upload("/v1/pay"), appID: Phone.app, asserting: true).status }
        // Gives the second request enough time to be signed, in case it wrongly does not wait for its turn.
        for _ in 0..<20 { await Task.yield() }
        phone.clock.advance(.seconds(400))
        await transport.letGo()
        #expect(try await second.value == 200)
        _ = try? await first.value
        #expect(await transport.sent.count { $0.hasSuffix("/v1/pay") } == 1)
    }
}
