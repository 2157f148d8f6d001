import AuthContract
import AuthService
import Foundation
import StoreConformance
import StrictJSON
import Testing

@testable import AuthServer

/// The metrics: text that Prometheus parses. Every series is there from the start, except in the families of `growing`.
@Suite struct MetricsTests {
    /// Families that gain series later: with an app, a credential, a key, a package, a list or a webhook, or with TLS.
    private static let growing: Set = [
        "synheart_verdicts_total", "synheart_device_risk_metric", "synheart_devices_over_risk_threshold",
        "synheart_credential_expiry_timestamp_seconds", "synheart_credential_last_use_timestamp_seconds",
        "synheart_signing_key_expiry_timestamp_seconds", "synheart_tls_certificate_expiry_timestamp_seconds",
        "synheart_play_integrity_requests_today", "synheart_play_integrity_quota_refusals_today",
        "synheart_revocation_list_age_seconds", "synheart_revocation_list_entries", "synheart_revocation_list_usable",
        "synheart_webhook_backlog",
    ]

    private static func scrape(_ server: TestServer) async throws -> ExpositionText {
        try ExpositionText(try await server.operations("/metrics").text)
    }

    @Test func `a loss of history counts once, with its length as far as it is known`() throws {
        let metrics = ServerMetrics()
        for (end, now) in [(nil, 0), (20, 10), (25, 12), (24, 13), (nil, 26), (40, 30)] as [(Int64?, Int64)] {
            metrics.historyLost(until: end.map { UnixTime($0) }, at: UnixTime(now))
        }
        let series = try ExpositionText(metrics.text()).series
        #expect(series["synheart_history_losses_total"] == 2)
        #expect(series["synheart_history_lost_seconds_total"] == 25)
    }

    /// Sends requests of many kinds. Most are refused.
    private static func traffic(_ server: TestServer) async throws {
        let device = try await TestDevice.register(at: server)
        let headers = try device.headers("GET", Route.status.rawValue, at: server.clock.now)
        for _ in 0..<2 { _ = try await server.send("GET", Route.status.rawValue, headers) }
        for time in [server.clock.now + -1000, server.clock.now + 30] {
            let dated = try device.headers("GET", Route.status.rawValue, at: time)
            _ = try await server.send("GET", Route.status.rawValue, dated)
        }
        let credential = try await server.credential(.service, apps: [TestServer.appID])
        let bearer = [("Authorization", "Bearer \(credential)")]
        for at in [server.clock.now, server.clock.now + -1000] {
            _ = try await server.post(.verify, device.question(at: at), bearer)
        }
        _ = try await server.post(.verify, ["method": 1], bearer)
        _ = try await server.post(.verify, device.question(at: server.clock.now))
        for (method, target) in [("GET", "/nowhere"), ("PUT", Route.token.rawValue), ("GET", Route.keySet.rawValue)] {
            _ = try await server.send(method, target)
        }
        for route in [Route.challenge, .register, .rotateKey, .token] {
            _ = try await server.send("POST", route.rawValue, [(HeaderName.developmentMode, "true")])
            _ = try await server.post(route, ["app_id": "com.example.nobody"])
            _ = try await server.send(
                "POST", route.rawValue, [("Content-Type", "application/json"), ("Content-Length", "1000000")])
        }
        let admin = try await server.credential(.admin)
        for (method, path) in [
            ("GET", "/apps"), ("GET", "/nowhere"), ("PATCH", "/apps"), ("POST", "/apps"),
            ("DELETE", "/apps/com.example.app"), ("GET", "/apps/com.example.nobody"),
        ] {
            for text in [admin, "sya_nobody_x"] { _ = try await server.administer(method, path, text) }
        }
        for path in ["/healthz", "/readyz", "/openapi.json", "/nowhere"] { _ = try await server.operations(path) }
        for port in [server.publicPort, server.operationsPort] {
            _ = try await RawConnection.exchange(port: port, Array("garbage\r\n\r\n".utf8))
        }
    }

    @Test func `Prometheus reads the text, and every series was there before the first event`() async throws {
        try await TestServer.with { server in
            let before = try await Self.scrape(server)
            try await Self.traffic(server)
            let after = try await Self.scrape(server)
            for (name, family) in before.families where !Self.growing.contains(name) {
                #expect(!family.samples.isEmpty, "\(name) has no series")
            }
            let new = after.families.filter { !Self.growing.contains($0.key) }.values.flatMap(\.samples).map(\.series)
                .filter { before.series[$0] == nil }
            #expect(new.isEmpty, "these came with their first event: \(new.joined(separator: "\n"))")
            // Counters only grow.
            for (name, family) in before.families where family.type == "counter" {
                for sample in family.samples {
                    #expect((after.series[sample.series] ?? -1) >= sample.value, "\(name) \(sample.series)")
                }
            }
        }
    }

    @Test func `the page Operating lists every family of the server, and its type`() throws {
        let page = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("../../../Sources/AuthServer/AuthServer.docc/Operating.md")
        let rows = try String(contentsOf: page, encoding: .utf8).split(separator: "\n").filter { $0.hasPrefix("| `") }
        let metrics = ServerMetrics()
        metrics.describe(TestCollector().exporter().metrics)
        for (name, family) in try ExpositionText(metrics.text()).families {
            let row = try #require(rows.first { $0.contains("`\(name)`") }, "\(name) is not listed")
            #expect(row.contains("| \(family.type) |"), "\(name) is a \(family.type)")
        }
    }

    @Test func `metrics have the process's figures and the build`() async throws {
        try await TestServer.with { server in
            let series = try await Self.scrape(server).series
            #expect(series["synheart_build_info{version=\"\(Build.version)\"}"] == 1)
            #if os(Linux)
                #expect((series["process_resident_memory_bytes"] ?? 0) > 1_000_000)
                #expect((series["process_virtual_memory_bytes"] ?? 0) > (series["process_resident_memory_bytes"] ?? 0))
                #expect((series["process_open_fds"] ?? 0) > 3)
                #expect((series["process_max_fds"] ?? 0) >= (series["process_open_fds"] ?? 0))
                #expect((series["process_cpu_seconds_total"] ?? 0) > 0)
                let started = series["process_start_time_seconds"] ?? 0
                let now = Double(SystemClock().now.seconds)
                #expect(started > now - 86_400 && started <= now + 1)
            #endif
        }
    }

    @Test func `credentials have metrics of their expiry and last use`() async throws {
        try await TestServer.with { server in
            let text = try await server.credential(.viewer)
            let gone = try await server.credential(.operator)
            let all = try await server.service.credentials.list()
            let (viewer, ended) = (
                try #require(all.first { $0.role == .viewer }), try #require(all.first { $0.role == .operator })
            )
            _ = try await server.service.credentials.revoke(ended.id, actor: "test")
            let labels = "{id=\"\(viewer.id)\",name=\"test viewer\",role=\"viewer\"}"
            let unused = try await Self.scrape(server).series
            #expect(unused["synheart_credential_expiry_timestamp_seconds\(labels)"] == Double(viewer.expiresAt.seconds))
            #expect(unused["synheart_credential_last_use_timestamp_seconds\(labels)"] == 0)
            _ = try await server.administer("GET", "/apps", gone)
            _ = try await server.administer("GET", "/apps", text)
            let used = try await Self.scrape(server).series
            #expect(used["synheart_credential_last_use_timestamp_seconds\(labels)"] == Double(server.clock.now.seconds))
            // Revoked and expired credentials are not shown.
            #expect(!used.keys.contains { $0.contains(ended.id) })
            server.clock.advance(3600)
            #expect(try await !Self.scrape(server).series.keys.contains { $0.contains(viewer.id) })
        }
    }

    @Test func `the name of a credential cannot end its label or its line`() async throws {
        try await TestServer.with { server in
            let names = ["a\r\nforged 1", "b\"\u{301}} 2", "c\\\u{301}\"", "d\u{1b}[2J\u{2028}"]
            for name in names {
                _ = try await server.service.credentials.create(
                    name: name, role: .viewer, scope: .allApps, life: 600, actor: "test")
            }
            let families = try await Self.scrape(server).families
            let samples = try #require(families["synheart_credential_expiry_timestamp_seconds"]).samples
            let shown = samples.map { $0.labels.first { $0.name == "name" }?.value }
            for name in [
                #"a\\u{d}\nforged 1"#, "b\\\"\u{301}} 2", "c\\\\\u{301}\\\"", #"d\\u{1b}[2J\\u{2028}"#,
            ] {
                #expect(shown.contains { $0.map { Array($0.utf8) } == Array(name.utf8) }, "\(name) in \(shown)")
            }
        }
    }

    @Test func `a signing key ends when its successor signs`() async throws {
        try await TestServer.with { server in
            // Neither the signing key nor the standby key has an end yet.
            #expect(try await Self.keyExpiries(server) == [.infinity, .infinity])
            _ = try await server.service.signingKeys.rotate(actor: "test")
            // The new key is published for 360 s before it signs. Then the old key's tokens live 600 s, and clocks may be 60 s
            // apart.
            let end = Double(server.clock.now.seconds + 1020)
            #expect(try await Self.keyExpiries(server) == [end, .infinity, .infinity])
        }
    }

    private static func keyExpiries(_ server: TestServer) async throws -> [Double?] {
        let text = try await scrape(server)
        return try await server.stores.signingKeys().map { key in
            text.series["synheart_signing_key_expiry_timestamp_seconds{kid=\"\(key.id)\"}"]
        }
    }

    // MARK: Verdicts by app

    private static func app(_ number: Int) throws -> AppID { try AppID("app.\(number)") }

    private static func values(_ counts: VerdictCounts) -> [String: Double] {
        let series = counts.series(of: ["verified"]).map { series in
            (series.labels.map(\.value).joined(separator: " "), series.value)
        }
        return Dictionary(uniqueKeysWithValues: series)
    }

    @Test func `the busiest apps are named, and no series ever falls`() throws {
        let counts = VerdictCounts()
        var seen: [String: Double] = [:]
        var total = 0
        // Apps 0…299 send in order, then once more in order. Then the last hundred become the busiest.
        let order = Array(0..<300) + Array(0..<300) + Array(repeating: 200..<300, count: 5).flatMap(Array.init)
        for (step, number) in order.enumerated() {
            counts.count("verified", of: try Self.app(number))
            total += 1
            guard step % 50 == 0 || step == order.count - 1 else { continue }
            let values = Self.values(counts)
            #expect(values.count <= VerdictCounts.namedApps + 1)
            for (name, value) in values {
                #expect(value >= seen[name] ?? 0, "\(name)")
                seen[name] = value
            }
        }
        let named = Self.values(counts)
        for number in 200..<300 { #expect(named["app.\(number) verified"] != nil, "\(number)") }
        // Every request is counted exactly once.
        #expect(seen.values.reduce(0, +) == Double(total))
    }

    @Test func `a request that names no app of its credential counts as other`() {
        let counts = VerdictCounts()
        counts.count("INVALID_REQUEST", of: nil)
        #expect(Self.values(counts) == ["other INVALID_REQUEST": 1, "other verified": 0])
    }

    @Test func `an app has all its series as soon as it is counted once`() async throws {
        try await TestServer.with { server in
            let device = try await TestDevice.register(at: server)
            let credential = try await server.credential(.service, apps: [TestServer.appID])
            let bearer = [("Authorization", "Bearer \(credential)")]
            _ = try await server.post(.verify, device.question(at: server.clock.now), bearer)
            let series = try await Self.scrape(server).series
            for verdict in ["NONCE_REPLAY", "INVALID_SIGNATURE", "DEVICE_REVOKED"] {
                let name = "synheart_verdicts_total{app=\"\(TestServer.appID)\",verdict=\"\(verdict)\"}"
                #expect(series[name] == 0, "\(verdict)")
            }
            // A request that names an app outside the credential's apps has no verdict, and no app in the metrics.
            _ = try await server.post(
                .verify,
                device.question(at: server.clock.now) { headers in
                    headers = headers.map { $0.0 == HeaderName.appID ? ($0.0, "com.example.stranger") : $0 }
                }, bearer)
            #expect(try await !Self.scrape(server).series.keys.contains { $0.contains("stranger") })
        }
    }
}
