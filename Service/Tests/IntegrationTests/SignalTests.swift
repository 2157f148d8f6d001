import Foundation
import StrictJSON
import Testing

/// How a running service reacts to signals.
@Suite struct Signals {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private static let challenge = WireRequest(
        method: "POST", target: "/auth/v1/device/challenge",
        body: Array("{\"app_id\":\"\(DevelopmentDevice.appID)\"}".utf8))

    private func get(_ target: String, _ service: RunningService) async -> WireResponse? {
        await WireConnection.exchange(port: service.operationsPort, WireRequest(method: "GET", target: target))
    }

    /// Polls until the condition holds, for at most 20 seconds.
    private func eventually(_ holds: () async -> Bool) async -> Bool {
        let deadline = ContinuousClock.now + .seconds(20)
        while ContinuousClock.now < deadline {
            if await holds() { return true }
        }
        return false
    }

    @Test(arguments: [SIGHUP, SIGUSR1, SIGUSR2, SIGPIPE])
    func `a signal that does not mean stop does not stop the service`(number: Int32) async throws {
        let fixture = try await ServiceFixture(database: folder.path("db.sqlite"))
        let service = try await fixture.start()
        for _ in 0..<3 { service.signal(number) }
        #expect(await get("/healthz", service)?.status == 200)
        #expect(await get("/healthz", service)?.status == 200)
        #expect(service.stop() == 0)
    }

    @Test func `SIGHUP applies what it can, and names what needs a restart`() async throws {
        let (file, log) = (folder.path("service.yaml"), folder.path("log"))
        func configure(_ yaml: String) throws { try Data(yaml.utf8).write(to: URL(fileURLWithPath: file)) }
        try configure("log_level: error\n")
        try Data().write(to: URL(fileURLWithPath: log))
        let errors = try FileHandle(forWritingTo: URL(fileURLWithPath: log))
        let fixture = try await ServiceFixture(database: folder.path("db.sqlite"))
        // Not `fixture.start`: its environment variables would override the file.
        let service = try await RunningService(
            stores: fixture.stores, arguments: ["--config", file], errors: errors)
        func logged() -> String { (try? String(contentsOfFile: log, encoding: .utf8)) ?? "" }
        // The enrolment limit, which the test lowers, does not count requests to this route.
        let large = WireRequest(
            method: "POST", target: "/auth/v1/token",
            body: Array(String(repeating: " ", count: 5000).utf8))
        #expect(await WireConnection.exchange(port: service.port, large)?.status == 400)

        try configure(
            """
            log_level: info
            limits: {device_body_bytes: 4096}
            protection: {enrolment_burst: 5, enrolment_per_minute: 1}
            providers: {revocations_maximum_age_seconds: 3600}
            operations: {hosts: [elsewhere]}
            """)
        service.signal(SIGHUP)
        #expect(await eventually { logged().contains("the configuration was read again") }, "\(logged())")
        #expect(
            logged().contains(
                "\"applied\":\"limits.device_body_bytes, protection.enrolment_burst, protection.enrolment_per_minute, providers.revocations_maximum_age_seconds, log_level\",\"needs_restart\":\"operations.hosts\""
            ), "\(logged())")
        #expect(await WireConnection.exchange(port: service.port, large)?.status == 413)
        var statuses: [Int?] = []
        for _ in 0..<8 { statuses.append(await WireConnection.exchange(port: service.port, Self.challenge)?.status) }
        #expect(statuses.contains(200) && statuses.last == 429, "\(statuses)")

        for bad in [
            "log_level: loud", "limits: {device_body_bytes: 1}", "x: 1",
            "server: {tls_certificate: nope, tls_key: nope}",
        ] {
            let before = logged().utf8.count
            try configure(bad)
            service.signal(SIGHUP)
            #expect(
                await eventually { logged().dropFirst(before).contains("nothing changed") }, "\(bad) \(logged())")
        }
        // No value of a refused configuration is in effect: without `limits`, it would set the limit back to its default.
        #expect(await WireConnection.exchange(port: service.port, large)?.status == 413)
        // A setting that needs a restart is reported until it is reverted: each reload is compared with the start, not with the
        // last reload.
        let limits = "log_level: info\nlimits: {device_body_bytes: 4096}\n"
        for (hosts, named) in [("operations: {hosts: [elsewhere]}", "operations.hosts"), ("", "nothing")] {
            let before = logged().utf8.count
            try configure(limits + hosts)
            service.signal(SIGHUP)
            #expect(
                await eventually { logged().dropFirst(before).contains("\"needs_restart\":\"\(named)\"") },
                "\(logged())")
        }
        #expect(!logged().contains("Cocoa"))
        #expect(service.stop() == 0)
    }

    @Test func `SIGHUP changes nothing if the configuration came from a pipe`() async throws {
        let (pipe, log) = (folder.path("service.yaml"), folder.path("log"))
        try #require(mkfifo(pipe, 0o600) == 0)
        try Data().write(to: URL(fileURLWithPath: log))
        let errors = try FileHandle(forWritingTo: URL(fileURLWithPath: log))
        let fixture = try await ServiceFixture(database: folder.path("db.sqlite"))
        Thread.detachNewThread {
            try? Data("log_level: error\nlimits: {device_body_bytes: 4096}".utf8).write(to: URL(fileURLWithPath: pipe))
        }
        let service = try await RunningService(
            stores: fixture.stores, arguments: ["--config", pipe], errors: errors)
        // A second read of the pipe would return an empty configuration.
        Thread.detachNewThread { try? Data().write(to: URL(fileURLWithPath: pipe)) }
        service.signal(SIGHUP)
        func logged() -> String { (try? String(contentsOfFile: log, encoding: .utf8)) ?? "" }
        #expect(await eventually { logged().contains("is no regular file") }, "\(logged())")
        let large = WireRequest(
            method: "POST", target: "/auth/v1/token", body: Array(String(repeating: " ", count: 5000).utf8))
        #expect(await WireConnection.exchange(port: service.port, large)?.status == 413)
        #expect(service.stop() == 0)
    }

    @Test func `the ready line names the metrics listener last, and a stop answers its probes until the end`()
        async throws
    {
        let fixture = try await ServiceFixture(database: folder.path("db.sqlite"))
        let service = try await fixture.start(environment: [
            "SYNHEART_AUTH_METRICS_PORT": "0", "SYNHEART_AUTH_DRAIN_SECONDS": "600",
        ])
        let port = try #require(service.metricsURL?.split(separator: ":").last.flatMap { Int($0) })
        func ready() async -> Int? {
            await WireConnection.exchange(port: port, WireRequest(method: "GET", target: "/readyz"))?.status
        }
        #expect(await ready() == 200)
        service.signal(SIGTERM)
        #expect(await eventually { await ready() == 503 })
        service.signal(SIGTERM)
        #expect(await service.exitCode() == 1)
    }

    @Test func `SIGHUP loads another certificate`() async throws {
        let (first, second) = (try TemporaryFolder(), try TemporaryFolder())
        let file = folder.path("service.yaml")
        func serve(_ files: (certificate: String, key: String)) throws {
            let yaml = "server: {tls_certificate: \(files.certificate), tls_key: \(files.key)}"
            try Data(yaml.utf8).write(to: URL(fileURLWithPath: file))
        }
        let (before, after) = (try SelfSigned.write(in: first, days: 1), try SelfSigned.write(in: second, days: 1))
        try serve(before)
        let fixture = try await ServiceFixture(database: folder.path("db.sqlite"))
        let service = try await fixture.start(arguments: ["--config", file])
        func trusts(_ certificate: String) async -> Bool {
            let result = try? await Binary.run(
                [
                    "curl", "-sf", "-m", "10", "--cacert", certificate,
                    "https://localhost:\(service.port)/auth/v1/.well-known/jwks.json",
                ], of: URL(fileURLWithPath: "/usr/bin/env"))
            return result?.status == 0
        }
        #expect(await trusts(before.certificate))
        #expect(await !trusts(after.certificate))
        try serve(after)
        service.signal(SIGHUP)
        #expect(await eventually { await trusts(after.certificate) })
        #expect(service.stop() == 0)
    }

    @Test func `a service that stops is not ready, and a second signal stops it at once`() async throws {
        let fixture = try await ServiceFixture(database: folder.path("db.sqlite"))
        let service = try await fixture.start(environment: [
            "SYNHEART_AUTH_SHUTDOWN_SECONDS": "600", "SYNHEART_AUTH_LIMITS_BODY_SECONDS": "600",
        ])
        #expect(await get("/readyz", service)?.status == 200)
        let slow = try #require(WireConnection(port: service.port))
        let head = Self.challenge.bytes.dropLast(Self.challenge.body.count)
        // The body is never sent. The interim answer shows that the service handles the request.
        await slow.send(
            Array(String(decoding: head.dropLast(2), as: UTF8.self).utf8) + Array("Expect: 100-continue\r\n\r\n".utf8))
        #expect(await slow.answer()?.status == 100)

        service.signal(SIGTERM)
        var last: WireResponse?
        #expect(
            await eventually {
                last = await get("/readyz", service)
                return last?.status == 503
            })
        #expect(last?.json["failures"]?.object?["accepting"] != nil, "\(last?.text ?? "")")
        #expect(await get("/healthz", service)?.status == 200)
        service.signal(SIGTERM)
        #expect(await service.exitCode(within: .seconds(10)) == 1)
    }

    @Test func `a stopping service answers every request until its drain ends, and exits with 0`() async throws {
        let fixture = try await ServiceFixture(database: folder.path("db.sqlite"))
        // The drain is longer than the following requests take.
        let service = try await fixture.start(environment: ["SYNHEART_AUTH_DRAIN_SECONDS": "5"])
        let pooled = try #require(WireConnection(port: service.port))
        #expect(await pooled.exchange([Self.challenge]).first?.value("Connection") == nil)
        service.signal(SIGTERM)
        #expect(await eventually { await get("/readyz", service)?.status == 503 })
        let last = await pooled.exchange([Self.challenge]).first
        #expect(last?.status == 200 && last?.value("Connection") == "close")
        for _ in 0..<20 {
            let answer = await WireConnection.exchange(port: service.port, Self.challenge)
            #expect(answer?.status == 200 && answer?.value("Connection") == "close")
        }
        #expect(await service.exitCode() == 0)
    }

    @Test func `a second signal ends a drain at once`() async throws {
        let fixture = try await ServiceFixture(database: folder.path("db.sqlite"))
        // Behind trusted proxies there is a drain even without a setting.
        for environment in [["SYNHEART_AUTH_DRAIN_SECONDS": "600"], ["SYNHEART_AUTH_TRUSTED_PROXIES": "127.0.0.1"]] {
            let service = try await fixture.start(environment: environment)
            service.signal(SIGTERM)
            #expect(await eventually { await get("/readyz", service)?.status == 503 })
            service.signal(SIGTERM)
            #expect(await service.exitCode() == 1)
        }
    }
}
