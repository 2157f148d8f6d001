import AuthContract
import AuthService
import Bytes
import StoreConformance
import StrictJSON
import Testing

@testable import AuthServer

/// The operations listener: the hosts it answers, health, readiness, metrics.
@Suite struct OperationsTests {
    @Test(arguments: ["/healthz", "/readyz", "/metrics", "/openapi.json"])
    func `health, readiness and metrics need no credential and answer only GET`(path: String) async throws {
        try await TestServer.with { server in
            let response = try await server.operations(path)
            #expect(response.status == 200, "\(response.text)")
            #expect(response.values("X-Request-ID").count == 1)
            let posted = try await RawConnection.exchange(
                port: server.operationsPort, RawRequest(method: "POST", target: path, body: []))
            #expect(posted.status == 405)
            #expect(posted.value("Allow") == "GET, HEAD")
        }
    }

    @Test(arguments: [
        ("localhost", 200), ("LOCALHOST:9464", 200), ("127.0.0.1", 200), ("127.0.0.1:1", 200), ("[::1]:9464", 200),
        ("[::1]", 200), ("evil.example.com", 400), ("localhost.evil.example.com", 400), ("evil.example.com:9464", 400),
        ("127.0.0.1.evil.example.com", 400), ("[::2]", 400), ("", 400),
    ]) func `only configured names are answered`(host: String, status: Int) async throws {
        try await TestServer.with { server in
            let credential = try await server.credential(.admin)
            for path in ["/openapi.json", "/admin/v1/apps"] {
                let request = RawRequest(
                    method: "GET", target: path, host: host, headers: [("Authorization", "Bearer \(credential)")])
                let response = try await RawConnection.exchange(port: server.operationsPort, request)
                #expect(response.status == status, "\(path) \(response.text)")
            }
        }
    }

    @Test(arguments: ["/healthz", "/readyz", "/metrics"])
    func `probes are answered under any Host, or none`(path: String) async throws {
        try await TestServer.with { server in
            for host in ["10.1.2.3:9464", "evil.example.com", "", nil] {
                let response = try await RawConnection.exchange(
                    port: server.operationsPort, RawRequest(method: "GET", target: path, host: host))
                #expect(response.status == 200, "\(host ?? "none") \(response.text)")
            }
        }
    }

    @Test func `two Host headers are refused`() async throws {
        try await TestServer.with { server in
            let request = RawRequest(method: "GET", target: "/healthz", headers: [("Host", "localhost")])
            let response = try await RawConnection.exchange(port: server.operationsPort, request)
            #expect(response.status == 400)
        }
    }

    @Test func `the names can be configured`() async throws {
        var settings = ServerSettings()
        settings.operations.hosts = ["Ops.Internal"]
        try await TestServer.with(settings: settings) { server in
            let named = try await server.operations("/openapi.json", host: "ops.internal:9464")
            #expect(named.status == 200)
            let other = try await server.operations("/openapi.json", host: "localhost")
            #expect(other.status == 400)
        }
    }

    @Test(arguments: [
        (MemoryStores.Call.apps, "apps"), (.binding, "devices"), (.take, "challenges"), (.claim, "replay"),
        (.events, "audit"),
    ]) func `readiness names the failing checks`(call: MemoryStores.Call, name: String) async throws {
        try await TestServer.with { server in
            await server.stores.fail(call)
            let response = try await server.operations("/readyz")
            #expect(response.status == 503)
            #expect(response.json["status"]?.string == "not ready")
            #expect(response.json["failures"]?.object?[name] != nil, "\(response.text)")
            #expect(response.json["checks"]?.object?[name]?.bool == false)
            #expect(try await server.operations("/metrics").text.contains("synheart_ready{check=\"\(name)\"} 0"))
            #expect(try await server.operations("/healthz").status == 200)
        }
    }

    @Test func `the checks run when metrics are scraped, also without a readiness probe`()
        async throws
    {
        try await TestServer.with { server in
            await server.stores.fail(.events)
            let text = try await server.operations("/metrics").text
            #expect(text.contains("synheart_ready{check=\"audit\"} 0\n"))
            #expect(text.contains("synheart_ready{check=\"apps\"} 1\n"))
            #expect(text.contains("synheart_ready{check=\"accepting\"} 1\n"))
        }
    }

    @Test func `callers during the checks share their results`() async {
        let asked = Locked(0)
        let gate = AsyncStream.makeStream(of: Void.self)
        let readiness = Readiness([
            Readiness.Check("slow") {
                asked.withLock { $0 += 1 }
                for await _ in gate.stream {}
            }
        ])
        await withTaskGroup(of: Int.self) { group in
            for _ in 0..<50 { group.addTask { await readiness.findings().count } }
            while asked.withLock({ $0 }) == 0 { await Task.yield() }
            gate.continuation.finish()
            for await count in group { #expect(count == 2) }
        }
        #expect(asked.withLock { $0 } == 1)
    }

    @Test func `a lost history is degraded, for as long as an app refuses requests`() async throws {
        for (window, seconds) in [(5, 5), (60, 60), (300, 300)] as [(Int64, Int64)] {
            try await TestServer.with { server in
                for (id, window, isEnabled) in [(TestServer.appID, window, true), ("com.example.off", 299, false)] {
                    var record = TestServer.record
                    record["app_id"] = .string(id)
                    record["enabled"] = .bool(isEnabled)
                    record["signature"] = ["future_window_seconds": .integer(window)]
                    let parsed = try AppRecord(JSONFields(.object(record)))
                    if id == TestServer.appID {
                        #expect(try await server.service.apps.change(parsed, actor: "test"))
                    } else {
                        #expect(try await server.service.apps.add(parsed, actor: "test"))
                    }
                }
                let lost = server.clock.now
                await server.stores.loseHistory(at: lost)
                let response = try await server.operations("/readyz")
                #expect(response.status == 200 && response.json["status"]?.string == "ready", "\(response.text)")
                #expect(response.json["checks"]?.object?["replay"]?.bool == true)
                let degraded = response.json["degraded"]?.object?["replay"]?.object
                #expect(degraded?["until"]?.string == (lost + seconds + 1).iso8601, "\(window): \(response.text)")
                #expect(degraded?["reason"]?.string?.contains("history was lost") == true)
                let metrics = try await server.operations("/metrics").text
                #expect(metrics.contains("synheart_degraded{check=\"replay\"} 1\n"))
                #expect(metrics.contains("synheart_history_losses_total 1\n"))
                #expect(metrics.contains("synheart_history_lost_seconds_total \(seconds + 1)\n"))
            }
        }
    }

    @Test func `nothing is degraded where history is whole`() async throws {
        try await TestServer.with { server in
            let response = try await server.operations("/readyz")
            #expect(
                response.status == 200 && response.json["degraded"]?.object?.members.isEmpty == true, "\(response.text)"
            )
            #expect(try await server.operations("/metrics").text.contains("synheart_degraded{check=\"replay\"} 0\n"))
        }
    }

    @Test func `a clock that is behind is not ready`() async throws {
        try await TestServer.with { server in
            // The clock check fails if at least half of the newest events are dated too far ahead of the clock. The readiness check
            // itself may append two events, for new signing keys, so the test appends three.
            for _ in 0..<3 {
                try await server.all.audit.append(AuditEvent(.securityEvent, at: server.clock.now, actor: "test"))
            }
            server.clock.advance(-31)
            let response = try await server.operations("/readyz")
            #expect(response.json["failures"]?.object?["clock"] != nil, "\(response.text)")
        }
    }

    @Test func `where a server's clock agrees with a node's, events dated ahead leave it ready`() async throws {
        try await TestServer.with { server in
            // The first check may write events of its own.
            _ = try await server.operations("/readyz")
            server.clock.advance(3600)
            try await server.all.audit.append(AuditEvent(.securityEvent, at: server.clock.now, actor: "test"))
            server.clock.advance(-3600)
            for (hasServerClock, failure) in [(false, "the clock is 3600 s behind"), (true, "a clock was ahead")] {
                let findings = await Readiness(
                    service: server.service, stores: server.all, hasServerClock: hasServerClock
                ).findings()
                let clock = try #require(findings.first { $0.name == "clock" })
                #expect(hasServerClock == (clock.failure == nil), "\(clock)")
                #expect("\(clock)".contains(failure), "\(clock)")
            }
        }
    }

    @Test func `one event that is dated ahead leaves the node ready, and degraded until that time`() async throws {
        try await TestServer.with { server in
            server.clock.advance(3600)
            try await server.all.audit.append(AuditEvent(.securityEvent, at: server.clock.now, actor: "test"))
            server.clock.advance(-3600)
            for _ in 0..<9 {
                try await server.all.audit.append(AuditEvent(.securityEvent, at: server.clock.now, actor: "test"))
            }
            let response = try await server.operations("/readyz")
            let text = response.json["degraded"]?.object?["clock"]?.text() ?? ""
            #expect(response.status == 200 && text.contains("a clock was ahead"), "\(response.text)")
        }
    }

    @Test func `outcomes are counted`() async throws {
        try await TestServer.with { server in
            let device = try await TestDevice.register(at: server)
            let headers = try device.headers("GET", Route.status.rawValue, at: server.clock.now)
            for _ in 0..<2 { _ = try await server.send("GET", Route.status.rawValue, headers) }
            let credential = try await server.credential(.service, apps: [TestServer.appID])
            _ = try await server.post(
                .verify, device.question(at: server.clock.now), [("Authorization", "Bearer \(credential)")])
            _ = try await server.administer("GET", "/apps", "sya_nobody_x")
            _ = try await RawConnection.exchange(port: server.publicPort, Array("garbage\r\n\r\n".utf8))
            let text = try await server.operations("/metrics").text
            for line in [
                #"synheart_requests_total{route="device/status",status="200",outcome="ok"} 1"#,
                #"synheart_requests_total{route="device/status",status="409",outcome="NONCE_REPLAY"} 1"#,
                #"synheart_request_duration_seconds_count{route="device/status"} 2"#,
                #"synheart_request_duration_seconds_bucket{route="device/status",le="+Inf"} 2"#,
                #"synheart_registrations_total{platform="ios",result="registered"} 1"#,
                #"synheart_verdicts_total{app="com.example.app",verdict="verified"} 1"#,
                #"synheart_verified_requests_total{scheme="1"} 2"#,
                "synheart_replay_refusals_total 1",
                #"synheart_attestations_total{provider="development",result="accepted"} 1"#,
                "synheart_key_age_seconds_count 2", #"synheart_key_age_seconds_bucket{le="86400"} 2"#,
                // The replay is refused, and its request time is not recorded as a clock offset.
                #"synheart_clock_offset_seconds_count{direction="ahead"} 2"#,
                // Hits: the replay, the request to `/verify`, and a second lookup for the answer to the first request.
                #"synheart_cache_lookups_total{cache="devices",result="hit"} 3"#,
                #"synheart_cache_lookups_total{cache="apps",result="miss"} 1"#,
                // Events: the app, the device, the credential, and the first two signing keys, which the readiness check
                // creates.
                "synheart_audit_events 5",
                #"synheart_store_errors_total{operation="claim",failure="tooSlow"} 0"#,
                #"synheart_security_events_total{event="admin_credential_refused"} 1"#,
                #"synheart_development_requests_total{outcome="registered"} 1"#,
                #"synheart_malformed_requests_total{listener="public"} 1"#,
            ] {
                #expect(text.contains(line + "\n"), "\(line)")
            }
        }
    }

    @Test func `the text is in the format of Prometheus`() {
        let registry = MetricsRegistry()
        registry.describe("a_total", .counter, "An a.")
        registry.count("a_total", [("label", "quote\" back\\slash\nline")])
        registry.count("never_described_total")
        registry.describe("t_seconds", .histogram(MetricsRegistry.latencyBuckets), "A time.")
        registry.histogram("t_seconds").observe(0.003)
        registry.histogram("t_seconds").observe(100)
        let text = registry.text()
        #expect(text.contains("# HELP a_total An a.\n# TYPE a_total counter\n"))
        #expect(text.contains(#"a_total{label="quote\" back\\slash\nline"} 1"# + "\n"))
        #expect(!text.contains("never_described"))
        #expect(text.contains("t_seconds_bucket{le=\"0.0025\"} 0\nt_seconds_bucket{le=\"0.005\"} 1\n"))
        #expect(text.contains("t_seconds_bucket{le=\"10\"} 1\nt_seconds_bucket{le=\"+Inf\"} 2\n"))
        #expect(text.contains("t_seconds_sum 100.003\nt_seconds_count 2\n"))
    }

    @Test func `a series of another kind or beyond the limit is not counted`() {
        let registry = MetricsRegistry()
        registry.describe("a_total", .counter, "An a.")
        registry.histogram("a_total").observe(1)
        #expect(!registry.text().contains("a_total_count"))
        for number in 0..<3000 { registry.count("a_total", [("n", String(number))]) }
        #expect(registry.text().split(separator: "\n").count == 2002)
    }

    @Test func `store calls are counted`() async {
        let metrics = ServerMetrics(startedAt: UnixTime(0))
        metrics.called(.claim, took: .milliseconds(3), failure: nil)
        metrics.called(.write, took: .seconds(2), failure: .tooSlow)
        let text = metrics.text()
        for line in [
            #"synheart_store_duration_seconds_bucket{operation="claim",le="0.005"} 1"#,
            #"synheart_store_duration_seconds_count{operation="write"} 1"#,
            #"synheart_store_errors_total{operation="write",failure="tooSlow"} 1"#,
            #"synheart_store_errors_total{operation="claim",failure="unavailable"} 0"#,
        ] {
            #expect(text.contains(line + "\n"), "\(line)")
        }
    }

    @Test(
        arguments: [
            (Platform.ios, "x", nil, "REGISTERED", nil), (.ios, "x", nil, "registered", "app_attest accepted"),
            (.ios, "x", nil, "INVALID_ATTESTATION", "app_attest refused"),
            (.ios, "development", nil, "pending", "development accepted"),
            (.android, "x", nil, "PROVIDER_UNAVAILABLE", "play_integrity unavailable"),
            (.android, nil, [[1]], "registered", "key_attestation accepted"),
            (.android, "x", [[1]], "rejected", "play_integrity_and_key_attestation accepted"),
            (.android, "x", nil, "INVALID_CHALLENGE", nil),
        ] as [(Platform, String?, [[UInt8]]?, String, String?)])
    func `attestations are counted by provider`(
        platform: Platform, proof: String?, chain: [[UInt8]]?, result: String, counted: String?
    ) throws {
        let metrics = ServerMetrics(startedAt: UnixTime(0))
        let request = RegisterRequest(
            appID: try AppID("a"), publicKeyText: "", challenge: [], platform: platform, proof: proof,
            keyAttestation: chain)
        metrics.registration(request, result)
        let lines = metrics.text().split(separator: "\n").filter {
            $0.hasPrefix("synheart_attestations_total{") && !$0.hasSuffix(" 0")
        }
        let words = counted?.split(separator: " ") ?? []
        let wanted =
            words.isEmpty ? [] : [#"synheart_attestations_total{provider="\#(words[0])",result="\#(words[1])"} 1"#]
        #expect(lines.map(String.init) == wanted)
    }

    @Test(arguments: [(0, "ahead"), (45, "ahead"), (-45, "behind"), (-4000, "behind")] as [(Int64, String)])
    func `clients' clock offsets are counted`(offset: Int64, direction: String) async throws {
        try await TestServer.with { server in
            let device = try await TestDevice.register(at: server)
            let headers = try device.headers("GET", Route.status.rawValue, at: server.clock.now + offset)
            let response = try await server.send("GET", Route.status.rawValue, headers)
            #expect(response.status == (offset < -300 ? 401 : 200), "\(response.text)")
            let text = try await server.operations("/metrics").text
            #expect(text.contains("synheart_clock_offset_seconds_count{direction=\"\(direction)\"} 1\n"))
            #expect(text.contains("synheart_clock_offset_seconds_sum{direction=\"\(direction)\"} \(abs(offset))\n"))
        }
    }
}
