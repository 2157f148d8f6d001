import AuthContract
import AuthService
import Bytes
import StrictJSON
import Testing
import Tracing

@testable import AuthServer

/// The spans of requests, as a collector receives them.
@Suite struct RequestTraceTests {
    private static let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0"

    /// Runs a server whose requests are traced, and returns the collector that received the spans.
    private static func spans(
        share: Double, trusting proxies: [String] = [], _ body: @Sendable (TestServer) async throws -> Void
    ) async throws -> TestCollector {
        let collector = TestCollector()
        let exporter = collector.exporter()
        let tracer = RequestTracer(share: share, exporter: exporter)
        var settings = ServerSettings()
        settings.trustedProxies = try TrustedProxies(proxies)
        try await TestServer.with(
            settings: settings,
            changing: { $0.replay = ObservedReplay($0.replay, by: TracedCalls(ServerMetrics(), tracer)) },
            tracer: tracer, body)
        await exporter.stop()
        return collector
    }

    @Test func `a question to verify is a trace of the request, the decision and the claim`() async throws {
        let secrets = Secrets()
        let collector = try await Self.spans(share: 1) { server in
            let device = try await TestDevice.register(at: server)
            let credential = try await server.credential(.service, apps: [TestServer.appID])
            let question = try device.question(at: server.clock.now)
            let answer = try await server.post(.verify, question, [("Authorization", "Bearer \(credential)")])
            #expect(answer.status == 200)
            await secrets.keep(
                device: device.id, credential: credential, question: question,
                requestID: try #require(answer.value("X-Request-ID")))
        }
        let spans = collector.spans
        let request = try #require(spans.last { $0.name == "POST /auth/v1/verify" })
        let trace = spans.filter { $0.traceID == request.traceID }
        #expect(trace.map(\.name) == ["store claim", "verify", "POST /auth/v1/verify"])
        #expect(request.parentID == nil)
        #expect(trace.map(\.parentID) == [trace[1].id, request.id, nil])
        #expect(Set(trace.map(\.id)).count == 3)
        let (device, requestID) = (try DeviceID(await secrets.device), await secrets.requestID)
        for (name, value) in [
            ("http.request.method", "POST"), ("http.route", "/auth/v1/verify"), ("http.response.status_code", "200"),
            ("synheart.outcome", "verified"), ("synheart.app", TestServer.appID),
            ("synheart.device", device.logged), ("synheart.request_id", requestID),
        ] { #expect(request[name] == value, "\(name)") }
        for span in spans {
            let start = try #require(span.text("startTimeUnixNano").flatMap { UInt64($0) })
            let end = try #require(span.text("endTimeUnixNano").flatMap { UInt64($0) })
            #expect(start <= end)
        }
        // The earlier registration is a separate trace.
        #expect(spans.contains { $0.name == "register" && $0.traceID != request.traceID })
        let text = collector.bodies.map { String(decoding: $0, as: UTF8.self) }.joined()
        for secret in await secrets.all { #expect(!text.contains(secret), "\(secret)") }
        #expect(text.contains(#""key":"service.name","value":{"stringValue":"synheart-auth"}"#))
    }

    /// Values of a request for the checks of its spans. No span may contain the values of `all`.
    private actor Secrets {
        private(set) var device = ""
        private(set) var requestID = ""
        private(set) var all: [String] = []

        func keep(device: String, credential: String, question: JSONValue, requestID: String) {
            (self.device, self.requestID) = (device, requestID)
            let headers = question.object?["headers"]?.array ?? []
            let values = headers.compactMap { header -> String? in
                let pair = header.array?.compactMap(\.string) ?? []
                return [HeaderName.signature, HeaderName.nonce].contains(pair.first) ? pair.last : nil
            }
            all = [device, credential] + values
        }
    }

    @Test(arguments: [(0.0, "1", true), (1.0, "0", false)])
    func `a trusted proxy decides whether its request is traced, and its span is the parent`(
        share: Double, flag: String, isTraced: Bool
    ) async throws {
        let collector = try await Self.spans(share: share, trusting: ["127.0.0.1"]) { server in
            _ = try await server.send("GET", "/nowhere", [("traceparent", Self.parent + flag)])
        }
        #expect(collector.spans.map(\.name) == (isTraced ? ["unknown"] : []))
        #expect(collector.spans.allSatisfy { $0.parentID == "00f067aa0ba902b7" })
        #expect(collector.spans.allSatisfy { $0.traceID == "4bf92f3577b34da6a3ce929d0e0e4736" })
    }

    @Test func `only a trusted proxy decides, and a parent that is malformed or comes twice is ignored`() async throws {
        let untrusted = try await Self.spans(share: 0) { server in
            _ = try await server.send("GET", "/nowhere", [("traceparent", Self.parent + "1")])
        }
        #expect(untrusted.spans.isEmpty)
        let broken = try await Self.spans(share: 1, trusting: ["127.0.0.1"]) { server in
            let good = ("traceparent", Self.parent + "0")
            for headers in [[("traceparent", "00-nothing")], [good, good]] {
                _ = try await server.send("GET", "/nowhere", headers)
            }
        }
        #expect(broken.spans.count == 2)
        #expect(broken.spans.allSatisfy { $0.parentID == nil && $0.traceID != "4bf92f3577b34da6a3ce929d0e0e4736" })
    }

    @Test func `a client's method is not in a span unless the route has it`() async throws {
        let collector = try await Self.spans(share: 1) { server in
            for method in ["GET", "PUT"] { _ = try await server.send(method, Route.keySet.rawValue) }
        }
        let names = ["GET", "_OTHER"].map { "\($0) \(Route.keySet.rawValue)" }
        #expect(collector.spans.map(\.name) == names)
    }

    @Test(arguments: [(0.0, 0), (0.25, 64), (0.5, 128), (1.0, 256)])
    func `a share of the ids is traced`(share: Double, count: Int) {
        // The first byte of the trace id takes each of its 256 values once, so the ids are evenly distributed.
        let random = CountingRandom()
        let tracer = RequestTracer(share: share, exporter: TestCollector().exporter(), random: random)
        let recorded = (0..<256).count { number in
            random.first.withLock { $0 = UInt8(number) }
            return tracer.startSpan("request", context: .topLevel).isRecording
        }
        #expect(recorded == count)
    }

    @Test func `a call to a provider is a span, and carries its place`() async throws {
        let collector = TestCollector()
        let exporter = collector.exporter()
        let tracer = RequestTracer(share: 1, exporter: exporter)
        let calls = TracedCalls(ServerMetrics(), tracer)
        func sent() async -> [String] {
            await calls.observing(.appleReceipt) { headers in (headers.map { "\($0.name): \($0.value)" }, .tooSlow) }
        }
        #expect(await sent() == [])
        let span = tracer.startSpan("request", context: .topLevel, ofKind: .server)
        let header = await InstrumentationContext.$current.withValue(span.context) { await sent() }
        var unsampled = InstrumentationContext.topLevel
        unsampled.place = TraceContext(traceparent: Self.parent + "0")
        let passedOn = await InstrumentationContext.$current.withValue(unsampled) { await sent() }
        #expect(passedOn == ["traceparent: \(Self.parent)0"])
        await exporter.stop()
        let provider = try #require(collector.spans.first)
        #expect(collector.spans.map(\.name) == ["provider apple_receipt"])
        #expect(header == ["traceparent: 00-\(provider.traceID)-\(provider.id)-01"])
        #expect(provider["synheart.result"] == "too_slow")
        #expect(provider.json.object?["status"]?.object?["code"]?.integer == 2)
    }
}
