import AuthContract
import AuthService
import Foundation
import ServiceTestHelpers
import Testing

@testable import PostgreSQLStores

extension AgainstPostgreSQL {
    @Suite
    struct OpeningTests {
        private func refusal(_ url: String, options: PostgreSQLStores.Options = .init()) async -> StoreOpenError? {
            do throws(StoreOpenError) {
                await (try PostgreSQLStores.connect(url, options: options, logger: silent)).close()
                return nil
            } catch { return error }
        }

        @Test func `a migration that waits for a long transaction does not keep others from its table`() async throws {
            let server = try await PostgreSQLServer.shared()
            let url = try server.database()
            let address = try ServerAddress(url)
            _ = try await DatabaseCheck.inLongTransaction(address) { connection in
                _ = try connection.rows(Schema.creation)
                for (index, migration) in Schema.migrations.prefix(14).enumerated() {
                    _ = try connection.results(migration.statements.map { Statement($0) })
                    _ = try connection.rows("INSERT INTO \(Schema.table) (version, oldest) VALUES (\(index + 1), 1)")
                }
                return 0
            }
            // As pg_dump does. The next migration alters this table.
            async let dump = DatabaseCheck.inLongTransaction(address) { connection in
                _ = try connection.rows("LOCK TABLE claim_history IN ACCESS SHARE MODE")
                return try connection.rows("SELECT pg_sleep(5)").count
            }
            let lock = "SELECT count(*) FROM pg_locks WHERE relation = 'claim_history'::regclass"
            while try server.sql(lock, in: url) == "0" { try await Task.sleep(for: .milliseconds(20)) }
            async let isMigrated = PostgreSQLStores.migrate(url)
            while try server.sql(lock, in: url) != "0" {
                _ = try server.sql("SET statement_timeout = '2s'; SELECT clock FROM claim_history", in: url)
                try await Task.sleep(for: .milliseconds(20))
            }
            #expect(try await dump == 1)
            #expect(try await isMigrated)
        }

        @Test func `several nodes that start at once create the tables once`() async throws {
            let url = try await PostgreSQLServer.shared().database()
            try await withThrowingDiscardingTaskGroup { group in
                for _ in 0..<6 { group.addTask { await (try open(url)).close() } }
                for _ in 0..<2 { group.addTask { try await PostgreSQLStores.migrate(url) } }
            }
            let versions = try await PostgreSQLServer.shared().sql(
                "SELECT string_agg(version::text, ' ' ORDER BY version) FROM synheart_auth_schema", in: url)
            #expect(versions == (1...Schema.version).map { "\($0)" }.joined(separator: " "))
            #expect(try await Self.transactions(of: url) == "1", "a node must not see some of the tables")
            #expect(try await !PostgreSQLStores.migrate(url))
        }

        @Test func `an empty database is refused where the tables must be there`() async throws {
            let url = try await PostgreSQLServer.shared().database()
            var options = PostgreSQLStores.Options()
            options.createsTables = false
            let error = try #require(await refusal(url, options: options))
            #expect(error.code == .needsMigration)
            #expect(error.description.contains("synheart-auth migrate"))
            #expect(try await PostgreSQLStores.migrate(url))
            #expect(await refusal(url, options: options) == nil)
        }

        private static func version(_ version: Int64, oldest: Int64) -> String {
            "INSERT INTO synheart_auth_schema (version, oldest) VALUES (\(version), \(oldest))"
        }

        /// The number of transactions that made the tables.
        private static func transactions(of url: String) async throws -> String {
            try await PostgreSQLServer.shared().sql(
                "SELECT count(DISTINCT xmin::text) FROM synheart_auth_schema", in: url)
        }

        @Test func `each missing migration is a transaction, and one that fails keeps those before it`() async throws {
            let server = try await PostgreSQLServer.shared()
            let url = try server.database()
            let (first, hashes) = (10, 13)
            try await DatabaseCheck.inLongTransaction(try ServerAddress(url)) { connection in
                _ = try connection.rows(Schema.creation)
                for (number, migration) in Schema.migrations.prefix(first).enumerated() {
                    _ = try connection.results(migration.statements.map { Statement($0) })
                    _ = try connection.rows(Self.version(Int64(number + 1), oldest: migration.oldest))
                }
            }
            // Another index already has the name that this migration needs.
            try server.sql("CREATE INDEX devices_by_hash ON devices (status)", in: url)
            await #expect(throws: StoreOpenError.self) { try await PostgreSQLStores.migrate(url) }
            #expect(
                try server.sql("SELECT max(version) FROM synheart_auth_schema", in: url) == String(hashes - 1))
            #expect(await refusal(url)?.code == .needsMigration)
            try server.sql("DROP INDEX devices_by_hash", in: url)
            try await withThrowingDiscardingTaskGroup { group in
                for _ in 0..<3 { group.addTask { try await PostgreSQLStores.migrate(url) } }
            }
            #expect(try await !PostgreSQLStores.migrate(url))
            #expect(await refusal(url) == nil)
            #expect(try await Self.transactions(of: url) == String(Schema.migrations.count - first + 1))
        }

        @Test func `tables of a newer version open only if it says that this version works with them`() async throws {
            let server = try await PostgreSQLServer.shared()
            let url = try server.database()
            try await PostgreSQLStores.migrate(url)
            try server.sql(Self.version(Schema.version + 1, oldest: Schema.version), in: url)
            #expect(await refusal(url) == nil)
            try server.sql(Self.version(Schema.version + 2, oldest: Schema.version + 1), in: url)
            #expect(await refusal(url)?.code == .newerVersion)
            await #expect(throws: StoreOpenError.self) { try await PostgreSQLStores.migrate(url) }
        }

        @Test func `tables of an older version are refused with what to do`() async throws {
            let server = try await PostgreSQLServer.shared()
            let url = try server.database()
            try await PostgreSQLStores.migrate(url)
            try server.sql(
                "DELETE FROM synheart_auth_schema WHERE version > 1; UPDATE synheart_auth_schema SET version = 0",
                in: url)
            let error = try #require(await refusal(url))
            #expect(error.code == .needsMigration)
            #expect(error.description.contains("version 0"))
        }

        @Test func `tables are created and filled durably, whatever the database's settings are`() async throws {
            let server = try await PostgreSQLServer.shared()
            let name = "careless_\(SystemRandom().bytes(4).map { String($0) }.joined(separator: "_"))"
            try server.sql("CREATE DATABASE \(name)")
            for setting in ["synchronous_commit = off", "statement_timeout = 200"] {
                try server.sql("ALTER DATABASE \(name) SET \(setting)")
            }
            let address = try ServerAddress(server.url(name))
            let found = try await DatabaseCheck.inLongTransaction(address) { connection in
                _ = try connection.rows("SELECT pg_sleep(0.3)")
                return try connection.row("SELECT current_setting('synchronous_commit') AS value")?.text("value")
            }
            #expect(found == "on")
            // A trigger sees the settings of the session that creates the tables.
            try server.sql(
                """
                CREATE TABLE seen (value text);
                CREATE FUNCTION see() RETURNS event_trigger LANGUAGE plpgsql AS
                  $$ BEGIN INSERT INTO seen VALUES (current_setting('synchronous_commit')); END $$;
                CREATE EVENT TRIGGER see ON ddl_command_end EXECUTE FUNCTION see();
                """, in: server.url(name))
            #expect(try await PostgreSQLStores.migrate(server.url(name)))
            #expect(try server.sql("SELECT DISTINCT value FROM seen", in: server.url(name)) == "on")
        }

        @Test(arguments: ["local", "remote_write", "remote_apply", "on"])
        func `a commit waits at least for the replica's disk`(_ set: String) async throws {
            let server = try await PostgreSQLServer.shared()
            let name = "waiting_\(SystemRandom().bytes(4).map { String($0) }.joined(separator: "_"))"
            try server.sql("CREATE DATABASE \(name)")
            try server.sql("ALTER DATABASE \(name) SET synchronous_commit = \(set)")
            let address = try ServerAddress(server.url(name))
            let (found, source) = try await DatabaseCheck.inLongTransaction(address) { connection in
                let row = try connection.row(
                    "SELECT setting, source FROM pg_settings WHERE name = 'synchronous_commit'")
                return (try row?.text("setting"), try row?.text("source"))
            }
            #expect(found == (set == "remote_apply" ? set : "on"))
            // The session has set the value itself. Otherwise a reload of the server's configuration could change it.
            #expect(source == "session")
        }

        @Test func `tables of another program are refused, and stay`() async throws {
            let server = try await PostgreSQLServer.shared()
            let url = try server.database()
            try server.sql("CREATE TABLE devices (id int)", in: url)
            #expect(await refusal(url)?.code == .notADatabase)
            #expect(try server.sql("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'", in: url) == "1")
        }

        @Test func `a user without rights is refused with what to do`() async throws {
            let server = try await PostgreSQLServer.shared()
            let url = try server.database()
            let name = String(url.split(separator: "/").last ?? "")
            try server.sql("CREATE ROLE poor_\(name) LOGIN", in: url)
            #expect(await refusal(url.replacing("auth@", with: "poor_\(name)@"))?.code == .notAllowed)
        }

        @Test func `a database that is not UTF-8 is refused`() async throws {
            let server = try await PostgreSQLServer.shared()
            try server.sql("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
            #expect(await refusal(server.url("latin"))?.code == .unsupported)
        }

        @Test(arguments: [
            "", "localhost:5432/auth", "host=localhost dbname=auth", "mysql://localhost/auth",
            "postgresql://auth:p%zzhunter2@localhost/auth", "postgresql://auth:hunter2@localhost/auth?passwrod=hunter2",
            "postgresql://auth:hunter2@a,b:1,c:2/auth?port=1,2",
            "postgresql://auth:hunter2@localhost/?connect_timeout=0",
        ])
        func `a malformed URL is refused without a word of its password`(_ url: String) async throws {
            let error = try #require(await refusal(url))
            #expect(error.code == .malformedURL)
            #expect(!error.description.contains("hunter2"))
        }

        @Test func `no error names the password`() async throws {
            let server = try await PostgreSQLServer.shared()
            for url in [
                "postgresql://auth:hunter2@127.0.0.1:1/auth",
                "postgresql://nobody:hunter2@127.0.0.1:\(server.port)/postgres",
                "postgresql://auth:hunter2@127.0.0.1:\(server.port)/hunter3?sslmode=require",
            ] {
                let error = try #require(await refusal(url))
                #expect(error.code == .unreachable)
                #expect(!error.description.contains("hunter2"))
                for finding in await PostgreSQLStores.diagnose(url) {
                    #expect(!finding.sentence.contains("hunter2"))
                }
            }
        }

        @Test func `a host elsewhere is verified unless the URL says otherwise`() throws {
            func modes(_ url: String) throws -> [String?] {
                try ServerAddress(url, defaults: [:]).servers.map { $0.parameters["sslmode"] }
            }
            #expect(try modes("postgresql://db.example.com/auth") == ["verify-full"])
            #expect(try modes("postgresql://10.0.0.1,127.0.0.1/auth") == ["verify-full", "prefer"])
            #expect(try modes("postgresql://%2Fvar%2Frun/auth") == ["prefer"])
            #expect(try modes("postgresql:///auth") == ["prefer"])
            #expect(try modes("postgresql://[::1]/auth") == ["prefer"])
            #expect(try modes("postgresql://127.0.0.1.example.com/auth") == ["verify-full"])
            #expect(try modes("postgresql://db.example.com/auth?sslmode=require") == ["require"])
            #expect(try modes("postgresql://localhost/auth?hostaddr=10.0.0.1") == ["verify-full"])
        }

        @Test(arguments: [
            ("postgresql:///auth", ["host": "10.0.0.1"], "verify-full"),
            ("postgresql:///auth", ["host": "/var/run"], "prefer"),
            ("postgresql:///auth", ["hostaddr": "10.0.0.1"], "verify-full"),
            ("postgresql://localhost/auth", ["hostaddr": "10.0.0.1"], "verify-full"),
            ("postgresql://localhost/auth", ["host": "db.example.com"], "prefer"),
            ("postgresql://localhost/auth", ["hostaddr": "127.0.0.1"], "prefer"),
            ("postgresql://localhost/auth?hostaddr=127.0.0.1", ["hostaddr": "10.0.0.1"], "prefer"),
            ("postgresql:///auth?hostaddr=10.0.0.1", [:], "verify-full"),
            ("postgresql:///auth?host=", ["host": "10.0.0.1"], "verify-full"),
            ("postgresql://localhost/auth", ["service": "elsewhere"], "verify-full"),
            ("postgresql://localhost/auth?service=elsewhere", [:], "verify-full"),
            ("postgresql:///auth?service=elsewhere", ["host": "/var/run"], "verify-full"),
            ("postgresql:///auth?service=elsewhere&sslmode=require", [:], "require"),
        ])
        func `where libpq connects with its environment decides about TLS`(
            _ url: String, _ defaults: [String: String], _ mode: String
        ) throws {
            let servers = try ServerAddress(url, defaults: defaults).servers
            #expect(servers.map { $0.parameters["sslmode"] } == [mode])
            #expect(servers.map { $0.parameters["gssencmode"] } == ["disable"])
            #expect(servers.map(\.isLocal) == [mode == "prefer"])
        }

        @Test func `several hosts of the environment are several servers`() throws {
            let defaults = ["host": "db.example.com,/var/run", "port": "1,2"]
            let servers = try ServerAddress("postgresql:///auth", defaults: defaults).servers
            #expect(servers.map(\.name) == ["db.example.com:1", "/var/run:2"])
            #expect(servers.map { $0.parameters["sslmode"] } == ["verify-full", "prefer"])
            // A host in the URL may be empty too.
            let mixed = try ServerAddress("postgresql://localhost,:2/auth?port=1,2", defaults: defaults).servers
            #expect(mixed.map { $0.parameters["sslmode"] } == ["prefer", "verify-full"])
        }

        @Test func `the real environment is read`() throws {
            // Only this test names a server without a host, so no other test reads this variable.
            setenv("PGHOST", "db.example.com", 1)
            defer { unsetenv("PGHOST") }
            let server = try #require(try ServerAddress("postgresql:///auth").servers.first)
            #expect(server.name == "db.example.com")
            #expect(server.isVerified)
        }

        @Test func `GSSAPI's encryption cannot take the place of TLS`() {
            #expect(throws: StoreOpenError.self) {
                try ServerAddress("postgresql://db.example.com/auth?gssencmode=prefer")
            }
        }

        @Test(arguments: ["any", "read-only", "standby", "prefer-standby", "nonsense"])
        func `a URL cannot ask for a server that takes no writes`(_ value: String) throws {
            #expect {
                try ServerAddress("postgresql://a@h1,h2/d?target_session_attrs=\(value)")
            } throws: {
                ($0 as? StoreOpenError)?.description.contains("target_session_attrs") == true
            }
            let primary = try ServerAddress("postgresql://a@h1/d?target_session_attrs=primary")
            #expect(primary.servers.map { $0.parameters["target_session_attrs"] } == ["primary"])
        }

        @Test func `each of several hosts has its port, and writes are asked for`() throws {
            let address = try ServerAddress("postgresql://a@h1:1,h2:2/d?application_name=mine")
            #expect(address.servers.map(\.name) == ["h1:1", "h2:2"])
            #expect(address.servers.map { $0.parameters["target_session_attrs"] } == ["read-write", "read-write"])
            #expect(address.servers[1].parameters["application_name"] == "mine")
        }
    }
}
