import AuthContract
import AuthService
import Bytes
import ServiceTestHelpers
import Testing

@testable import PostgreSQLStores

extension AgainstPostgreSQL {
    @Suite
    struct ClaimTests {
        private let server: PostgreSQLServer
        private let url: String
        private let device: DeviceRecord
        private let now = FixedClock().now

        init() async throws {
            server = try await PostgreSQLServer.shared()
            url = try server.database()
            device = try sampleDevice()
        }

        private func claim(
            _ claims: [ReplayClaim], on stores: PostgreSQLStores, at time: UnixTime? = nil, now: UnixTime? = nil,
            futureWindow: Int64 = 60, tag: ClaimTag? = nil
        ) async throws -> ClaimOutcome {
            let time = time ?? self.now
            return try await stores.replay.claim(
                claims, of: device.deviceID, timestamp: time, expiresAt: time + 660, now: now ?? time,
                futureWindow: futureWindow, tag: tag)
        }

        @Test func `of 64 callers on two nodes that claim one pair in either order, one succeeds`() async throws {
            let nodes = [try await open(url), try await open(url)]
            for _ in 0..<4 {
                let pair = [sampleClaim(device), sampleClaim(device)]
                let outcomes = try await withThrowingTaskGroup(of: ClaimOutcome.self) { group in
                    for number in 0..<64 {
                        group.addTask {
                            let claims = number % 3 == 0 ? pair.reversed() : pair
                            return try await claim(
                                claims, on: nodes[number % 2], at: now + Int64(number % 5) * 200, now: now)
                        }
                    }
                    return try await group.reduce(into: [ClaimOutcome]()) { $0.append($1) }
                }
                #expect(outcomes.count { $0 == .claimed } == 1)
                #expect(outcomes.count { if case .taken = $0 { true } else { false } } == 63)
            }
            for node in nodes { await node.close() }
        }

        @Test func `the sweep purges what has expired by both clocks, and refuses what it no longer knows`()
            async throws
        {
            let stores = try await open(url)
            let (old, live) = (sampleClaim(device), sampleClaim(device))
            #expect(try await claim([old], on: stores, at: now - 3000) == .claimed)
            #expect(try await claim([live], on: stores) == .claimed)
            try await stores.sweeper?.sweep()
            #expect(try server.sql("SELECT count(*) FROM claims", in: url) == "1")
            #expect(try await claim([live], on: stores) == .taken(live))
            // If a node's clock steps back, the purged claim cannot be made again.
            #expect(try await claim([old], on: stores, at: now - 3000) == .expired)
            await stores.close()
        }

        @Test func `a node whose clock is far ahead frees no claim of the others`() async throws {
            let stores = try await open(url)
            let claim = sampleClaim(device)
            #expect(try await self.claim([claim], on: stores) == .claimed)
            // The server's clock is not ahead, so claims that are live by that clock are not purged.
            try server.sql("UPDATE claim_slots SET stretch = 3000000000 / 512 WHERE stretch IS NOT NULL", in: url)
            let ahead = try await open(url, clock: FixedClock(now: UnixTime(4_000_000_000)))
            try await ahead.sweeper?.sweep()
            #expect(try server.sql("SELECT count(*) FROM claims", in: url) == "1")
            await ahead.close()
            await stores.close()
        }

        @Test func `a claim that cannot share its table is refused, not forgotten`() async throws {
            let stores = try await open(url)
            #expect(try await claim([sampleClaim(device)], on: stores) == .claimed)
            await #expect(throws: StoreError.self) {
                try await claim(
                    [sampleClaim(device)], on: stores, at: now + Int64(ClaimTable.slots * ClaimTable.stretch))
            }
            await stores.close()
        }

        @Test func `a full store refuses and keeps every claim`() async throws {
            var options = PostgreSQLStores.Options.patient
            options.maximumClaims = 10
            let stores = try await open(url, options: options)
            // Stops the sweeper, so that only the test measures the size, below.
            stores.sweeper?.finish()
            let claims = (0..<5000).map { _ in sampleClaim(device) }
            try await withThrowingDiscardingTaskGroup { group in
                for part in 0..<50 {
                    group.addTask {
                        for claim in claims[part * 100..<part * 100 + 100] {
                            let outcome = try await self.claim([claim], on: stores)
                            #expect(outcome == .claimed)
                        }
                    }
                }
            }
            try await stores.sweeper?.sweep()
            await #expect(throws: StoreError.self) { try await claim([sampleClaim(device)], on: stores) }
            for claim in claims.prefix(50) { #expect(try await self.claim([claim], on: stores) == .taken(claim)) }
            await stores.close()
        }

        @Test func `a loss refuses the dates around each reading, up to the app's future window`() async throws {
            let stores = try await open(url)
            #expect(try await claim([sampleClaim(device)], on: stores, at: now - 100) == .claimed)
            let marked = "UPDATE claim_history SET identity = 'another server', clock = \(now.seconds)"
            try server.sql(marked, in: url)
            // The first call, at `now + 1000`, finds that claims were lost. So requests of this date are refused until 30 s
            // (clock tolerance) and the window (60 s) have passed.
            #expect(try await claim([sampleClaim(device)], on: stores, at: now + 1000) == .historyLost(retryAfter: 91))
            // The dates around `now` and around `now + 1000` are refused, each up to a time that depends on the window.
            for (date, window, seconds) in [
                (-690, 60, 781), (0, 60, 91), (90, 60, 1), (89, 200, 142), (310, 300, 1021), (1090, 60, 1), (35, 0, 1),
            ] as [(Int64, Int64, Int64)] {
                let outcome = try await claim(
                    [sampleClaim(device)], on: stores, at: now + date, futureWindow: window)
                #expect(outcome == .historyLost(retryAfter: seconds), "dated \(date) with a window of \(window)")
            }
            // When the claims were lost, the claims of these dates had already expired. They are lost too: if the clock steps
            // back, their requests must be refused.
            for (date, window) in [(-691, 60), (91, 60), (309, 60), (36, 0)] as [(Int64, Int64)] {
                let outcome = try await claim(
                    [sampleClaim(device)], on: stores, at: now + date, futureWindow: window)
                #expect(outcome == .expired, "dated \(date) with a window of \(window)")
            }
            #expect(try await claim([sampleClaim(device)], on: stores, at: now + 1091) == .claimed)
            await stores.close()
        }

        @Test func `claims that had expired when all were lost are not free for a clock that steps back`() async throws
        {
            let (stores, old) = (try await open(url), sampleClaim(device))
            #expect(try await claim([old], on: stores) == .claimed)
            stores.sweeper?.finish()
            try server.sql("DELETE FROM claims", in: url)
            try server.sql("UPDATE claim_history SET identity = 'another server', clock = 0", in: url)
            guard case .historyLost = try await claim([sampleClaim(device)], on: stores, at: now + 691) else {
                Issue.record("no loss is recorded")
                return
            }
            // No sweep has found yet that the clock fell back.
            #expect(try await claim([old], on: stores) == .expired)
            await stores.close()
        }

        @Test func `a loss of all claims refuses the dates since the clock's last jump`() async throws {
            let stores = try await open(url)
            stores.sweeper?.finish()
            try server.sql(
                """
                UPDATE claim_history SET identity = 'another server', clock = \(now.seconds),
                  runs_from = '{\(now.seconds - 9000),\(now.seconds - 4000)}',
                  runs_to = '{\(now.seconds - 8000),\(now.seconds)}'
                """, in: url)
            #expect(try await claim([sampleClaim(device)], on: stores) == .historyLost(retryAfter: 91))
            #expect(
                try await claim([sampleClaim(device)], on: stores, at: now - 4690) == .historyLost(retryAfter: 4781))
            #expect(try await claim([sampleClaim(device)], on: stores, at: now - 4691) == .expired)
            await stores.close()
        }

        @Test func `the database refuses the dates that the history of claims refuses, and for as long`() async throws {
            let stores = try await open(url)
            stores.sweeper?.finish()
            for round in 0..<5 {
                let readings = (0..<3).map { _ in now.seconds + Int64.random(in: 200...1400) }
                var history = ClaimHistory(
                    loss: HistoryLoss(
                        around: readings.map { $0...$0 }, clocksApart: ClaimHistory.clockTolerance, lease: 0))
                // Each loss replaces `purged_to`. After the last loss, `purged_to` is the last reading minus the tolerance: claims
                // that had expired by the clock of every node are lost too.
                history.recall(purgedTo: readings[2] - ClaimHistory.clockTolerance)
                let marked = """
                    UPDATE claim_history SET lost_from = '{}', lost_to = '{}', runs_from = '{}', runs_to = '{}',
                      identity = 'another server', clock = 0;
                    """
                try server.sql(marked, in: url)
                // Each claim is the first after a failover. The store records that claims of the dates around the node's clock
                // were lost.
                for reading in readings {
                    try server.sql("UPDATE claim_history SET identity = 'another server'", in: url)
                    guard case .historyLost = try await claim([sampleClaim(device)], on: stores, at: UnixTime(reading))
                    else {
                        Issue.record("no loss is recorded")
                        return
                    }
                }
                for number in 0..<40 {
                    let base = number < 30 ? UnixTime(readings[number % 3]) : now + 800
                    let (date, window) = (base + .random(in: -760...400), [0, 5, 60, 300][number % 4] as Int64)
                    let outcome = try await claim([sampleClaim(device)], on: stores, at: date, futureWindow: window)
                    let refusal = history.refusal(
                        timestamp: date, expiresAt: date + ReplayClaim.life, now: date, futureWindow: window)
                    #expect(
                        outcome == refusal ?? .claimed,
                        "\(round): \(date) with a window of \(window) after \(readings)")
                }
            }
            await stores.close()
        }

        @Test func `a loss is recorded once, whichever node finds it`() async throws {
            let nodes = [try await open(url), try await open(url)]
            try server.sql("UPDATE claim_history SET identity = 'another server'", in: url)
            try await withThrowingDiscardingTaskGroup { group in
                for number in 0..<32 {
                    group.addTask {
                        let outcome = try await claim([sampleClaim(device)], on: nodes[number % 2])
                        guard case .historyLost = outcome else {
                            Issue.record("a call got \(outcome)")
                            return
                        }
                    }
                }
            }
            #expect(try server.sql("SELECT cardinality(lost_from) FROM claim_history", in: url) == "3")
            for node in nodes { await node.close() }
        }

        private func isLost(_ outcome: ClaimOutcome) -> Bool { if case .historyLost = outcome { true } else { false } }

        @Test func `after a move from another engine, requests that it may have accepted are refused`() async throws {
            _ = try await PostgreSQLStores.importRows(url, from: { _ in })
            let (stores, now) = (try await open(url, clock: SystemClock()), SystemClock().now)
            for date in [now - 300, now, now + 60] {
                #expect(isLost(try await claim([sampleClaim(device)], on: stores, at: date, now: now)))
            }
            #expect(try await claim([sampleClaim(device)], on: stores, at: now + 200) == .claimed)
            await stores.close()
        }

        // MARK: The keeper

        private static let redis = ClaimPlace("redis://h:6379/0?prefix=synheart-auth:")

        private func node(
            _ place: ClaimPlace, takingOverAfter vacancy: Duration = .seconds(3600),
            trouble: @escaping @Sendable () async -> StoreError? = { nil }
        ) async throws -> PostgreSQLStores {
            var options = PostgreSQLStores.Options.patient
            options.claims = place
            options.vacancy = vacancy
            options.troubleOfClaims = trouble
            return try await PostgreSQLStoresTests.open(url, options: options, clock: SystemClock())
        }

        private func current(_ stores: PostgreSQLStores) throws -> ClaimHistoryID {
            try #require(stores.keeper).current()
        }

        @Test func `when PostgreSQL becomes the keeper, the claims in Redis are treated as lost`() async throws {
            let (here, now) = (try await node(.postgresql), SystemClock().now)
            #expect(try await claim([sampleClaim(device)], on: here, at: now) == .claimed)
            let inRedis = try await node(Self.redis)
            await #expect(throws: StoreError.self) { try await claim([sampleClaim(device)], on: inRedis) }
            #expect(throws: StoreError.self) { try current(inRedis) }
            let before = try await here.setKeeper(Self.redis, actor: "test")
            #expect(before.place == .postgresql)
            await #expect(throws: StoreError.self) { try await claim([sampleClaim(device)], on: here, at: now) }
            // Simulates a node that may have accepted requests with claims in Redis alone, without second claims in PostgreSQL.
            try server.sql("UPDATE claim_keeper SET settles_at = \(now.seconds + 600)", in: url)
            #expect(try await here.setKeeper(.postgresql, actor: "test").place == Self.redis)
            #expect(isLost(try await claim([sampleClaim(device)], on: here, at: now)))
            // Nodes that used Redis, the former keeper, may have made claims there until their leases ended.
            let present = SystemClock().now
            #expect(isLost(try await claim([sampleClaim(device)], on: here, at: present + 30 + 60, now: present)))
            let events = try await here.audit.events(app: nil, device: nil, before: nil, limit: 100).map(\.event)
            #expect(events.count { $0.code == .claimKeeperChanged && $0.actor == "test" } == 2)
            for stores in [here, inRedis] { await stores.close() }
        }

        @Test func `each naming of a keeper gives a new id, even if the store stays the same`() async throws {
            let stores = try await node(.postgresql)
            let before = try await stores.namedKeeper()
            #expect(try await stores.setKeeper(.postgresql, actor: "test") == before)
            let after = try await stores.namedKeeper()
            #expect(after.place == .postgresql && after.id != before.id)
            #expect(isLost(try await claim([sampleClaim(device)], on: stores, at: SystemClock().now)))
            await stores.close()
        }

        @Test func `a verification that is still known is repeated, although the history of its time is lost`()
            async throws
        {
            let (stores, now) = (try await node(.postgresql), SystemClock().now)
            let (claim, tag) = (sampleClaim(device), ClaimTag(claim: sampleClaim(device)))
            #expect(try await self.claim([claim], on: stores, at: now, tag: tag) == .claimed)
            _ = try await stores.setKeeper(.postgresql, actor: "test")
            #expect(try await self.claim([claim], on: stores, at: now, tag: tag) == .claimed)
            #expect(isLost(try await self.claim([claim], on: stores, at: now)))
            await stores.close()
        }

        @Test func `in a new database the first node names its store at once`() async throws {
            let first = try await node(Self.redis)
            #expect(try await first.namedKeeper().place == Self.redis)
            _ = try current(first)
            let second = try await node(.postgresql)
            #expect(throws: StoreError.self) { try current(second) }
            await #expect {
                try await claim([sampleClaim(device)], on: second, at: SystemClock().now)
            } throws: { "\($0)".contains("keeper") }
            for stores in [first, second] { await stores.close() }
        }

        @Test func `a starting node whose store cannot be used does not take over`() async throws {
            let first = try await node(.postgresql)
            await first.close()
            let (isUsable, questions) = (Locked(false), Locked(0))
            let second = try await node(Self.redis, takingOverAfter: .milliseconds(1)) {
                questions.withLock { $0 += 1 }
                return isUsable.withLock { $0 } ? nil : StoreError(.unavailable, "connection refused")
            }
            try await untilTrue { questions.withLock { $0 } >= 2 }
            #expect(try await second.namedKeeper().place == .postgresql)
            #expect { try current(second) } throws: { "\($0)".contains("connection refused") }
            isUsable.withLock { $0 = true }
            try await untilTrue { (try? current(second)) != nil }
            #expect(try await second.namedKeeper().place == Self.redis)
            await second.close()
        }

        @Test func `a starting node takes over once no node renews the lease, and one that was replaced never does`()
            async throws
        {
            let first = try await node(Self.redis)
            let second = try await node(.postgresql, takingOverAfter: .seconds(5))
            // The first node renews the lease, so the second node does not take over.
            try await Task.sleep(for: .seconds(7))
            #expect(try await second.namedKeeper().place == Self.redis)
            await first.close()
            try await untilTrue { (try? current(second)) != nil }
            #expect(try await second.namedKeeper().place == .postgresql)
            let third = try await node(Self.redis, takingOverAfter: .milliseconds(1))
            _ = try await second.setKeeper(Self.redis, actor: "test")
            try await untilTrue { (try? current(third)) != nil }
            await third.close()
            // The second node's store was the keeper before, so the node does not take over.
            try await Task.sleep(for: .seconds(7))
            #expect(try await second.namedKeeper().place == Self.redis)
            await second.close()
        }

        @Test func `of concurrent processes, only one replaces an id`() async throws {
            let nodes = [try await node(.postgresql), try await node(.postgresql)]
            let id = try current(nodes[0])
            let renewed = try await withThrowingTaskGroup(of: ClaimHistoryID?.self) { group in
                for number in 0..<8 {
                    group.addTask { try await nodes[number % 2].keeper?.renew(id) }
                }
                return try await group.reduce(into: [ClaimHistoryID]()) { if let id = $1 { $0.append(id) } }
            }
            #expect(renewed.count == 1)
            for node in nodes { await node.close() }
        }

        @Test func `claims of tables of version 1 stay taken`() async throws {
            let (now, old) = (SystemClock().now, sampleClaim(device))
            _ = try await DatabaseCheck.inLongTransaction(try ServerAddress(url)) { connection in
                _ = try connection.rows(Schema.creation)
                _ = try connection.results(Schema.migrations[0].statements.map { Statement($0) })
                _ = try connection.rows("INSERT INTO \(Schema.table) (version, oldest) VALUES (1, 1)")
                return try connection.rows(
                    "SELECT outcome FROM take_claims($1, $2, $3, $2, 60, 30)",
                    [.claims([old]), .time(now), .time(now + 660)]
                ).count
            }
            #expect(try await PostgreSQLStores.migrate(url))
            let stores = try await node(.postgresql)
            #expect(try await claim([old], on: stores, at: now) == .taken(old))
            #expect(try await claim([sampleClaim(device)], on: stores, at: now) == .claimed)
            await stores.close()
        }

        private func untilTrue(_ condition: () async throws -> Bool) async throws {
            let end = ContinuousClock.now + .seconds(20)
            while try await !condition() {
                try #require(ContinuousClock.now < end, "it did not happen")
                try await Task.sleep(for: .milliseconds(50))
            }
        }

        @Test(arguments: [-3600, -40, 40, 3600] as [Int64])
        func `a node whose clock is wrong claims nothing, and stops no other node`(_ ahead: Int64) async throws {
            var options = PostgreSQLStores.Options()
            options.deadline = .seconds(20)
            let now = SystemClock().now
            let stores = try await open(url, options: options, clock: SystemClock())
            await #expect {
                try await claim([sampleClaim(device)], on: stores, at: now + ahead)
            } throws: {
                ($0 as? StoreError)?.reason.contains(ahead < 0 ? "behind PostgreSQL's" : "ahead of PostgreSQL's")
                    == true
            }
            #expect(try server.sql("SELECT count(stretch) FROM claim_slots", in: url) == "0")
            let wrong = try await open(url, options: options, clock: FixedClock(now: now + ahead))
            try server.sql("UPDATE claim_slots SET stretch = 0", in: url)
            try await wrong.sweeper?.sweep()
            #expect(try server.sql("SELECT count(stretch) FROM claim_slots", in: url) == "8")
            try server.sql("UPDATE claim_slots SET stretch = NULL", in: url)
            #expect(try await claim([sampleClaim(device)], on: stores, at: now) == .claimed)
            await wrong.close()
            await stores.close()
        }

        @Test func `after the server's clock was ahead, claims work again and none is forgotten`() async throws {
            let (stores, now) = (try await open(url, clock: SystemClock()), SystemClock().now)
            let (right, wrong) = (sampleClaim(device), sampleClaim(device))
            #expect(try await claim([right], on: stores, at: now) == .claimed)
            // For an hour, the clocks of the server and of this node were ten hours ahead, so all earlier claims were purged.
            let (first, last) = (now + 36_000, now + 39_600)
            #expect(try await claim([wrong], on: stores, at: last) == .claimed)
            try server.sql(
                """
                DELETE FROM claims;
                UPDATE claim_slots SET stretch = \(last.seconds + 660) / 512;
                UPDATE claim_history SET clock = \(last.seconds), purged_to = \(last.seconds - 60),
                  runs_from = '{\(first.seconds)}', runs_to = '{\(last.seconds)}'
                """, in: url)
            #expect(try await claim([right], on: stores, at: now) == .expired)
            try await stores.sweeper?.sweep()
            #expect(isLost(try await claim([right], on: stores, at: now)))
            #expect(try await claim([sampleClaim(device)], on: stores, at: now + 200) == .claimed)
            for date in [first, first + 1800, last, last + 60] {
                #expect(isLost(try await claim([wrong], on: stores, at: date)))
            }
            // Claims are in a ring of tables, by the time at which they expire. The claims of these two dates are in different
            // tables, at any time of day.
            #expect(try await claim([sampleClaim(device)], on: stores, at: now + 30_000) == .claimed)
            #expect(try await claim([sampleClaim(device)], on: stores, at: last + 3408) == .claimed)
            await stores.close()
        }

        @Test func `a long transaction that reads the tables does not stop claims`() async throws {
            let (stores, now) = (try await open(url), now)
            let (old, next) = (sampleClaim(device), sampleClaim(device))
            #expect(try await claim([old], on: stores, at: now - 3000) == .claimed)
            // Holds a lock, as pg_dump does.
            let dump = Connection(address: try ServerAddress(url), settings: [], name: "dump")
            try await dump.read("BEGIN; LOCK TABLE claims IN ACCESS SHARE MODE")
            try await stores.sweeper?.sweep()
            #expect(try server.sql("SELECT count(*) FROM claims", in: url) == "1")
            // A replay of the claim that could not be removed is still refused. Claims that expire later reuse its table.
            #expect(try await claim([old], on: stores, at: now - 3000) == .expired)
            let turn = Int64(ClaimTable.slots * ClaimTable.stretch)
            #expect(try await claim([next], on: stores, at: now - 3000 + turn) == .claimed)
            #expect(try await claim([old], on: stores, at: now - 3000 + turn) == .claimed)
            #expect(try await claim([next], on: stores, at: now - 3000 + turn) == .taken(next))
            await dump.close()
            dump.thread.finish()
            await stores.close()
        }

        @Test func `expired rows that could not be removed are removed later, and live claims stay`() async throws {
            let stores = try await open(url)
            #expect(try await claim([sampleClaim(device)], on: stores, at: now - 3000) == .claimed)
            let dump = Connection(address: try ServerAddress(url), settings: [], name: "dump")
            try await dump.read("BEGIN; LOCK TABLE claims IN ACCESS SHARE MODE")
            try await stores.sweeper?.sweep()
            let live = sampleClaim(device)
            #expect(try await claim([live], on: stores) == .claimed)
            await dump.close()
            dump.thread.finish()
            // After a failed removal, sweeps pause before the next attempt, because an attempt blocks claims. So this sweep
            // removes nothing.
            try await stores.sweeper?.sweep()
            #expect(try server.sql("SELECT count(*) FROM claims", in: url) == "2")
            try server.sql("UPDATE claim_slots SET left_at = 0 WHERE left_at IS NOT NULL", in: url)
            try await stores.sweeper?.sweep()
            #expect(try server.sql("SELECT count(*) FROM claims", in: url) == "1")
            #expect(try await claim([live], on: stores) == .taken(live))
            await stores.close()
        }

        @Test func `a user who may not truncate still claims, and the operator hears of it`() async throws {
            let first = try await open(url)
            #expect(try await claim([sampleClaim(device)], on: first, at: now - 3000) == .claimed)
            await first.close()
            let name = String(url.split(separator: "/").last ?? "")
            try server.sql(
                """
                CREATE ROLE poor_\(name) LOGIN;
                GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO poor_\(name)
                """, in: url)
            let poor = url.replacing("auth@", with: "poor_\(name)@")
            let stores = try await open(poor)
            try await stores.sweeper?.sweep()
            #expect(try server.sql("SELECT count(stretch) FROM claim_slots", in: url) == "0")
            let found = await stores.diagnose().first { $0.check == "postgresql_rights" }
            #expect(found?.level == .failure && found?.sentence.contains("claims_0") == true, "\(found as Any)")
            await stores.close()
        }

        @Test func `a starting node removes claims that expired while no node ran`() async throws {
            let before = try await open(url)
            #expect(try await claim([sampleClaim(device)], on: before, at: now - 4096) == .claimed)
            await before.close()
            let stores = try await open(url)
            #expect(try await claim([sampleClaim(device)], on: stores) == .claimed)
            await stores.close()
        }

        @Test func `a copy of the database on the same server is a loss of history`() async throws {
            let stores = try await open(url)
            #expect(try await claim([sampleClaim(device)], on: stores) == .claimed)
            await stores.close()
            let name = String(url.split(separator: "/").last ?? "")
            try server.sql("CREATE DATABASE copy_\(name) TEMPLATE \(name)")
            let copy = try await open(server.url("copy_\(name)"))
            #expect(isLost(try await claim([sampleClaim(device)], on: copy)))
            await copy.close()
        }

        @Test func `a database that comes back after a copy of it was used is a loss of history`() async throws {
            let stores = try await node(.postgresql)
            #expect(try await claim([sampleClaim(device)], on: stores, at: SystemClock().now) == .claimed)
            let name = String(url.split(separator: "/").last ?? "")
            let id = try current(stores).text
            func rename(_ pairs: (String, String)...) throws {
                for (from, to) in pairs {
                    try server.sql("ALTER DATABASE \(from) ALLOW_CONNECTIONS false")
                    try server.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '\(from)'")
                    if to == "before_\(name)" { try server.sql("CREATE DATABASE copy_\(name) TEMPLATE \(name)") }
                    try server.sql("ALTER DATABASE \(from) RENAME TO \(to)")
                }
                try server.sql("ALTER DATABASE \(name) ALLOW_CONNECTIONS true")
            }
            try rename((name, "before_\(name)"), ("copy_\(name)", name))
            // The node now uses the copy of the database, where a claim finds that the history of claims was lost.
            try await untilTrue {
                let outcome = try? await claim([sampleClaim(device)], on: stores, at: SystemClock().now)
                return outcome.map(isLost) ?? false
            }
            // Waits until the node has renewed its lease in the copy of the database. The original database lacks this renewal.
            let renewed = try server.sql("SELECT renewed_at FROM claim_keeper", in: url)
            try await untilTrue {
                try server.sql("SELECT renewed_at > \(renewed) + 7 FROM claim_keeper", in: url) == "t"
            }
            try rename((name, "tried_\(name)"), ("before_\(name)", name))
            try await untilTrue {
                let present = try? current(stores).text
                let outcome = try? await claim([sampleClaim(device)], on: stores, at: SystemClock().now)
                return present != nil && present != id && outcome.map(isLost) ?? false
            }
            await stores.close()
        }

        @Test func `intervals of long ago are forgotten`() async throws {
            let stores = try await open(url)
            try server.sql("UPDATE claim_history SET lost_from = '{0}', lost_to = '{1000}'", in: url)
            try await stores.sweeper?.sweep()
            #expect(try server.sql("SELECT cardinality(lost_from) FROM claim_history", in: url) == "0")
            await stores.close()
        }
    }
}

extension Connection {
    /// Runs statements without a surrounding transaction, so that a `BEGIN` stays open.
    fileprivate func read(_ statements: String) throws {
        begin(nil, deadline: .now + .seconds(20))
        try open()
        for statement in statements.split(separator: "; ") { _ = try rows(String(statement)) }
    }
}
