import AuthContract
import AuthService
import Bytes
import StoreConformance
import StrictJSON
import Testing

@testable import AuthServer

/// Two operators who change one app record do not overwrite each other.
@Suite struct EntityTagTests {
    private static let path = "/apps/\(TestServer.appID)"

    private static func record(named name: String) -> JSONValue {
        var record = TestServer.record
        record["name"] = .string(name)
        return .object(record)
    }

    @Test func `every answer with a record has its version`() async throws {
        try await TestServer.with { server in
            let admin = try await server.credential(.admin)
            let read = try #require(try await server.administer("GET", Self.path, admin).value("ETag"))
            #expect(read.hasPrefix("\"") && read.hasSuffix("\"") && read.count > 20)
            #expect(try await server.administer("GET", Self.path, admin).value("ETag") == read)
            let changed = try await server.administer("PUT", Self.path, admin, body: Self.record(named: "b"))
            let tag = try #require(changed.value("ETag"))
            #expect(tag != read)
            #expect(try await server.administer("GET", Self.path, admin).value("ETag") == tag)
            var other = TestServer.record
            other["app_id"] = "com.example.other"
            let added = try await server.administer("POST", "/apps", admin, body: .object(other))
            #expect(added.value("ETag") != nil)
        }
    }

    @Test func `a changed secret changes the version, although it is masked`() throws {
        func record(_ secret: String) throws -> AppRecord {
            var record = TestServer.record
            record["android"] = [
                "packages": ["com.example.app"],
                "certificate_digests": [.string(Base64.url.encode([UInt8](repeating: 1, count: 32)))],
                "play_integrity": [
                    "service_account": [
                        "client_email": "a@example.com", "private_key": .string(secret),
                        "token_uri": "https://example.com",
                    ]
                ],
            ]
            return try AppRecord(JSONFields(.object(record)))
        }
        #expect(try EntityTag(record("a")) != EntityTag(record("b")))
        #expect(try EntityTag(record("a")) == EntityTag(record("a")))
    }

    @Test(arguments: ["PUT", "DELETE"])
    func `a change with an older version is refused and changes nothing`(method: String) async throws {
        try await TestServer.with { server in
            let admin = try await server.credential(.admin)
            let read = try #require(try await server.administer("GET", Self.path, admin).value("ETag"))
            _ = try await server.administer("PUT", Self.path, admin, body: Self.record(named: "first"))
            for tag in [read, "\"\"", "W/\"x\"", "\"a\", \"b\""] {
                let late = try await server.administer(
                    method, Self.path, admin, [("If-Match", tag)],
                    body: method == "PUT" ? Self.record(named: "late") : nil)
                #expect(late.status == 412 && late.code == "PRECONDITION_FAILED", "\(late.text)")
            }
            #expect(try await server.administer("GET", Self.path, admin).json["name"]?.string == "first")
        }
    }

    @Test func `a change with the present version is made`() async throws {
        try await TestServer.with { server in
            let admin = try await server.credential(.admin)
            let read = try #require(try await server.administer("GET", Self.path, admin).value("ETag"))
            for tag in ["\"other\", \(read)", "*"] {
                let changed = try await server.administer(
                    "PUT", Self.path, admin, [("If-Match", tag)], body: Self.record(named: tag))
                #expect(changed.status == 200, "\(changed.text)")
            }
            let current = try #require(try await server.administer("GET", Self.path, admin).value("ETag"))
            let removed = try await server.administer("DELETE", Self.path, admin, [("If-Match", current)])
            #expect(removed.status == 204)
        }
    }

    @Test(arguments: ["abc", "\"a", "", "*, \"a\"", "\"a\"b\""])
    func `a malformed If-Match is refused`(text: String) async throws {
        try await TestServer.with { server in
            let admin = try await server.credential(.admin)
            let response = try await server.administer(
                "PUT", Self.path, admin, [("If-Match", text)], body: Self.record(named: "x"))
            #expect(response.status == 400, "\(response.text)")
        }
    }

    /// A store that runs a second change of the record right after the first change has read the record.
    private struct Interfering: AppStore {
        let store: any AppStore
        let armed: Locked<Int>
        let interfere: @Sendable () async throws -> Void

        func app(_ id: AppID) async throws(StoreError) -> StoredApp? {
            let app = try await store.app(id)
            let isDue = armed.withLock { left in
                left -= 1
                return left == 0
            }
            if isDue { try? await interfere() }
            return app
        }

        func apps() async throws(StoreError) -> [StoredApp] { try await store.apps() }

        func insert(_ app: StoredApp, recording event: AuditEvent) async throws(StoreError) -> Bool {
            try await store.insert(app, recording: event)
        }

        func save(_ change: AppChange) async throws(StoreError) -> AppSaveOutcome { try await store.save(change) }
    }

    /// - Parameter read: the number of the read, 1 or 2, after which the other change happens.
    @Test(arguments: [1, 2], [true, false])
    func `of two simultaneous changes one is refused`(read: Int, isConditional: Bool) async throws {
        let armed = Locked(0)
        let service = Locked<AuthService?>(nil)
        try await TestServer.with(changing: { stores in
            stores.apps = Interfering(store: stores.apps, armed: armed) {
                guard let service = service.withLock({ $0 }) else { return }
                let fields = try JSONFields(Self.record(named: "between"))
                _ = try await service.apps.change(try AppRecord(fields), actor: "other")
            }
        }) { server in
            service.withLock { $0 = server.service }
            let admin = try await server.credential(.admin)
            let tag = try #require(try await server.administer("GET", Self.path, admin).value("ETag"))
            armed.withLock { $0 = read }
            let response = try await server.administer(
                "PUT", Self.path, admin, isConditional ? [("If-Match", tag)] : [], body: Self.record(named: "mine"))
            #expect(response.code == (isConditional ? "PRECONDITION_FAILED" : "CONFLICT"), "\(response.text)")
            let now = try await server.administer("GET", Self.path, admin)
            #expect(now.json["name"]?.string == "between")
        }
    }
}
