import AuthContract
import AuthService
import ServiceTestHelpers
import StrictJSON
import Testing

@testable import PostgreSQLStores

extension AgainstPostgreSQL {
    @Suite
    struct AuditTests {
        @Test func `eight writers on each of two nodes continue one chain`() async throws {
            let url = try await PostgreSQLServer.shared().database()
            let nodes = [try await open(url), try await open(url)]
            try await withThrowingDiscardingTaskGroup { group in
                for node in nodes {
                    for writer in 0..<8 {
                        group.addTask {
                            for _ in 0..<10 { try await node.add(try sampleDevice("com.example.\(writer)")) }
                        }
                    }
                }
            }
            for node in nodes { #expect(try await node.audit.firstBrokenLink() == nil) }
            let events = try await nodes[1].audit.events(app: nil, device: nil, before: nil, limit: 1000)
            #expect(events.count == 168)
            #expect(events.map(\.sequence) == Array(1...168).reversed())
            for node in nodes { await node.close() }
        }

        @Test func `an event that waits for the chain is in the log of the next reader`() async throws {
            let server = try await PostgreSQLServer.shared()
            let url = try server.database()
            let node = try await open(url)
            // Simulates a node that ended right after its commit: the event is stored, but not yet in the chain.
            try server.sql(
                "INSERT INTO audit_waiting (code, at, actor, detail) VALUES ('security.event', 1, 'é 🔑', '{}')", in: url
            )
            let link = try await node.audit.link(at: nil)
            let entry = AuditChain.Entry(
                sequence: 1, code: "security.event", at: 1, actor: "é 🔑", appID: nil, deviceID: nil, detail: "{}")
            #expect(link == AuditLink(sequence: 1, hash: AuditChain.hash(entry, after: AuditChain.origin)))
            #expect(try await node.audit.firstBrokenLink() == nil)
            await node.close()
        }

        @Test(arguments: [
            "UPDATE audit SET actor = 'other' WHERE sequence = 5", "DELETE FROM audit WHERE sequence = 5",
            "TRUNCATE audit",
        ])
        func `the log refuses changes`(_ statement: String) async throws {
            let server = try await PostgreSQLServer.shared()
            let url = try server.database()
            let node = try await open(url)
            for _ in 0..<9 { try await node.audit.append(sampleEvent()) }
            _ = try await node.audit.link(at: nil)
            #expect(throws: PostgreSQLServer.Unusable.self) { try server.sql(statement, in: url) }
            #expect(try await node.audit.firstBrokenLink() == nil)
            await node.close()
        }

        @Test(arguments: [
            "UPDATE audit SET actor = 'other' WHERE sequence = 5", "UPDATE audit SET detail = '{ }' WHERE sequence = 5",
            "UPDATE audit SET app_id = '' WHERE sequence = 5", "DELETE FROM audit WHERE sequence = 5",
            "UPDATE audit SET hash = '' WHERE sequence = 5",
        ])
        func `a change that goes around the triggers is found`(_ statement: String) async throws {
            let server = try await PostgreSQLServer.shared()
            let url = try server.database()
            let node = try await open(url)
            for _ in 0..<9 { try await node.audit.append(sampleEvent()) }
            _ = try await node.audit.link(at: nil)
            try server.sql("ALTER TABLE audit DISABLE TRIGGER USER; \(statement)", in: url)
            #expect(try await node.audit.firstBrokenLink() == 5)
            await node.close()
        }

        @Test(
            arguments: [
                ("code = 'device.sold'", []), ("app_id = '', detail = '{'", ["app_id", "detail"]),
            ] as [(String, [String])])
        func `an event of a newer version, or a damaged one, does not hide the others`(
            _ change: String, _ unreadable: [String]
        ) async throws {
            let server = try await PostgreSQLServer.shared()
            let url = try server.database()
            let node = try await open(url)
            for _ in 0..<9 { try await node.audit.append(sampleEvent()) }
            _ = try await node.audit.link(at: nil)
            try server.sql(
                "ALTER TABLE audit DISABLE TRIGGER USER; UPDATE audit SET \(change) WHERE sequence = 5", in: url)
            let events = try await node.audit.events(app: nil, device: nil, after: 0, limit: 100)
            #expect(events.map(\.sequence) == Array(1...9))
            #expect((events[4].event.code == nil) == unreadable.isEmpty)
            #expect(
                events[4].event.detail["unreadable"]
                    == (unreadable.isEmpty ? nil : .array(unreadable.map { .string($0) })))
            await node.close()
        }
    }
}
