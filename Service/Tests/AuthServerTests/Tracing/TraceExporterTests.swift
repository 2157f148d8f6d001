import AuthContract
import Bytes
import ServiceTestHelpers
import Testing
import Tracing

@testable import AuthServer

/// The queue and the batches of the exporter.
@Suite struct TraceExporterTests {
    private static func end(_ count: Int, of exporter: TraceExporter) {
        let tracer = RequestTracer(share: 1, exporter: exporter)
        for number in 0..<count { tracer.startSpan("span \(number)", context: .topLevel).end() }
    }

    @Test func `spans beyond the queue are dropped and counted`() async {
        let collector = TestCollector()
        let exporter = collector.exporter { ($0.queue, $0.batch) = (5, 2) }
        Self.end(8, of: exporter)
        #expect([exporter.counts.sent, exporter.counts.dropped] == [0, 3])
        await exporter.stop()
        #expect([exporter.counts.sent, exporter.counts.dropped] == [5, 3])
        #expect(collector.spans.map(\.name) == (0..<5).map { "span \($0)" })
        #expect(collector.bodies.count == 3)
    }

    @Test func `a collector that fails gets no batch twice, and is logged at the first failure and at its return`()
        async
    {
        let collector = TestCollector(statuses: [503, nil, 200, 400])
        let log = LogLines()
        let exporter = collector.exporter({ $0.batch = 1 }, logger: log.logger)
        Self.end(5, of: exporter)
        await exporter.stop()
        #expect([exporter.counts.sent, exporter.counts.dropped] == [2, 3])
        #expect(collector.spans.map(\.name) == ["span 2", "span 4"])
        let fails = "the collector does not take traces: they are dropped"
        let returns = "the collector takes traces again"
        #expect(log.all.map(\.message) == [fails, returns, fails, returns])
        #expect(log.all.first?.metadata["reason"] == "status 503")
    }

    @Test func `a full batch is sent before the interval is over`() async {
        let collector = TestCollector()
        let exporter = collector.exporter { $0.batch = 2 }
        let task = Task { await exporter.run { _ in try await Task.sleep(for: .seconds(3600)) } }
        Self.end(2, of: exporter)
        while exporter.counts.sent < 2 { await Task.yield() }
        task.cancel()
        await task.value
        #expect(collector.bodies.count == 1)
    }

    @Test func `the end of the service waits for a silent collector no longer than it may`() async {
        let exporter = TraceExporter(
            over: SilentCollector(),
            settings: {
                var settings = TraceExporter.Settings()
                settings.flush = .zero
                return settings
            }(), instance: "one", logger: LogLines().logger)
        Self.end(3, of: exporter)
        await exporter.stop()
        #expect([exporter.counts.sent, exporter.counts.dropped] == [0, 3])
    }

    @Test func `a span that has ended does not change, and ends once`() async {
        let collector = TestCollector()
        let exporter = collector.exporter()
        let span = RequestTracer(share: 1, exporter: exporter).startSpan("first", context: .topLevel)
        span.attributes["text"] = String(repeating: "x", count: 10_000)
        span.end()
        span.operationName = "second"
        span.end()
        #expect(!span.isRecording)
        await exporter.stop()
        #expect(collector.spans.map(\.name) == ["first"])
        #expect(collector.spans.first?["text"]?.utf8.count == 512)
    }
}

/// A collector that the exporter must not call. A call fails the test.
private struct SilentCollector: TraceExporter.Transport {
    func post(_ body: [UInt8], within limit: Duration) async throws -> Int {
        Issue.record("the time was over")
        return 200
    }
}

/// Ids whose first byte the test sets.
final class CountingRandom: RandomSource {
    let first = Locked<UInt8>(0)

    func bytes(_ count: Int) -> [UInt8] {
        [first.withLock { $0 }] + [UInt8](repeating: 1, count: max(0, count - 1))
    }
}
