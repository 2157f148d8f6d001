import Bytes
import Foundation
import StrictJSON
import Testing

/// The spans that a running service sends to a collector.
@Suite struct Traces {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    @Test func `a request is at the collector before the service has ended`() async throws {
        let requests = Locked<[ProxiedRequest]>([])
        let collector = try MeddlingProxy { request in
            requests.withLock { $0.append(request) }
            return ProxiedAnswer(status: 200, body: Array("{}".utf8))
        }
        let fixture = try await ServiceFixture(database: folder.path("db.sqlite"))
        let service = try await fixture.start(environment: ["SYNHEART_AUTH_TRACING_OTLP": collector.url])
        let answer = await WireConnection.exchange(
            port: service.port, WireRequest(method: "GET", target: "/auth/v1/.well-known/jwks.json"))
        #expect(answer?.status == 200)
        #expect(service.stop() == 0)
        let received = try #require(requests.withLock { $0.first })
        #expect([received.method, received.target] == ["POST", "/v1/traces"])
        #expect(received.value("Content-Type") == "application/json")
        #expect(received.value("traceparent") == nil)
        let text = String(decoding: received.body, as: UTF8.self)
        #expect(try JSONValue(parsing: received.body).object?["resourceSpans"]?.array?.count == 1)
        #expect(text.contains("\"GET /auth/v1/.well-known/jwks.json\""))
        #expect(text.contains("\"\(try #require(answer?.value("X-Request-ID")))\""))
    }
}
