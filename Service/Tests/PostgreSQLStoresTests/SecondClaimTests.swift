import AuthContract
import AuthService
import ServiceTestHelpers
import StoreConformance
import Testing

@testable import PostgreSQLStores

extension AgainstPostgreSQL {
    @Suite
    struct SecondClaimTests {
        private static let redis = ClaimPlace("redis://h:6379/0?prefix=p:")

        private let server: PostgreSQLServer
        private let url: String
        private let device: DeviceRecord

        init() async throws {
            server = try await PostgreSQLServer.shared()
            url = try server.database()
            device = try sampleDevice()
        }

        private func node(_ place: ClaimPlace = redis) async throws -> PostgreSQLStores {
            var options = PostgreSQLStores.Options()
            options.deadline = .seconds(20)
            options.claims = place
            return try await open(url, options: options, clock: SystemClock())
        }

        private func watch(_ stores: PostgreSQLStores) throws -> any ClaimKeeper { try #require(stores.keeper) }

        private func claim(
            _ claim: ReplayClaim, ahead: Int64 = 30, on stores: PostgreSQLStores, tag: ClaimTag? = nil
        ) async throws -> ClaimOutcome {
            let now = SystemClock().now
            return try await watch(stores).secondClaims.claim(
                [claim], of: device.deviceID, timestamp: now + ahead, expiresAt: now + ahead + 660, now: now,
                futureWindow: 60, tag: tag)
        }

        /// Names a new id of the claims' history, as a node does after Redis lost claims.
        private func renew(_ stores: PostgreSQLStores) async throws -> ClaimHistoryID {
            let keeper = try watch(stores)
            return try #require(try await keeper.renew(try keeper.current()))
        }

        /// Reads the id of the claims' history as a node of the previous version does.
        private func readAsOlder() throws { _ = try server.sql("SELECT read_claim_keeper('\(Self.redis)')", in: url) }

        private func settle() throws { try server.sql("UPDATE claim_keeper SET settles_at = 0", in: url) }

        @Test func `the store of second claims keeps every guarantee while a Redis is the keeper`() async throws {
            var options = PostgreSQLStores.Options.patient
            options.claims = Self.redis
            let stores = try await open(url, options: options)
            var all = StoresUnderTest(MemoryStores(), now: FixedClock().now)
            all.replay = try watch(stores).secondClaims
            for check in StoreConformance.checks(of: .replay) { try await check.run(on: all) }
            await stores.close()
        }

        @Test func `second claims refuse a copy at another node, also after the id was replaced`() async throws {
            let nodes = [try await node(), try await node()]
            let (first, tag) = (sampleClaim(device), ClaimTag(claim: sampleClaim(device)))
            #expect(try await claim(first, on: nodes[0], tag: tag) == .claimed)
            #expect(try await claim(first, on: nodes[1], tag: tag) == .claimed)
            _ = try await renew(nodes[0])
            #expect(try await claim(first, on: nodes[1]) == .taken(first))
            for node in nodes { await node.close() }
        }

        @Test func `the unclaimed end of a new id is no earlier than any reading before it`() async throws {
            let nodes = [try await node(), try await node()]
            for node in nodes { await (node.keeper as? KeeperWatch)?.read() }
            let readings = try nodes.map { try #require(try watch($0).current().reading?.seconds) }
            let id = try await renew(nodes[0])
            let end = try #require(id.unclaimedEnd)
            for reading in readings { #expect(reading + 5 <= end) }
            #expect(abs(end - 5 - SystemClock().now.seconds) <= 2)
            #expect(try await watch(nodes[0]).isCurrent(id))
            // The second node renews the id, so the first node's id is no longer current.
            _ = try? await watch(nodes[1]).renew(watch(nodes[1]).current())
            _ = try await renew(nodes[1])
            #expect(try await !watch(nodes[0]).isCurrent(id))
            for node in nodes { await node.close() }
        }

        @Test func `the mark never decreases, and the unclaimed end follows it`() async throws {
            let stores = try await node()
            let ahead = SystemClock().now.seconds + 1000
            try server.sql("UPDATE claim_keeper SET mark = \(ahead)", in: url)
            await (stores.keeper as? KeeperWatch)?.read()
            // The node's reading is PostgreSQL's current clock, not the mark (the highest reading so far). So the mark does not
            // reduce the node's second claims.
            #expect(try #require(try watch(stores).current().reading).seconds < ahead)
            #expect(try await renew(stores).unclaimedEnd == ahead + 5)
            #expect(try server.sql("SELECT mark FROM claim_keeper", in: url) == "\(ahead)")
            await stores.close()
        }

        @Test func `after a node of the previous version read the id, a new one has no unclaimed end for a while`()
            async throws
        {
            let stores = try await node()
            #expect(try await renew(stores).unclaimedEnd != nil)
            try readAsOlder()
            #expect(try await renew(stores).unclaimedEnd == nil)
            let rest = try server.sql(
                "SELECT settles_at - floor(extract(epoch FROM clock_timestamp()))::bigint FROM claim_keeper", in: url)
            #expect((640...670).contains(Int(rest) ?? 0), "\(rest)")
            try settle()
            #expect(try await renew(stores).unclaimedEnd != nil)
            await stores.close()
        }

        /// The server's files may be a restored snapshot. Then second claims (claims in PostgreSQL in addition to Redis) are
        /// missing, although the server's identity is the same.
        @Test func `after the server was started, a new id has no unclaimed end for a while`() async throws {
            let stores = try await node()
            #expect(try await renew(stores).unclaimedEnd != nil)
            // Simulates a start: the row has the previous start of the server.
            try server.sql("UPDATE claim_keeper SET server_start = server_start - interval '1 s'", in: url)
            #expect(try await renew(stores).unclaimedEnd == nil)
            // A node whose clock differs too much from the server's does not record the server's start.
            try server.sql("UPDATE claim_keeper SET settles_at = 0, server_start = NULL", in: url)
            try server.sql("SELECT read_claim_keeper('\(Self.redis)', 1000, 30)", in: url)
            #expect(try await renew(stores).unclaimedEnd == nil)
            try server.sql(
                """
                UPDATE claim_keeper SET settles_at = 0, mark = 0, server_start = NULL;
                SELECT read_claim_keeper('\(Self.redis)', floor(extract(epoch FROM clock_timestamp()))::bigint, 30)
                """, in: url)
            let rest = try server.sql(
                """
                SELECT settles_at - floor(extract(epoch FROM clock_timestamp()))::bigint FROM claim_keeper
                  WHERE server_start = pg_postmaster_start_time()
                """, in: url)
            #expect((640...670).contains(Int(rest) ?? 0), "\(rest)")
            #expect(try await renew(stores).unclaimedEnd == nil)
            try settle()
            #expect(try await renew(stores).unclaimedEnd != nil)
            await stores.close()
        }

        @Test func `an older node that only looks, or is configured for another store, changes nothing`() async throws {
            let stores = try await node()
            try server.sql("SELECT read_claim_keeper(NULL)", in: url)
            try server.sql("SELECT read_claim_keeper('postgresql')", in: url)
            #expect(try await renew(stores).unclaimedEnd != nil)
            await stores.close()
        }

        @Test func `a node of the previous version that names a store leaves no unclaimed end`() async throws {
            let stores = try await node()
            try server.sql("UPDATE claim_keeper SET id = 'older', renewed_at = 1", in: url)
            await (stores.keeper as? KeeperWatch)?.read()
            #expect(try watch(stores).current().text == "older")
            #expect(try await renew(stores).unclaimedEnd == nil)
            await stores.close()
        }

        @Test(arguments: [
            // A replica was promoted, or a dump was restored.
            "UPDATE claim_history SET identity = 'another:elsewhere'",
            // The server's clock fell back, and no sweep has noticed it yet.
            "UPDATE claim_history SET clock = clock + 1000000",
            // PostgreSQL recorded a loss of its claims a moment ago.
            """
            UPDATE claim_history SET lost_from = ARRAY[0],
              lost_to = ARRAY[floor(extract(epoch FROM clock_timestamp()))::bigint - 600]
            """,
        ])
        func `if PostgreSQL lost claims itself, a new id has no unclaimed end`(_ loss: String) async throws {
            let stores = try await node()
            #expect(try await renew(stores).unclaimedEnd != nil)
            try server.sql(loss, in: url)
            #expect(try await renew(stores).unclaimedEnd == nil)
            await stores.close()
        }

        @Test func `second claims of dates that PostgreSQL lost are refused`() async throws {
            let stores = try await node()
            try server.sql("UPDATE claim_history SET identity = 'another:elsewhere'", in: url)
            guard case .historyLost = try await claim(sampleClaim(device), on: stores) else {
                Issue.record("a request of a lost time was judged")
                return
            }
            await stores.close()
        }

        @Test func `a Redis that becomes the keeper costs PostgreSQL no second claim`() async throws {
            let here = try await node(.postgresql)
            let now = SystemClock().now
            let taken = sampleClaim(device)
            let outcome = try await here.replay.claim(
                [taken], of: device.deviceID, timestamp: now + 30, expiresAt: now + 690, now: now, futureWindow: 60)
            #expect(outcome == .claimed)
            _ = try await here.setKeeper(Self.redis, actor: "test")
            let there = try await node()
            try await there.sweeper?.sweep()
            #expect(try server.sql("SELECT cardinality(lost_from) FROM claim_history", in: url) == "0")
            #expect(try await claim(taken, on: there) == .taken(taken))
            #expect(try await claim(sampleClaim(device), on: there) == .claimed)
            for stores in [here, there] { await stores.close() }
        }

        @Test func `after tables in use are migrated, the first id has no unclaimed end`() async throws {
            _ = try await DatabaseCheck.inLongTransaction(try ServerAddress(url)) { connection in
                _ = try connection.rows(Schema.creation)
                for (index, migration) in Schema.migrations.prefix(5).enumerated() {
                    _ = try connection.results(migration.statements.map { Statement($0) })
                    _ = try connection.rows(
                        "INSERT INTO \(Schema.table) (version, oldest) VALUES (\(index + 1), 1)")
                }
                return try connection.rows("SELECT * FROM read_claim_keeper('postgresql')").count
            }
            #expect(try await PostgreSQLStores.migrate(url))
            let stores = try await node(.postgresql)
            #expect(try await renew(stores).unclaimedEnd == nil)
            await stores.close()
        }
    }
}
