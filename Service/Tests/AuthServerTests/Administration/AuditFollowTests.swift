import AuthContract
import AuthService
import StoreConformance
import StrictJSON
import Testing

@testable import AuthServer

/// Callers follow the audit log: `GET /admin/v1/audit/follow`.
@Suite struct AuditFollowTests {
    private static func event(
        _ app: String = TestServer.appID, _ device: String? = nil, at server: TestServer
    ) throws -> AuditEvent {
        AuditEvent(
            .securityEvent, at: server.clock.now, actor: "test", appID: try AppID(app),
            deviceID: try device.map { try DeviceID($0) })
    }

    private static func sequences(_ answer: RawResponse) -> [Int64] {
        (answer.json["events"]?.array ?? []).compactMap { $0.object?["sequence"]?.integer }
    }

    @Test func `a caller that waits gets the next event, and goes on after it`() async throws {
        try await TestServer.with { server in
            let viewer = try await server.credential(.viewer)
            let first = try await server.administer("GET", "/audit/follow", viewer)
            let end = try #require(first.json["next_after"]?.integer)
            #expect(Self.sequences(first) == [] && end > 0)
            async let waiting = server.administer("GET", "/audit/follow?after=\(end)&wait_seconds=25", viewer)
            try await server.stores.append(Self.event(at: server))
            let answer = try await waiting
            #expect(Self.sequences(answer) == [end + 1], "\(answer.text)")
            #expect(answer.json["next_after"]?.integer == end + 1)
            for _ in 0..<3 { try await server.stores.append(Self.event(at: server)) }
            let page = try await server.administer("GET", "/audit/follow?after=\(end + 1)&limit=2", viewer)
            #expect(Self.sequences(page) == [end + 2, end + 3])
            let rest = try await server.administer("GET", "/audit/follow?after=\(end + 3)&limit=2", viewer)
            #expect(Self.sequences(rest) == [end + 4])
        }
    }

    @Test func `a caller goes on after the events that its conditions leave out`() async throws {
        try await TestServer.with { server in
            try await server.addApp("com.example.other")
            let viewer = try await server.credential(.viewer, apps: [TestServer.appID])
            let device = "0b7c1b1e-5a52-4f3e-9f3a-0d5b7e2c9a11"
            let path = "/audit/follow?app_id=com.example.app"
            let end = try #require(
                try await server.administer("GET", path, viewer).json["next_after"]?.integer)
            try await server.stores.append(Self.event("com.example.other", at: server))
            try await server.stores.append(Self.event(TestServer.appID, device, at: server))
            try await server.stores.append(Self.event("com.example.other", at: server))
            let seen = try await server.administer("GET", path + "&device_id=\(device)&after=\(end)", viewer)
            #expect(Self.sequences(seen) == [end + 2])
            #expect(seen.json["next_after"]?.integer == end + 3)
            #expect(try await server.administer("GET", "/audit/follow", viewer).status == 403)
            for query in ["after=-1", "wait_seconds=26", "limit=0", "before=1"] {
                #expect(try await server.administer("GET", path + "&" + query, viewer).status == 400, "\(query)")
            }
        }
    }

    @Test func `a number that the log does not have yet is refused`() async throws {
        try await TestServer.with { server in
            let viewer = try await server.credential(.viewer)
            let answer = try await server.administer("GET", "/audit/follow?after=1000&wait_seconds=25", viewer)
            #expect(answer.status == 409 && answer.code == "CONFLICT", "\(answer.text)")
        }
    }

    @Test func `a number before the log's first event is refused, and 0 stands for that event`() async throws {
        try await TestServer.with { server in
            let admin = try await server.credential(.admin)
            let added = try await server.administer(
                "POST", "/webhooks", admin, body: ["url": "https://hooks.example.com/", "all_apps": true])
            let resend = "/webhooks/\(try #require(added.json["id"]?.string))/resend"
            for _ in 0..<3 { try await server.stores.append(Self.event(at: server)) }
            let archived = try #require(try await server.stores.link(at: nil))
            try await server.stores.append(Self.event(at: server))
            let archive = StoredAuditArchive(
                first: 1, last: archived.sequence, hash: archived.hash, seal: "seal")
            #expect(try await server.stores.add(archive))
            while try await server.stores.removeArchivedEvents(limit: 1000) > 0 {}
            for (after, status) in [(1, 409), (archived.sequence - 1, 409), (archived.sequence, 200), (0, 200)] {
                let followed = try await server.administer("GET", "/audit/follow?after=\(after)", admin)
                #expect(followed.status == status, "\(followed.text)")
                let resent = try await server.administer("POST", resend, admin, body: ["after": .integer(after)])
                #expect(resent.status == status, "\(resent.text)")
                guard status == 409 else { continue }
                #expect(followed.text.contains("\(archived.sequence + 1)"), "\(followed.text)")
            }
        }
    }

    @Test func `a caller whose credential is revoked while it waits gets no event`() async throws {
        try await TestServer.with { server in
            let viewer = try await server.credential(.viewer, apps: [TestServer.appID])
            let id = try #require(try await server.service.credentials.list().first).id
            async let waiting = server.administer(
                "GET", "/audit/follow?app_id=\(TestServer.appID)&wait_seconds=25", viewer)
            try await Task.sleep(for: .milliseconds(100))
            _ = try await server.service.credentials.revoke(id, actor: "test")
            try await server.stores.append(Self.event(at: server))
            let answer = try await waiting
            #expect(answer.status == 401 && Self.sequences(answer) == [], "\(answer.text)")
        }
    }

    @Test func `waiting callers are answered when the service stops`() async throws {
        let shutdown = ShutdownTrigger()
        try await TestServer.with(shutdown: shutdown) { server in
            let viewer = try await server.credential(.viewer)
            async let waiting = server.administer("GET", "/audit/follow?wait_seconds=25", viewer)
            try await Task.sleep(for: .milliseconds(100))
            await shutdown.pull()
            let answer = try await waiting
            #expect(answer.status == 200 && Self.sequences(answer) == [], "\(answer.text)")
        }
    }

    @Test func `the number of callers that wait is bounded`() {
        let followers = AuditFollowers()
        for _ in 0..<64 { #expect(followers.enter()) }
        #expect(!followers.enter())
        followers.leave()
        #expect(followers.enter())
    }
}
