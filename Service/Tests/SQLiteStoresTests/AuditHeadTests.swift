import AuthContract
import AuthService
import GRDB
import Testing

@testable import SQLiteStores

/// Signed heads detect what the chain alone cannot: a truncated log, and a log that was rewritten from the start.
struct AuditHeadTests {
    private let folder: TemporaryFolder
    private let stores: SQLiteStores
    private let trail: AuditTrail

    init() async throws {
        folder = try TemporaryFolder()
        stores = try SQLiteStores.open(folder)
        trail = try Self.trail(over: stores)
        for _ in 0..<20 { try await stores.audit.append(sampleEvent()) }
    }

    private static func trail(over stores: SQLiteStores, key byte: UInt8 = 7) throws -> AuditTrail {
        let key = try #require(ServiceKey([UInt8](repeating: byte, count: 32)))
        return AuthService(stores: stores.all, key: key, clock: FixedClock()).auditTrail
    }

    private func tamper(_ change: (Database) throws -> Void) throws {
        let queue = try DatabaseQueue(path: folder.database)
        try queue.write { database in
            for name in ["audit_is_not_changed", "audit_is_not_shortened", "audit_has_no_gaps"] {
                try database.execute(sql: "DROP TRIGGER \(name)")
            }
            try change(database)
        }
        try queue.close()
    }

    @Test func `a log that grew still contains its heads`() async throws {
        let heads = [try await trail.head()]
        try await stores.audit.append(sampleEvent())
        for head in heads + [try await trail.head()] {
            #expect(try await trail.verify(against: AuditHead(head.description)) == .intact)
        }
        #expect(heads[0].sequence == 20)
    }

    @Test func `an empty log has a head, and every log contains it`() async throws {
        let other = try TemporaryFolder()
        let empty = try SQLiteStores.open(other)
        let head = try await Self.trail(over: empty).head()
        #expect(head.sequence == 0)
        #expect(try await trail.verify(against: head) == .intact)
        await empty.close()
    }

    @Test func `a head finds a cut tail, which the chain does not show`() async throws {
        let head = try await trail.head()
        try tamper { try $0.execute(sql: "DELETE FROM audit WHERE sequence > 15") }
        #expect(try await trail.verify() == .intact)
        #expect(try await trail.verify(against: head) == .cut(last: 15))
    }

    @Test func `a head finds an emptied log`() async throws {
        let head = try await trail.head()
        try tamper { try $0.execute(sql: "DELETE FROM audit") }
        #expect(try await trail.verify() == .intact)
        #expect(try await trail.verify(against: head) == .cut(last: 0))
    }

    @Test func `a head finds a rewritten chain`() async throws {
        let head = try await trail.head()
        try tamper { database in
            try database.execute(sql: "DELETE FROM audit WHERE sequence > 10")
            for _ in 0..<20 { try database.append(sampleEvent(.appRemoved)) }
        }
        #expect(try await trail.verify() == .intact)
        #expect(try await trail.verify(against: head) == .rewritten)
    }

    @Test func `a change is found with and without a head`() async throws {
        let head = try await trail.head()
        try tamper { try $0.execute(sql: "UPDATE audit SET actor = 'nobody' WHERE sequence = 7") }
        #expect(try await trail.verify() == .brokenLink(7))
        #expect(try await trail.verify(against: head) == .brokenLink(7))
    }

    @Test func `a head of another service or a changed head is refused`() async throws {
        let foreign = try await Self.trail(over: stores, key: 8).head()
        #expect(try await trail.verify(against: foreign) == .headOfOtherKey)
        let head = try await trail.head().description
        let parts = head.split(separator: ".").map(String.init)
        for (part, value) in [(1, "19"), (2, "1"), (3, Base64.url.encode([UInt8](repeating: 0, count: 32)))] {
            var changed = parts
            changed[part] = value
            let text = changed.joined(separator: ".")
            #expect(try await trail.verify(against: AuditHead(text)) == .headOfOtherKey, "\(text)")
        }
    }

    @Test func `a head has only one valid form`() async throws {
        let head = try await trail.head().description
        #expect(try AuditHead(head).description == head)
        let parts = head.split(separator: ".").map(String.init)
        var wrong = ["", "x", head + ".", head + "=", " " + head, String(head.dropLast(4)), head + "\n"]
        for (part, value) in [
            (0, "audit-head-v2"), (1, "020"), (1, "+20"), (1, "-1"), (1, "x"), (2, ""), (3, "AAAA"), (4, "AAAA"),
        ] {
            var changed = parts
            changed[part] = value
            wrong.append(changed.joined(separator: "."))
        }
        for text in wrong { #expect(throws: ContractError.self, "\(text)") { try AuditHead(text) } }
    }
}
