import AuthContract
import AuthService
import Testing

@testable import AuthServer

/// The listener for scrapers and orchestrators.
@Suite struct MetricsListenerTests {
    @Test func `the metrics listener answers only the probes, under any Host`() async throws {
        var settings = ServerSettings()
        settings.metrics = MetricsListenerSettings(port: 0)
        try await TestServer.with(settings: settings) { server async throws in
            let url = try #require(server.addresses.metricsURL)
            let port = try #require(url.split(separator: ":").last.flatMap { Int($0) })
            #expect(url == "http://127.0.0.1:\(port)" && port != server.operationsPort)
            let admin = try await server.credential(.admin)
            func get(_ target: String) async throws -> RawResponse {
                try await RawConnection.exchange(
                    port: port,
                    RawRequest(
                        method: "GET", target: target, host: "10.1.2.3:9090",
                        headers: [("Authorization", "Bearer \(admin)")]))
            }
            for probe in ["/metrics", "/healthz", "/readyz"] { #expect(try await get(probe).status == 200, "\(probe)") }
            #expect(try await get("/metrics").text.contains("synheart_connections{listener=\"metrics\"} "))
            for other in ["/admin/v1/apps", "/openapi.json", "/", Route.keySet.rawValue] {
                #expect(try await get(other).code == "NOT_FOUND", "\(other)")
            }
            // The operations listener still serves the metrics.
            #expect(try await server.operations("/metrics").status == 200)
        }
    }

    @Test func `without its setting there is no metrics listener`() async throws {
        try await TestServer.with { server in #expect(server.addresses.metricsURL == nil) }
    }
}
