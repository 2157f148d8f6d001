import Foundation
import GRDB
import StrictJSON
import Testing

/// The audit log from the command line, and changes made to its file directly.
@Suite struct AuditCommandTests {
    let folder: TemporaryFolder
    let database: String

    init() async throws {
        folder = try TemporaryFolder()
        database = folder.path("db.sqlite")
        let example = try await Binary.run(["apps", "example", "--authority", folder.path("authority.pem")])
        for _ in 0..<2 {
            _ = try await Binary.run(["apps", "add", "--file", "-", "--database", database], input: example.output)
            _ = try await Binary.run(["apps", "change", "--file", "-", "--database", database], input: example.output)
        }
    }

    private func audit(_ arguments: String...) async throws -> Binary.Result {
        try await Binary.run(["audit"] + arguments + ["--database", database])
    }

    private func tamper(_ sql: String) throws {
        let queue = try DatabaseQueue(path: database)
        try queue.write { database in
            for name in ["audit_is_not_changed", "audit_is_not_shortened", "audit_has_no_gaps"] {
                try database.execute(sql: "DROP TRIGGER \(name)")
            }
            try database.execute(sql: sql)
        }
        try queue.close()
    }

    @Test func `events are listed newest first in pages`() async throws {
        let all = try await audit("list", "--json")
        let events = try #require(try JSONValue(parsing: all.output).array)
        #expect(events.compactMap { $0.object?["sequence"]?.integer } == [3, 2, 1])
        #expect(events.last?.object?["code"]?.string == "app.added")
        #expect(events.allSatisfy { $0.object?["actor"]?.string == "cli:\(NSUserName())" })
        let older = try await audit("list", "--json", "--before", "3", "--limit", "1")
        #expect(try JSONValue(parsing: older.output).array?.first?.object?["sequence"]?.integer == 2)
    }

    @Test func `events are found by their codes`() async throws {
        func sequences(_ arguments: [String]) async throws -> [Int64] {
            let result = try await Binary.run(["audit", "list", "--json", "--database", database] + arguments)
            let events = try JSONValue(parsing: result.output).array ?? []
            return events.compactMap { $0.object?["sequence"]?.integer }
        }
        #expect(try await sequences(["--code", "app.added"]) == [1])
        #expect(try await sequences(["--code", "app.added", "--code", "app.changed"]) == [3, 2, 1])
        #expect(try await sequences(["--code", "app.changed", "--before", "3"]) == [2])
        #expect(try await sequences(["--code", "app.removed"]) == [])
        let mistyped = try await audit("list", "--code", "app.change")
        #expect(mistyped.status == 1 && mistyped.errors.contains("app.changed"), "\(mistyped)")
        #expect(try await audit("--follow", "--code", "app.added").status != 0)
    }

    private func store(version: String) throws {
        let queue = try DatabaseQueue(path: database)
        try queue.write {
            try $0.execute(sql: "UPDATE facts SET value = ? WHERE name = 'service_version'", arguments: [version])
        }
        try queue.close()
    }

    @Test func `a start that fails before the listeners accept is no start with another version`() async throws {
        let other = try await RunningService(database: folder.path("other.sqlite"))
        #expect(try await RunningService(database: database).stop() == 0)
        try store(version: "0.9.0")
        let failed = try await Binary.run([
            "serve", "--database", database, "--port", String(other.port), "--operations-port", "0",
        ])
        #expect(failed.status != 0, "\(failed)")
        #expect(other.stop() == 0)
        let found = try await audit("list", "--json", "--code", "service.version_changed")
        #expect(try JSONValue(parsing: found.output).array?.isEmpty == true, "\(found)")
    }

    @Test func `a start with another version than the last one is an event`() async throws {
        for (version, count) in [(nil, 0), ("0.9.0", 1)] as [(String?, Int)] {
            if let version { try store(version: version) }
            for _ in 0..<2 {
                let service = try await RunningService(database: database)
                #expect(service.stop() == 0)
            }
            let found = try await audit("list", "--json", "--code", "service.version_changed")
            let events = try #require(try JSONValue(parsing: found.output).array)
            #expect(events.count == count, "\(found.output)")
            guard let event = events.first?.object else { continue }
            #expect(event["actor"]?.string == "service")
            let detail = event["detail"]?.object
            let now = try await Binary.run(["--version"]).output.trimmingCharacters(in: .whitespacesAndNewlines)
            #expect(detail?["from"]?.string == version)
            #expect(detail?["to"]?.string.map { now.contains($0) } == true)
        }
    }

    @Test func `an untouched log contains its heads`() async throws {
        let head = try await audit("head").output.trimmingCharacters(in: .whitespacesAndNewlines)
        #expect(head.hasPrefix("audit-head-v1.3."))
        let verified = try await audit("verify", "--head", head)
        #expect(verified.status == 0, "\(verified.errors)")
        let described = try JSONValue(parsing: try await audit("head", "--json").output).object
        #expect(described?["sequence"]?.integer == 3)
        #expect(described?["public_key"]?.string?.count == 44)
    }

    @Test(arguments: [
        ("UPDATE audit SET actor = 'nobody' WHERE sequence = 2", "event 2 is changed"),
        ("DELETE FROM audit WHERE sequence = 2", "event 2 is changed or not there"),
        ("DELETE FROM audit WHERE sequence = 3", "ends with event 2"),
        ("DELETE FROM audit", "ends with event 0"),
    ]) func `a change of the database is found`(sql: String, sentence: String) async throws {
        let head = try await audit("head").output.trimmingCharacters(in: .whitespacesAndNewlines)
        try tamper(sql)
        let verified = try await audit("verify", "--head", head)
        #expect(verified.status == 1)
        #expect(verified.errors.contains(sentence), "\(verified.errors)")
        let json = try await audit("verify", "--head", head, "--json")
        #expect(try JSONValue(parsing: json.output).object?["intact"]?.bool == false)
    }

    @Test func `a malformed head is refused`() async throws {
        #expect(try await audit("verify", "--head", "nonsense").status == 1)
        let other = try TemporaryFolder()
        let foreign = try await Binary.run(
            ["credentials", "create", "--name", "x", "--role", "viewer", "--database", other.path("db.sqlite")])
        #expect(foreign.status == 0, "\(foreign.errors)")
        let head = try await Binary.run(["audit", "head", "--database", other.path("db.sqlite")]).output
        let verified = try await audit("verify", "--head", head.trimmingCharacters(in: .whitespacesAndNewlines))
        #expect(verified.status == 1)
        #expect(verified.errors.contains("not signed with this service key"), "\(verified.errors)")
    }
}
