import Foundation
import GRDB
import ServiceTestHelpers
import StrictJSON
import Testing

/// A deployment moves from SQLite to PostgreSQL without losing any data of its devices and operators.
@Suite(.serialized) struct MigrateStoreTests {
    private let folder: TemporaryFolder
    private let postgresql: PostgreSQLServer

    init() throws {
        folder = try TemporaryFolder()
        postgresql = try PostgreSQLServer()
        try postgresql.start()
    }

    private var database: String { folder.path("db.sqlite") }

    private static let keyWithoutDevice =
        "PRAGMA foreign_keys = OFF; INSERT INTO keys VALUES ('t', '2e7b4c1a-0000-4000-8000-000000000000', 'current')"

    /// The environment of a node on PostgreSQL: its URL, and the service key of the SQLite deployment.
    private func environment(_ url: String) throws -> [String: String] {
        let key = try String(contentsOfFile: database + ".key", encoding: .utf8)
        return [
            "SYNHEART_AUTH_SERVICE_KEY": key.trimmingCharacters(in: .whitespacesAndNewlines),
            "SYNHEART_AUTH_STORES_POSTGRESQL": url,
        ]
    }

    @Test func `devices, keys, revocations, credentials and the chain arrive, and nothing is left`() async throws {
        let fixture = try await ServiceFixture(database: database)
        let before = try await fixture.start()
        var client = LoadClient(fixture, seed: 5)
        for act in [.register, .rotate, .register, .sign, .revoke, .register, .rotate, .rotate, .register]
            as [LoadClient.Act]
        {
            #expect(await client.act(act, before))
        }
        let url = try postgresql.database()
        let move = ["migrate-store", "--from", "sqlite:\(database)", "--to", url]

        let whileServed = try await Binary.run(move)
        #expect(whileServed.status == 2 && whileServed.errors.contains("stop it first"), "\(whileServed.errors)")
        #expect(before.stop() == 0)
        let events = try await Binary.run(["audit", "list", "--limit", "1000", "--json", "--database", database])

        let moved = try await Binary.run(move + ["--json"])
        #expect(moved.status == 0, "\(moved.errors)")
        let counts = try #require(try JSONValue(parsing: moved.output).object)
        #expect(counts["apps"]?.integer == 1 && counts["devices"]?.integer == 4 && counts["credentials"]?.integer == 1)

        let environment = try environment(url)
        let there = try await Binary.run(["audit", "list", "--limit", "1000", "--json"], environment: environment)
        #expect(there.output == events.output)
        let intact = try await Binary.run(["audit", "verify"], environment: environment)
        #expect(intact.status == 0, "\(intact.errors)")

        // The move copies no claims, so the service first refuses device requests that are dated before the move. The test sends
        // only admin requests and commands.
        let service = try await RunningService(stores: [], environment: environment)
        let devices = await WireConnection.exchange(
            port: service.operationsPort, fixture.administer("GET", "/devices"))
        #expect(devices?.json["devices"]?.array?.count == 4, "\(devices?.text ?? "no answer")")
        // Doctor cannot tell a node on this machine from another program that uses its addresses.
        let doctor = try await Binary.run(
            ["doctor", "--port", String(service.port), "--operations-port", "0"], environment: environment)
        #expect(doctor.status == 0 && doctor.output.contains("warn  listeners"), "\(doctor.output)")
        #expect(service.stop() == 0)

        let again = try await Binary.run(move)
        #expect(again.status == 2 && again.errors.contains("is in use"), "\(again.errors)")

        // A service on the old file lacks the phones that registered after the move. It would make them give up their identity.
        for command in [["serve", "--port", "0", "--operations-port", "0"], ["apps", "list"]] {
            let refused = try await Binary.run(command + ["--database", database])
            #expect(refused.status == 2 && refused.errors.contains("were moved to PostgreSQL"), "\(refused.errors)")
        }
        // A node has used PostgreSQL, so the file may lack devices and revocations.
        let undo = ["migrate-store", "--from", "sqlite:\(database)", "--undo"]
        let refused = try await Binary.run(undo + ["--to", url])
        #expect(refused.status == 1 && refused.errors.contains("has used PostgreSQL"), "\(refused.errors)")
        #expect(try await Binary.run(undo).status == 0)
        #expect(try await Binary.run(undo).status == 1)
        let back = try await fixture.start()
        let health = await WireConnection.exchange(
            port: back.operationsPort, WireRequest(method: "GET", target: "/readyz"))
        #expect(health?.text.contains("history was lost") == true, "\(health?.text ?? "no answer")")
        #expect(back.stop() == 0)
    }

    /// The move finds the first fault before it writes. PostgreSQL finds the second one while the rows are written.
    @Test(arguments: [
        ("DROP TRIGGER audit_is_not_changed; UPDATE audit SET actor = 'nobody' WHERE sequence = 1", "audit log"),
        (keyWithoutDevice, "keys"),
    ])
    func `a move that fails writes nothing`(damage: String, sentence: String) async throws {
        _ = try await ServiceFixture(database: database)
        try await DatabaseQueue(path: database).writeWithoutTransaction { try $0.execute(sql: damage) }
        let url = try postgresql.database()
        let moved = try await Binary.run(["migrate-store", "--from", "sqlite:\(database)", "--to", url])
        #expect(moved.status != 0 && moved.errors.contains(sentence), "\(moved.errors)")
        for table in ["apps", "audit"] where try postgresql.sql("SELECT to_regclass('\(table)')", in: url) != "" {
            #expect(try postgresql.sql("SELECT count(*) FROM \(table)", in: url) == "0")
        }
        let apps = try await Binary.run(["apps", "list", "--database", database])
        #expect(apps.status == 0, "\(apps.errors)")
    }

    @Test func `a move that ends at PostgreSQL's commit leaves the file closed`() async throws {
        _ = try await ServiceFixture(database: database)
        let url = try postgresql.database()
        let move = ["migrate-store", "--from", "sqlite:\(database)"]
        // If a move fails at a row, the tables that it created remain.
        let damaged = try DatabaseQueue(path: database)
        try await damaged.writeWithoutTransaction { try $0.execute(sql: Self.keyWithoutDevice) }
        #expect(try await Binary.run(move + ["--to", url]).status != 0)
        try await damaged.write { try $0.execute(sql: "DELETE FROM keys") }
        try damaged.close()
        try postgresql.sql(
            """
            CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no commit'; END $$;
            CREATE CONSTRAINT TRIGGER fail AFTER INSERT ON apps DEFERRABLE INITIALLY DEFERRED
              FOR EACH ROW EXECUTE FUNCTION fail();
            """, in: url)
        let moved = try await Binary.run(move + ["--to", url])
        #expect(moved.status == 2 && moved.errors.contains("no commit"), "\(moved.errors)")
        let apps = try await Binary.run(["apps", "list", "--database", database])
        #expect(apps.status == 2 && apps.errors.contains("--undo"), "\(apps.errors)")
        try postgresql.sql("DROP TRIGGER fail ON apps", in: url)
        let again = try await Binary.run(move + ["--to", url])
        #expect(again.status == 0, "\(again.errors)")
    }

    @Test(arguments: [
        (["--from", "db.sqlite", "--to", "postgresql://x"], "--from is sqlite:"),
        (["--from", "sqlite:/nowhere"], "--to is"),
        (["--from", "sqlite:/nowhere/db", "--to", "postgresql:///x?host=/nowhere"], "there is no database"),
    ])
    func `what is missing is said`(arguments: [String], sentence: String) async throws {
        let result = try await Binary.run(["migrate-store"] + arguments)
        #expect(result.status == 2 && result.errors.contains(sentence), "\(result.errors)")
    }
}
