import AuthContract
import AuthService
import ServiceTestHelpers
import Testing

@testable import PostgreSQLStores

extension AgainstPostgreSQL {
    /// PostgreSQL replaces a Redis as the keeper (the store of the claims). PostgreSQL already has the second claims,
    /// which nodes made there in addition to Redis.
    @Suite
    struct KeeperHereTests {
        private static let redis = ClaimPlace("redis://h:6379/0?prefix=p:")
        private static let clock = "floor(extract(epoch FROM clock_timestamp()))::bigint"

        private let server: PostgreSQLServer
        private let url: String
        private let device: DeviceRecord

        init() async throws {
            server = try await PostgreSQLServer.shared()
            url = try server.database()
            device = try sampleDevice()
        }

        private func node(_ place: ClaimPlace) async throws -> PostgreSQLStores {
            var options = PostgreSQLStores.Options.patient
            options.claims = place
            options.vacancy = .seconds(3600)
            return try await open(url, options: options, clock: SystemClock())
        }

        /// A node that is configured for Redis, the current keeper, and a node that is configured for PostgreSQL. Neither
        /// node reads the keeper in the background.
        private func nodes() async throws -> (there: PostgreSQLStores, here: PostgreSQLStores) {
            let nodes = (there: try await node(Self.redis), here: try await node(.postgresql))
            for node in [nodes.there, nodes.here] { (node.keeper as? KeeperWatch)?.finish() }
            return nodes
        }

        private func watch(_ stores: PostgreSQLStores) throws -> KeeperWatch {
            try #require(stores.keeper as? KeeperWatch)
        }

        /// Sets the row as it is after nodes renewed the lease every second for a long time.
        private func renewLease() throws {
            try server.sql("UPDATE claim_keeper SET renewed_at = \(Self.clock)", in: url)
            try server.sql("UPDATE claim_keeper SET unbroken_since = 0", in: url)
        }

        private func keepHere(_ stores: PostgreSQLStores) async throws {
            _ = try await stores.setKeeper(.postgresql, actor: "test")
        }

        private func keepThere(_ stores: PostgreSQLStores) async throws {
            _ = try await stores.setKeeper(Self.redis, actor: "test")
            try renewLease()
        }

        private func number(_ expression: String, of table: String) throws -> Int64? {
            Int64(try server.sql("SELECT \(expression) FROM \(table)", in: url))
        }

        /// The recorded interval of dates whose requests are refused, whatever the future window is; nil if none is recorded.
        private func closed() throws -> ClosedRange<Int64>? {
            guard let first = try number("closed_from", of: "claim_history") else { return nil }
            return first...(try #require(try number("closed_to", of: "claim_history")))
        }

        private func claim(
            _ claim: ReplayClaim, on store: any ReplayStore, at date: Int64, now: UnixTime = SystemClock().now,
            futureWindow: Int64 = 60
        ) async throws -> ClaimOutcome {
            try await store.claim(
                [claim], of: device.deviceID, timestamp: UnixTime(date), expiresAt: UnixTime(date) + 660, now: now,
                futureWindow: futureWindow, tag: nil)
        }

        /// Whether PostgreSQL accepts a request dated 60 s ahead at once. If PostgreSQL refuses the whole interval of dates
        /// whose claims it may lack, the request must wait 35 s.
        private func isShort(_ here: PostgreSQLStores) async throws -> Bool {
            let date = SystemClock().now.seconds + 60
            switch try await claim(sampleClaim(device), on: here.replay, at: date) {
            case .claimed: return true
            case .historyLost: return false
            case let outcome:
                Issue.record("a fresh request is \(outcome)")
                return false
            }
        }

        @Test(arguments: [0, 60, 300] as [Int64])
        func `the dates from before to five seconds after the change are refused, whatever the window`(
            _ window: Int64
        ) async throws {
            let (there, here) = try await nodes()
            try renewLease()
            let before = SystemClock().now.seconds
            try await keepHere(here)
            let after = SystemClock().now.seconds
            let dates = try #require(try closed())
            let (first, last) = (dates.lowerBound, dates.upperBound)
            #expect((before - 690...after - 690).contains(first))
            #expect((before + 5...after + 5).contains(last))
            for date in [first, before - 5, before, last] {
                let outcome = try await claim(
                    sampleClaim(device), on: here.replay, at: date, now: UnixTime(before - 1000), futureWindow: window)
                #expect(outcome == .historyLost(retryAfter: last + 1 - date), "dated \(date)")
            }
            // Claims that had expired in the Redis are lost too. If a clock steps back, their requests must be refused.
            let stepped = UnixTime(before - 1000)
            #expect(try await claim(sampleClaim(device), on: here.replay, at: first - 1, now: stepped) == .expired)
            for date in [last + 1, last + 40] {
                let outcome = try await claim(sampleClaim(device), on: here.replay, at: date, futureWindow: window)
                #expect(outcome == .claimed, "dated \(date)")
            }
            for node in [there, here] { await node.close() }
        }

        @Test(arguments: [(0, true), (-50, true), (-61, false), (-700, false), (30, false)])
        func `a clock with which no node agreed lately is not recorded`(_ swept: Int, _ isShort: Bool) async throws {
            let (there, here) = try await nodes()
            for node in [there, here] { node.sweeper?.finish() }
            try server.sql(
                "UPDATE claim_history SET runs_from = '{0}', runs_to = ARRAY[\(Self.clock) + (\(swept))]", in: url)
            try renewLease()
            try await keepHere(here)
            #expect((try closed() != nil) == isShort)
            for node in [there, here] { await node.close() }
        }

        @Test func `the last date that is refused is no earlier than any reading of a node before it`() async throws {
            let (there, here) = try await nodes()
            // Simulates a reading of a clock that was 20 s ahead.
            let mark = SystemClock().now.seconds + 20
            try server.sql("UPDATE claim_keeper SET mark = \(mark)", in: url)
            try renewLease()
            try await keepHere(here)
            #expect(try closed()?.upperBound == mark + 5)
            #expect(
                try await claim(sampleClaim(device), on: here.replay, at: mark + 5) == .historyLost(retryAfter: 1))
            #expect(try await claim(sampleClaim(device), on: here.replay, at: mark + 6) == .claimed)
            for node in [there, here] { await node.close() }
        }

        @Test func `earlier second claims stay taken, and no copy is accepted at a node that still uses Redis`()
            async throws
        {
            let (there, here) = try await nodes()
            let second = try watch(there).secondClaims
            let (old, late, new) = (sampleClaim(device), sampleClaim(device), sampleClaim(device))
            let date = SystemClock().now.seconds + 40
            #expect(try await claim(old, on: second, at: date) == .claimed)
            try renewLease()
            try await keepHere(here)
            #expect(try await claim(old, on: here.replay, at: date) == .taken(old))
            #expect(try await claim(late, on: second, at: date) == .claimed)
            #expect(try await claim(late, on: here.replay, at: date) == .taken(late))
            #expect(try await claim(new, on: here.replay, at: date) == .claimed)
            #expect(try await claim(new, on: second, at: date) == .taken(new))
            // PostgreSQL refuses a request of this date, because the Redis may have accepted it.
            let last = try #require(try closed()).upperBound
            #expect(try await claim(sampleClaim(device), on: second, at: last) == .historyLost(retryAfter: 1))
            for node in [there, here] { await node.close() }
        }

        @Test func `of concurrent copies at PostgreSQL and at Redis, one is accepted`() async throws {
            let (there, here) = try await nodes()
            try renewLease()
            try await keepHere(here)
            let stores = [try watch(there).secondClaims, here.replay]
            let date = SystemClock().now.seconds + 40
            for _ in 0..<8 {
                let copy = sampleClaim(device)
                let outcomes = try await withThrowingTaskGroup(of: ClaimOutcome.self) { group in
                    for number in 0..<16 {
                        group.addTask { try await claim(copy, on: stores[number % 2], at: date) }
                    }
                    return try await group.reduce(into: [ClaimOutcome]()) { $0.append($1) }
                }
                #expect(outcomes.count { $0 == .claimed } == 1)
                #expect(outcomes.count { $0 == .taken(copy) } == 15)
            }
            for node in [there, here] { await node.close() }
        }

        @Test(arguments: [
            // A node of a version without second claims (claims in PostgreSQL in addition to Redis) read the id of the claims' history.
            "SELECT read_claim_keeper('\(Self.redis)')",
            // The server was started, perhaps on a snapshot.
            "UPDATE claim_keeper SET server_start = server_start - interval '1 s'",
            // A replica was promoted, or a dump was restored.
            "UPDATE claim_history SET identity = 'another:elsewhere'",
            // The server's clock fell back, and no sweep has noticed it yet.
            "UPDATE claim_history SET clock = clock + 1000000",
            // PostgreSQL lost claims a moment ago.
            "UPDATE claim_history SET lost_from = ARRAY[0], lost_to = ARRAY[\(Self.clock) - 600]",
            // A recorded reading of a clock was far ahead. The dates up to this reading are more than those of the whole interval.
            "UPDATE claim_keeper SET mark = \(Self.clock) + 40",
            // No node renews the lease.
            "UPDATE claim_keeper SET renewed_at = renewed_at - 6; UPDATE claim_keeper SET unbroken_since = 0",
            // Some minutes ago, no node renewed the lease for a while: nodes may have used a promoted replica.
            "UPDATE claim_keeper SET unbroken_since = \(Self.clock) - 600",
            // No store is recorded as the keeper (the store of the claims).
            "UPDATE claim_keeper SET place = NULL",
        ])
        func `where second claims may be missing, the whole interval is refused`(_ condition: String) async throws {
            let (there, here) = try await nodes()
            try renewLease()
            try server.sql(condition, in: url)
            try await keepHere(here)
            #expect(try closed() == nil)
            #expect(try await !isShort(here))
            for node in [there, here] { await node.close() }
        }

        @Test func `PostgreSQL that is named again in its own place loses its whole history`() async throws {
            let (there, here) = try await nodes()
            try renewLease()
            try await keepHere(here)
            #expect(try await isShort(here))
            try renewLease()
            try await keepHere(here)
            #expect(try await !isShort(here))
            for node in [there, here] { await node.close() }
        }

        @Test func `a store that is named again in its own place leaves no unclaimed end for a while`() async throws {
            let (there, here) = try await nodes()
            try await keepThere(there)
            try await watch(there).read()
            let id = try await watch(there).renew(try watch(there).current())
            #expect(try #require(id).unclaimedEnd == nil)
            #expect((640...670).contains(try number("settles_at - \(Self.clock)", of: "claim_keeper") ?? 0))
            try renewLease()
            try await keepHere(here)
            #expect(try await !isShort(here))
            for node in [there, here] { await node.close() }
        }

        @Test func `changes there and back cost six seconds each, and no claim is forgotten`() async throws {
            let (there, here) = try await nodes()
            try renewLease()
            try await keepHere(here)
            let first = try #require(try closed())
            let taken = sampleClaim(device)
            let date = SystemClock().now.seconds + 50
            #expect(try await claim(taken, on: here.replay, at: date) == .claimed)

            try await keepThere(here)
            #expect(try await claim(taken, on: try watch(there).secondClaims, at: date) == .taken(taken))
            try await watch(there).read()
            // The Redis does not have the id of the history, so the node names a new one. The new id has an unclaimed end (the
            // latest date of a claim that PostgreSQL may lack), so the Redis refuses requests dated now for six seconds only.
            let id = try await watch(there).renew(try watch(there).current())
            #expect(try #require(id).unclaimedEnd != nil)

            // Simulates that the first change of the keeper (the store of the claims) was minutes ago.
            try server.sql("UPDATE claim_history SET closed_from = closed_from - 100", in: url)
            try renewLease()
            try await keepHere(here)
            let second = try #require(try closed())
            // The two intervals touch, so PostgreSQL stores them as one.
            #expect(second.lowerBound == first.lowerBound - 100 && second.upperBound >= first.upperBound)
            #expect(try await claim(taken, on: here.replay, at: date) == .taken(taken))
            #expect(try await isShort(here))
            for node in [there, here] { await node.close() }
        }

        @Test func `a closed interval that ended long ago is replaced by the next one`() async throws {
            let (there, here) = try await nodes()
            try server.sql(
                "UPDATE claim_history SET closed_from = 7, closed_to = \(Self.clock) - 1000", in: url)
            try renewLease()
            let before = SystemClock().now.seconds
            try await keepHere(here)
            #expect(try #require(try closed()).lowerBound >= before - 690)
            for node in [there, here] { await node.close() }
        }

        @Test func `a renewal after more than five seconds breaks the lease, and so does a clock that fell`()
            async throws
        {
            let (there, here) = try await nodes()
            try server.sql("UPDATE claim_keeper SET renewed_at = 1000", in: url)
            for (renewal, since) in [(1005, 0), (1005, 0), (1011, 1011), (1016, 0), (1015, 1015)] as [(Int64, Int64)] {
                try server.sql("UPDATE claim_keeper SET unbroken_since = 0", in: url)
                try server.sql("UPDATE claim_keeper SET renewed_at = \(renewal)", in: url)
                #expect(try number("unbroken_since", of: "claim_keeper") == since, "renewed at \(renewal)")
            }
            // A node that reads the row renews the lease too. The pause since the last renewal was long, so `unbroken_since` is now.
            try await watch(there).read()
            #expect(try #require(try number("unbroken_since", of: "claim_keeper")) > 1_000_000)
            for node in [there, here] { await node.close() }
        }

        @Test(arguments: [false, true])
        func `tables in use have no unbroken lease after they are migrated`(_ isInUse: Bool) async throws {
            _ = try await DatabaseCheck.inLongTransaction(try ServerAddress(url)) { connection in
                _ = try connection.rows(Schema.creation)
                let before = Schema.migrations.prefix(while: { $0.statements != Schema.keeperHere })
                for (index, migration) in before.enumerated() {
                    _ = try connection.results(migration.statements.map { Statement($0) })
                    _ = try connection.rows(
                        "INSERT INTO \(Schema.table) (version, oldest) VALUES (\(index + 1), 1)")
                }
                guard isInUse else { return 0 }
                return try connection.rows("UPDATE claim_keeper SET renewed_at = 1").changes
            }
            #expect(try await PostgreSQLStores.migrate(url))
            let since = try #require(try number("unbroken_since", of: "claim_keeper"))
            #expect(isInUse ? since > SystemClock().now.seconds - 60 : since == 0)
        }
    }
}
