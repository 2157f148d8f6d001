import AuthContract
import AuthService
import StrictJSON
import Testing

@testable import AuthServer

/// Records and signing keys that cannot be read: a node that can read others stays ready, and names the unreadable
/// ones.
@Suite struct UnreadableRecordTests {
    private static let damaged = "com.example.damaged"

    private static func damage(_ server: TestServer, _ app: String = damaged) async throws {
        let event = AuditEvent(.appAdded, at: server.clock.now, actor: "test", appID: try AppID(app))
        try #require(
            try await server.all.apps.insert(
                StoredApp(appID: AppID(app), sealedJSON: #"{"record":{},"sealed":"AAAA"}"#), recording: event))
    }

    @Test func `a node with one unreadable record is ready and degraded, and names the app`() async throws {
        try await TestServer.with { server in
            try await Self.damage(server)
            let answer = try await server.operations("/readyz")
            #expect(answer.status == 200, "\(answer.text)")
            #expect(answer.text.contains("records that cannot be read: \(Self.damaged)"), "\(answer.text)")
        }
    }

    @Test func `a node that can read no record is not ready`() async throws {
        try await TestServer.with { server in
            let (id, key) = (try AppID(TestServer.appID), try #require(ServiceKey([UInt8](repeating: 8, count: 32))))
            let other = AuthService(stores: server.all, key: key, providers: NoProviders(), clock: server.clock)
            let findings = await Readiness(service: other, stores: server.all).findings()
            #expect(try await server.service.apps.record(id) != nil)
            for name in ["apps", "service_key"] {
                #expect(findings.first { $0.name == name }?.failure?.contains("another service key") == true)
            }
        }
    }

    @Test func `a damaged signing key affects only its own tokens, and can be revoked`() async throws {
        try await TestServer.with { server in
            _ = try await server.service.signingKeys.keySet()
            let keys = try await server.all.signingKeys.signingKeys()
            let damaged = StoredSigningKey(id: "damaged", sealedKey: [0], createdAt: server.clock.now, signsFrom: nil)
            let change = SigningKeyChange(
                from: keys, to: keys + [damaged], at: server.clock.now, recording: nil)
            try #require(try await server.all.signingKeys.save(change))
            // The keys are cached for 5 s.
            server.clock.advance(6)
            let answer = try await server.operations("/readyz")
            #expect(answer.status == 200 && answer.text.contains(damaged.id), "\(answer.text)")
            #expect(try await server.service.signingKeys.keySet()["keys"]?.array?.count == keys.count)
            #expect(try await server.service.signingKeys.revoke(damaged.id, actor: "test"))
            #expect(try await server.service.signingKeys.unreadable().isEmpty)
        }
    }

    @Test func `lists have the other apps, and name the unreadable one to its own callers alone`() async throws {
        try await TestServer.with { server in
            try await Self.damage(server)
            for (apps, names) in [([], [Self.damaged]), ([TestServer.appID], nil)] as [([String], [String]?)] {
                let viewer = try await server.credential(.viewer, apps: apps)
                let list = try await server.administer("GET", "/apps", viewer)
                #expect(list.status == 200, "\(list.text)")
                #expect(list.json["apps"]?.array?.compactMap { $0.object?["app_id"]?.string } == [TestServer.appID])
                #expect(list.json["unreadable"]?.array?.compactMap(\.string) == names)
                let statistics = try await server.administer("GET", "/statistics", viewer)
                #expect(statistics.json["apps"]?.array?.count == 1, "\(statistics.text)")
            }
        }
    }
}
