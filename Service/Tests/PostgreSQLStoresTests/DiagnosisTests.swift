import AuthContract
import AuthService
import ServiceTestHelpers
import Testing

@testable import PostgreSQLStores

extension AgainstPostgreSQL {
    @Suite
    struct DiagnosisTests {
        /// The levels of the checks that found a fault.
        private func complaints(
            _ url: String, connections: Int = 10, clock: any ServiceClock = SystemClock()
        ) async -> [String: StoreCheckResult.Level] {
            var options = PostgreSQLStores.Options()
            options.connections = connections
            let findings = await PostgreSQLStores.diagnose(url, options: options, clock: clock)
            for finding in findings where finding.level != .good { #expect(finding.advice != nil) }
            return findings.filter { $0.level != .good }.reduce(into: [:]) { $0[$1.check] = $1.level }
        }

        /// Creates an ordinary user that owns its database and has no other rights. Returns the URL of the database.
        private func ordinaryUser() async throws -> String {
            let server = try await PostgreSQLServer.shared()
            let url = try server.database()
            let name = String(url.split(separator: "/").last ?? "")
            try server.sql("CREATE ROLE user_\(name) LOGIN; ALTER DATABASE \(name) OWNER TO user_\(name)")
            return url.replacing("auth@", with: "user_\(name)@")
        }

        @Test func `a user without a connection left is told of the limits`() async throws {
            let url = try await ordinaryUser()
            let server = try await PostgreSQLServer.shared()
            let name = String(url.split(separator: "/").last ?? "")
            try server.sql("ALTER ROLE user_\(name) CONNECTION LIMIT 0")
            let findings = await PostgreSQLStores.diagnose(url)
            #expect(findings.map(\.check) == ["postgresql_connections"])
            #expect(findings.first?.advice?.contains("max_connections") == true)
        }

        @Test func `a node with another Redis than the running ones is told so, and the first node is not`()
            async throws
        {
            let url = try await ordinaryUser()
            let options = { (place: ClaimPlace) in
                var options = PostgreSQLStores.Options()
                options.claims = place
                return options
            }
            let (here, there) = (ClaimPlace("redis://a"), ClaimPlace("redis://b"))
            func level(_ place: ClaimPlace) async -> StoreCheckResult.Level? {
                await PostgreSQLStores.diagnose(url, options: options(place)).first { $0.check == "claim_keeper" }?
                    .level
            }
            #expect(await level(here) == nil)
            try await PostgreSQLStores.migrate(url)
            #expect(await level(here) == .good)
            let node = try await open(url, options: options(here), clock: SystemClock())
            // The node named the keeper (the store of the claims) when it opened its stores. In the background, the node renews
            // the keeper's lease.
            #expect(await level(here) == .good)
            #expect(await level(there) == .failure)
            await node.close()
        }

        @Test func `a lossless failover needs a replica that commits wait for`() async throws {
            let server = try PostgreSQLServer()
            try server.start()
            var options = PostgreSQLStores.Options()
            func level() async -> StoreCheckResult.Level? {
                await PostgreSQLStores.diagnose(server.url(), options: options).first {
                    $0.check == "postgresql_replication"
                }?.level
            }
            #expect(await level() == nil)
            options.isFailoverLossless = true
            #expect(await level() == .failure)
            try server.sql("ALTER SYSTEM SET synchronous_standby_names = 'replica'")
            try server.sql("SELECT pg_reload_conf()")
            while try server.sql("SHOW synchronous_standby_names") != "replica" {}
            #expect(await level() != .failure)
        }

        @Test func `a user without special rights can do everything, and nothing is wrong`() async throws {
            let url = try await ordinaryUser()
            #expect(await complaints(url) == ["postgresql_schema": .warning, "postgresql_durability": .failure])
            let stores = try await open(url, clock: SystemClock())
            // The tests' server has fsync off.
            #expect(await complaints(url) == ["postgresql_durability": .failure])
            #expect(await stores.diagnose().contains { $0.check == "postgresql_schema" && $0.level == .good })
            let device = try sampleDevice()
            try await stores.add(device)
            let now = SystemClock().now
            for time in [now - 3000, now] {
                let outcome = try await stores.replay.claim(
                    [sampleClaim(device)], of: device.deviceID, timestamp: time, expiresAt: time + 660, now: time,
                    futureWindow: 60)
                #expect(outcome == .claimed)
            }
            try await stores.sweeper?.sweep()
            try await stores.check()
            #expect(try await stores.audit.firstBrokenLink() == nil)
            #expect(stores.use.open > 0)
            // The tables are no larger with two claims than without claims, so the estimate is 0.
            #expect(stores.use.claims == 0)
            #expect(stores.use.timeouts == 0 && stores.use.failovers == 0)
            await stores.close()
        }

        @Test func `a clock that differs too much is reported, and the node is not ready`() async throws {
            let url = try await PostgreSQLServer.shared().database()
            let now = SystemClock().now
            for (seconds, level) in [(10, .warning), (-100, .failure)] as [(Int64, StoreCheckResult.Level)] {
                let clock = FixedClock(now: now + seconds)
                #expect(await complaints(url, clock: clock)["postgresql_clock"] == level)
            }
            let stores = try await open(url, clock: FixedClock(now: now - 100))
            await #expect(throws: StoreError.self) { try await stores.check() }
            await stores.close()
        }

        @Test func `missing rights, a migration that waits and a small server are named`() async throws {
            let server = try await PostgreSQLServer.shared()
            let url = try await ordinaryUser()
            let name = String(url.split(separator: "/").last ?? "")
            let owner = server.url(name)
            let found = await complaints(url, connections: 10_000)
            #expect(found["postgresql_connections"] == .warning)
            try await PostgreSQLStores.migrate(owner)
            #expect(await complaints(url) == ["postgresql_rights": .failure])
            try server.sql("GRANT SELECT ON synheart_auth_schema TO user_\(name)", in: owner)
            #expect(await complaints(url)["postgresql_rights"] == .failure)
            try server.sql(
                "GRANT ALL ON ALL TABLES IN SCHEMA public TO user_\(name); GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO user_\(name)",
                in: owner)
            #expect(await complaints(url)["postgresql_rights"] == nil)
            // Operators often harden a database by this statement.
            try server.sql("REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA public FROM public", in: owner)
            #expect(await complaints(url)["postgresql_rights"] == .failure)
            // PostgreSQL runs a trigger's function without checking this right.
            try server.sql(
                """
                DO $$ DECLARE called text; BEGIN
                  FOR called IN SELECT oid::regprocedure FROM pg_proc
                    WHERE pronamespace = 'public'::regnamespace AND prorettype <> 'trigger'::regtype
                  LOOP EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO user_\(name)', called); END LOOP;
                END $$
                """, in: owner)
            #expect(await complaints(url)["postgresql_rights"] == nil)
            try server.sql(
                "DELETE FROM synheart_auth_schema WHERE version > 1; UPDATE synheart_auth_schema SET version = 0",
                in: owner)
            #expect(await complaints(url)["postgresql_schema"] == .failure)
        }

        @Test func `a database that takes no writes is named`() async throws {
            let server = try await PostgreSQLServer.shared()
            let url = try server.database()
            try await PostgreSQLStores.migrate(url)
            let name = String(url.split(separator: "/").last ?? "")
            try server.sql("ALTER DATABASE \(name) SET default_transaction_read_only = on")
            #expect(await complaints(url) == ["postgresql_writes": .failure])
            #expect(await complaints(url + "?target_session_attrs=primary")["postgresql_writes"] == .failure)
        }

        @Test func `a server that does not answer, and a malformed URL, are findings too`() async throws {
            #expect(await complaints("postgresql://127.0.0.1:1/auth") == ["postgresql_connection": .failure])
            #expect(await complaints("nonsense") == ["postgresql_url": .failure])
        }
    }
}
