import AsyncHTTPClient
import AuthContract
import AuthServer
import AuthService
import ClientHTTP
import Logging
import NIOCore
import NIOHTTP1

/// The traces of a running service: the tracer and the exporter.
struct ServiceTracing {
    let tracer: RequestTracer
    let exporter: TraceExporter
    private let collector: Collector

    /// Creates the tracer and the exporter. Nil: no collector is configured.
    init?(_ configuration: ServiceConfiguration, logger: Logger) throws {
        guard let (url, share) = try configuration.tracing else { return nil }
        collector = Collector(url)
        exporter = TraceExporter(over: collector, instance: RandomUUID(from: SystemRandom()).text, logger: logger)
        tracer = RequestTracer(share: share, exporter: exporter)
    }

    /// Closes the connections to the collector.
    func shutdown() async { await collector.shutdown() }
}

/// Posts spans to the collector over HTTP. Follows no redirects, and verifies certificates against the system's roots.
private struct Collector: TraceExporter.Transport {
    private let client: HTTPClient
    private let url: String

    /// - Parameter url: the URL to which spans are posted.
    init(_ url: String) {
        self.url = url
        var configuration = HTTPClient.Configuration.strict
        configuration.timeout.connect = .seconds(5)
        // The export of spans must not create spans.
        configuration.tracing.tracer = nil
        client = HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
    }

    func post(_ body: [UInt8], within limit: Duration) async throws -> Int {
        var request = HTTPClientRequest(url: url)
        request.method = .POST
        request.headers.add(name: "Content-Type", value: "application/json")
        request.body = .bytes(body)
        let answer = try await client.execute(request, timeout: TimeAmount(limit))
        // If the collector accepts only a part of a batch, its own log has the reason. The body is read so that the connection
        // can be reused.
        _ = try await answer.body.collect(upTo: 65_536)
        return Int(answer.status.code)
    }

    func shutdown() async { try? await client.shutdown() }
}
