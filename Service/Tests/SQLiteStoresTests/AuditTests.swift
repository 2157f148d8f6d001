import AuthService
import GRDB
import StrictJSON
import Testing

@testable import SQLiteStores

struct AuditTests {
    private let folder: TemporaryFolder
    private let stores: SQLiteStores

    init() async throws {
        folder = try TemporaryFolder()
        stores = try SQLiteStores.open(folder)
        for _ in 0..<20 { try await stores.audit.append(sampleEvent()) }
    }

    private func tamper(_ sql: String, triggers: Bool = false) throws {
        let queue = try DatabaseQueue(path: folder.database)
        try queue.write { database in
            if !triggers {
                for name in ["audit_is_not_changed", "audit_is_not_shortened", "audit_has_no_gaps"] {
                    try database.execute(sql: "DROP TRIGGER \(name)")
                }
            }
            try database.execute(sql: sql)
        }
        try queue.close()
    }

    @Test func `an untouched log has no broken link`() async throws {
        #expect(try await stores.audit.firstBrokenLink() == nil)
    }

    @Test(arguments: [
        "UPDATE audit SET actor = 'nobody' WHERE sequence = 3", "DELETE FROM audit WHERE sequence = 3",
        "INSERT OR REPLACE INTO audit SELECT * FROM audit WHERE sequence = 3",
        """
        INSERT INTO audit (sequence, code, at, actor, detail, hash) VALUES (99, 'app.added', 1, 'nobody', '{}', x'00')
        """,
    ])
    func `the database itself refuses to change the log`(_ sql: String) throws {
        #expect(throws: DatabaseError.self) { try tamper(sql, triggers: true) }
    }

    @Test(arguments: [
        "UPDATE audit SET actor = 'nobody' WHERE sequence = 7", "UPDATE audit SET at = at + 1 WHERE sequence = 7",
        "UPDATE audit SET code = 'app.added' WHERE sequence = 7", "UPDATE audit SET detail = '{ }' WHERE sequence = 7",
        "UPDATE audit SET app_id = '' WHERE sequence = 7", "UPDATE audit SET hash = zeroblob(32) WHERE sequence = 7",
        "UPDATE audit SET hash = x'' WHERE sequence = 7", "DELETE FROM audit WHERE sequence = 7",
        "UPDATE audit SET sequence = 700 WHERE sequence = 7",
    ])
    func `any change or gap is found at its place`(_ sql: String) async throws {
        try tamper(sql)
        #expect(try await stores.audit.firstBrokenLink() == 7)
    }

    @Test(
        arguments: [
            ("code = 'device.sold'", []), ("code = ''", []), ("app_id = ''", ["app_id"]),
            ("device_id = 'x'", ["device_id"]), ("detail = '{'", ["detail"]),
            ("app_id = '', detail = '1'", ["app_id", "detail"]),
        ] as [(String, [String])])
    func `an event of a newer version, or a damaged one, does not hide the others`(
        _ change: String, _ unreadable: [String]
    ) async throws {
        try tamper("UPDATE audit SET \(change) WHERE sequence = 7")
        let events = try await stores.audit.events(app: nil, device: nil, before: nil, limit: 100)
        #expect(events.map(\.sequence) == (1...20).reversed())
        let event = events[13].event
        #expect((event.code == nil) == unreadable.isEmpty)
        #expect(event.detail["unreadable"] == (unreadable.isEmpty ? nil : .array(unreadable.map { .string($0) })))
        #expect(event.actor == "test" && event.appID == nil && event.deviceID == nil)
        #expect(try await stores.audit.events(app: nil, device: nil, after: 0, limit: 100) == events.reversed())
    }

    @Test func `a log whose beginning was cut off is broken from the first event on`() async throws {
        try tamper("DELETE FROM audit WHERE sequence < 5")
        #expect(try await stores.audit.firstBrokenLink() == 1)
    }

    @Test func `a page has at least one event and at most a thousand`() async throws {
        try await stores.database.write { database in
            for _ in 0..<1000 { try database.append(sampleEvent()) }
        }
        for (limit, count) in [(-1, 1), (0, 1), (1, 1), (19, 19), (1000, 1000), (1001, 1000), (.max, 1000)] {
            let page = try await stores.audit.events(app: nil, device: nil, before: nil, limit: limit)
            #expect(page.map(\.sequence) == (0..<Int64(count)).map { 1020 - $0 })
        }
    }

    @Test(arguments: [
        (
            """
            '{"a":"' || substr(hex(zeroblob(524288)), 1, 1048568) || '"}'
            """, true
        ),
        (
            """
            '{"a":"' || substr(hex(zeroblob(524288)), 1, 1048569) || '"}'
            """, false
        ),
        ("'{\"a\":\(String(repeating: "[", count: 63))\(String(repeating: "]", count: 63))}'", true),
        ("'{\"a\":\(String(repeating: "[", count: 64))\(String(repeating: "]", count: 64))}'", false),
    ])
    func `a stored text of more than a mebibyte, or deeper than 64, is unreadable`(
        _ detail: String, _ isRead: Bool
    ) async throws {
        try tamper("UPDATE audit SET detail = \(detail) WHERE sequence = 7")
        let event = try await stores.audit.events(app: nil, device: nil, before: 8, limit: 1).first?.event
        #expect((event?.detail["unreadable"] == ["detail"]) == !isRead)
    }

    @Test func `a log whose numbers are used up takes no event`() async throws {
        try tamper("UPDATE audit SET sequence = \(Int64.max) WHERE sequence = 20")
        let error = await #expect(throws: StoreError.self) { try await stores.audit.append(sampleEvent()) }
        #expect(error?.code == .unreadable)
        #expect(try await stores.audit.link(at: nil)?.sequence == .max)
    }

    @Test func `a long log is followed to its end`() async throws {
        try await stores.database.write { database in
            for _ in 0..<4500 { try database.append(sampleEvent()) }
        }
        #expect(try await stores.audit.firstBrokenLink() == nil)
        try tamper("UPDATE audit SET at = at + 1 WHERE sequence = 4400")
        #expect(try await stores.audit.firstBrokenLink() == 4400)
    }
}
