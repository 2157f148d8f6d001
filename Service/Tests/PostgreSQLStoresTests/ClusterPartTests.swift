import AuthContract
import AuthService
import ServiceTestHelpers
import Testing

@testable import PostgreSQLStores

extension AgainstPostgreSQL {
    /// `KeeperWatch.unclaimedEnd`: the latest date of a request that was accepted without a second claim, which is a
    /// claim in PostgreSQL in addition to Redis. A node asks for this date after a server of a Redis Cluster was
    /// replaced. The id of the history stays the same.
    @Suite
    struct ClusterPartTests {
        private static let redis = ClaimPlace("redis+cluster://h:6379/0?prefix=p:")
        private static let clock = "floor(extract(epoch FROM clock_timestamp()))::bigint"

        private let server: PostgreSQLServer
        private let url: String

        init() async throws {
            server = try await PostgreSQLServer.shared()
            url = try server.database()
        }

        private func node() async throws -> PostgreSQLStores {
            var options = PostgreSQLStores.Options()
            options.deadline = .seconds(20)
            options.claims = Self.redis
            return try await open(url, options: options, clock: SystemClock())
        }

        private func watch(_ stores: PostgreSQLStores) throws -> KeeperWatch {
            try #require(stores.keeper as? KeeperWatch)
        }

        private func end(_ stores: PostgreSQLStores) async throws -> Int64? {
            let keeper = try watch(stores)
            return try await keeper.unclaimedEnd(of: try keeper.current())
        }

        /// Reads the id of the claims' history as a node of the previous version does. Such a node may make claims with a
        /// reading of PostgreSQL's clock that it took after it asked which Redis servers are masters.
        private func readAsUnbound(_ place: String = "'\(redis)'") throws {
            try server.sql("SELECT read_claim_keeper(\(place), \(Self.clock), 30)", in: url)
        }

        @Test func `the unclaimed end is no earlier than any reading before it, and the id stays`() async throws {
            let nodes = [try await node(), try await node()]
            for node in nodes { await (try watch(node)).read() }
            let before = try watch(nodes[0]).current()
            let readings = try nodes.map { try #require(try watch($0).current().reading?.seconds) }
            let found = try #require(try await end(nodes[0]))
            for reading in readings { #expect(reading + 5 <= found) }
            #expect(abs(found - 5 - SystemClock().now.seconds) <= 2)
            #expect(try await watch(nodes[0]).isCurrent(before))
            // Simulates an earlier reading of a clock that was far ahead.
            let ahead = SystemClock().now.seconds + 1000
            try server.sql("UPDATE claim_keeper SET mark = \(ahead)", in: url)
            #expect(try await end(nodes[0]) == ahead + 5)
            for node in nodes { await node.close() }
        }

        @Test func `a replaced id has no unclaimed end`() async throws {
            let stores = try await node()
            let before = try watch(stores).current()
            #expect(try await watch(stores).renew(before) != nil)
            #expect(try await watch(stores).unclaimedEnd(of: before) == nil)
            #expect(try await end(stores) != nil)
            await stores.close()
        }

        @Test func `an id that an older node read has no unclaimed end for a while, but a new id has one`() async throws
        {
            let stores = try await node()
            #expect(try await end(stores) != nil)
            // Nodes that only read the id of the claims' history, or are configured for another store, make no claims.
            try readAsUnbound("NULL")
            try readAsUnbound("'postgresql'")
            #expect(try await end(stores) != nil)
            try readAsUnbound()
            #expect(try await end(stores) == nil)
            let rest = try server.sql("SELECT unbound_until - \(Self.clock) FROM claim_keeper", in: url)
            #expect((640...670).contains(Int(rest) ?? 0), "\(rest)")
            #expect(try #require(try await watch(stores).renew(try watch(stores).current())).unclaimedEnd != nil)
            #expect(try await end(stores) == nil)
            try server.sql("UPDATE claim_keeper SET unbound_until = \(Self.clock) - 1", in: url)
            #expect(try await end(stores) != nil)
            await stores.close()
        }

        @Test(arguments: [
            // A node of a version without second claims (claims in PostgreSQL in addition to Redis) read the id of the claims' history.
            "SELECT read_claim_keeper('\(redis)')",
            // The server was started, perhaps on a snapshot.
            "UPDATE claim_keeper SET server_start = server_start - interval '1 s'",
            // A replica was promoted, or a dump was restored.
            "UPDATE claim_history SET identity = 'another:elsewhere'",
        ])
        func `if second claims may be missing, there is no unclaimed end`(_ condition: String) async throws {
            let stores = try await node()
            #expect(try await end(stores) != nil)
            try server.sql(condition, in: url)
            #expect(try await end(stores) == nil)
            await stores.close()
        }

        @Test func `a node of the previous version leaves no record if its clock is far from PostgreSQL's`()
            async throws
        {
            let stores = try await node()
            for ahead in [-40, 40] {
                try server.sql("SELECT read_claim_keeper('\(Self.redis)', \(Self.clock) + \(ahead), 30)", in: url)
                #expect(try await end(stores) != nil)
            }
            // A node compares its clock with PostgreSQL's when the answer arrives, and uses the answer for up to 5 s (a lease) after it
            // asked. It tolerates a difference of 30 s. So PostgreSQL records a call even if the node's clock was 34 s behind.
            try server.sql("SELECT read_claim_keeper('\(Self.redis)', \(Self.clock) - 34, 30)", in: url)
            #expect(try await end(stores) == nil)
            await stores.close()
        }

        @Test func `after a node called settle, no id has an unclaimed end for a while`() async throws {
            let stores = try await node()
            let rest = "SELECT settles_at - \(Self.clock) FROM claim_keeper"
            // If the calling node's clock is wrong, PostgreSQL records nothing, and returns the difference.
            for ahead in [-40, 40] {
                let answer = try server.sql("SELECT settle_claim_keeper(\(Self.clock) + \(ahead), 30)", in: url)
                #expect(abs((Int(answer) ?? 0) - ahead) <= 1)
            }
            #expect(try await end(stores) != nil)
            try await watch(stores).settle()
            #expect((660...670).contains(Int(try server.sql(rest, in: url)) ?? 0))
            #expect(try await end(stores) == nil)
            #expect(try #require(try await watch(stores).renew(try watch(stores).current())).unclaimedEnd == nil)
            // A later `settles_at` is not changed.
            try server.sql("UPDATE claim_keeper SET settles_at = \(Self.clock) + 5000", in: url)
            try await watch(stores).settle()
            #expect(Int(try server.sql(rest, in: url)) ?? 0 > 4900)
            await stores.close()
        }

        @Test func `after a migration of tables in use, there is no unclaimed end for a while`() async throws {
            _ = try await DatabaseCheck.inLongTransaction(try ServerAddress(url)) { connection in
                _ = try connection.rows(Schema.creation)
                for (index, migration) in Schema.migrations.dropLast().enumerated() {
                    _ = try connection.results(migration.statements.map { Statement($0) })
                    _ = try connection.rows(
                        "INSERT INTO \(Schema.table) (version, oldest) VALUES (\(index + 1), 1)")
                }
                _ = try connection.rows("UPDATE claim_keeper SET place = '\(Self.redis)'")
                return try connection.rows("SELECT * FROM read_claim_keeper('\(Self.redis)', \(Self.clock), 30)").count
            }
            #expect(try await PostgreSQLStores.migrate(url))
            let rest = try server.sql("SELECT unbound_until - \(Self.clock) FROM claim_keeper", in: url)
            #expect((640...670).contains(Int(rest) ?? 0), "\(rest)")
            let stores = try await node()
            #expect(try await end(stores) == nil)
            await stores.close()
        }
    }
}
