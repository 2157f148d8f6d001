import AuthContract
import AuthService
import ServiceTestHelpers
import Testing

@testable import PostgreSQLStores

extension AgainstPostgreSQL {
    /// Failovers under `Options.isFailoverLossless`. Each test has its own servers.
    @Suite
    struct FailoverTests {
        private let primary: PostgreSQLServer
        private let replica: PostgreSQLServer
        private let device: DeviceRecord

        init() throws {
            primary = try PostgreSQLServer(settings: ["wal_level": "replica", "max_wal_senders": "4"])
            try primary.start()
            replica = try PostgreSQLServer(.replica(of: primary))
            try replica.start()
            device = try sampleDevice()
        }

        private func waitForReplica() throws {
            try primary.sql("ALTER SYSTEM SET synchronous_standby_names = '*'")
            try primary.sql("SELECT pg_reload_conf()")
            while try primary.sql("SELECT sync_state FROM pg_stat_replication") != "sync" {}
        }

        /// A node without background work. The tests call its checks and sweeps.
        private func node() async throws -> PostgreSQLStores {
            var options = PostgreSQLStores.Options.patient
            options.deadline = .seconds(2)
            options.isFailoverLossless = true
            options.clockTolerance = ClaimHistory.clockTolerance
            let url = "postgresql://auth@127.0.0.1:\(primary.port),127.0.0.1:\(replica.port)/postgres"
            let stores = try await open(url, options: options, clock: SystemClock())
            (stores.keeper as? KeeperWatch)?.finish()
            stores.sweeper?.finish()
            return stores
        }

        private func claim(
            _ claim: ReplayClaim, by node: PostgreSQLStores, ahead: Int64, life: Int64 = ReplayClaim.life,
            now: UnixTime = SystemClock().now, tag: ClaimTag? = nil
        ) async throws -> ClaimOutcome {
            try await node.replay.claim(
                [claim], of: device.deviceID, timestamp: now + ahead, expiresAt: now + ahead + life, now: now,
                futureWindow: 60, tag: tag)
        }

        /// Retries a call until it succeeds. Each attempt ends by its own deadline.
        private func eventually<Value>(_ call: () async throws -> Value) async throws -> Value {
            let end = ContinuousClock.now + .seconds(30)
            while true {
                do { return try await call() } catch { if ContinuousClock.now > end { throw error } }
            }
        }

        private func failOver() throws {
            try primary.kill()
            try replica.promote()
        }

        /// Waits until a node has read the keeper's row and looked for its own claims in the database.
        private func look(_ node: PostgreSQLStores) async throws {
            let watch = try #require(node.keeper as? KeeperWatch)
            try await eventually { guard await watch.read() else { throw StoreError(.unavailable, "no answer yet") } }
        }

        /// Repeats the claim while the outcome is `historyLost` with a wait of at most a lease. Such an outcome means that
        /// the store does not judge requests yet. Returns the first other outcome.
        private func judged(_ made: ReplayClaim, by node: PostgreSQLStores) async throws -> ClaimOutcome {
            while true {
                let outcome = try await eventually { try await claim(made, by: node, ahead: 40) }
                guard case .historyLost(let seconds) = outcome, seconds <= ClaimHistory.lease else { return outcome }
            }
        }

        /// Whether the failover lost no claims. If so, the store accepts a fresh request as soon as it judges requests again.
        private func isKept(_ node: PostgreSQLStores) async throws -> Bool {
            switch try await judged(sampleClaim(device), by: node) {
            case .claimed: return true
            case .historyLost: return false
            case let outcome:
                Issue.record("a fresh request is \(outcome)")
                return false
            }
        }

        /// Makes a claim that only the primary has, and promotes the replica.
        private func lose(by node: PostgreSQLStores) async throws -> ReplayClaim {
            let end = try primary.sql("SELECT pg_current_wal_lsn()")
            while try replica.sql("SELECT pg_last_wal_replay_lsn() >= '\(end)'") != "t" {}
            replica.stop()
            let lost = sampleClaim(device)
            #expect(try await claim(lost, by: node, ahead: 40) == .claimed)
            try primary.kill()
            try replica.start()
            try replica.promote()
            return lost
        }

        private func isLost(_ outcome: ClaimOutcome) -> Bool {
            if case .historyLost(let seconds) = outcome { seconds > 40 } else { false }
        }

        @Test func `a replica with every claim is used after the time of a lease, and no claim is made twice`()
            async throws
        {
            try waitForReplica()
            let (one, other) = (try await node(), try await node())
            let claims = (0..<20).map { _ in sampleClaim(device) }
            for (place, made) in claims.enumerated() {
                #expect(try await claim(made, by: place % 2 == 0 ? one : other, ahead: 40) == .claimed)
            }
            try failOver()
            let outcome = try await eventually { try await claim(claims[0], by: one, ahead: 40) }
            guard case .historyLost(let seconds) = outcome, (1...5).contains(seconds) else {
                Issue.record("a request is judged at once: \(outcome)")
                return
            }
            #expect(try await isKept(one))
            // Requests dated before the failover are judged too, because no claim is lost.
            #expect(try await claim(sampleClaim(device), by: one, ahead: -20) == .claimed)
            for node in [one, other] {
                for made in claims {
                    #expect(try await eventually { try await claim(made, by: node, ahead: 40) } == .taken(made))
                }
                await node.close()
            }
        }

        @Test(arguments: [false, true])
        func `a replica that lacks a claim of any node lost all claims`(_ isAsked: Bool) async throws {
            let (one, other) = (try await node(), try await node())
            #expect(try await claim(sampleClaim(device), by: one, ahead: 0) == .claimed)
            let lost = try await lose(by: other)
            // The first node finds its claims. But the store judges no request until the other node has had time to look for its
            // own claims.
            let outcome = try await eventually { try await claim(lost, by: one, ahead: 40) }
            #expect(outcome != .claimed)
            #expect(try replica.sql("SELECT judged_at > 0 FROM claim_history") == "t")
            if isAsked {
                #expect(isLost(try await eventually { try await claim(sampleClaim(device), by: other, ahead: 40) }))
            } else {
                try await look(other)
            }
            for node in [one, other] {
                #expect(isLost(try await judged(lost, by: node)))
                await node.close()
            }
        }

        @Test func `a replica that lacks a claim of any of the last eight transactions lost all claims`() async throws {
            try waitForReplica()
            let node = try await node()
            let claims = (0..<8).map { _ in sampleClaim(device) }
            for made in claims { #expect(try await claim(made, by: node, ahead: 40) == .claimed) }
            try failOver()
            // Simulates that the first claim committed last, and was lost. Of concurrent transactions, the last one to commit may
            // be acknowledged first.
            let digits = [claims[0].high, claims[0].low].map { half in
                let digits = String(half, radix: 16)
                return String(repeating: "0", count: 16 - digits.count) + digits
            }
            let deleted = try replica.sql("DELETE FROM claims WHERE claim = '\(digits.joined())' RETURNING 1")
            #expect(deleted.contains("1"))
            #expect(try await !isKept(node))
            await node.close()
        }

        @Test func `claims from an earlier timeline do not prove that the replica is complete`() async throws {
            try waitForReplica()
            let node = try await node()
            #expect(try await claim(sampleClaim(device), by: node, ahead: 0) == .claimed)
            // Simulates claims that were made on another timeline.
            try primary.sql("UPDATE claim_history SET identity = regexp_replace(identity, ':[^:]*', ':00000000')")
            try failOver()
            #expect(try await !isKept(node))
            await node.close()
        }

        @Test func `a node whose clock is wrong changes nothing, and looks again`() async throws {
            try waitForReplica()
            let node = try await node()
            #expect(try await claim(sampleClaim(device), by: node, ahead: 0) == .claimed)
            try failOver()
            try await eventually { _ = try await node.apps.apps() }
            let before = try replica.sql("SELECT * FROM claim_history")
            for ahead in [-100, 100] as [Int64] {
                await #expect {
                    try await claim(sampleClaim(device), by: node, ahead: 0, now: SystemClock().now + ahead)
                } throws: { "\($0)".contains("clock") }
            }
            #expect(try replica.sql("SELECT * FROM claim_history") == before)
            #expect(try await isKept(node))
            await node.close()
        }

        @Test func `a node that made no claim lately does not trust the replica`() async throws {
            try waitForReplica()
            let node = try await node()
            try failOver()
            #expect(try await !isKept(node))
            await node.close()
        }

        @Test func `a sweep leaves a promoted replica to the nodes that made claims`() async throws {
            try waitForReplica()
            let (busy, idle) = (try await node(), try await node())
            let made = sampleClaim(device)
            #expect(try await claim(made, by: busy, ahead: 40) == .claimed)
            try failOver()
            try await eventually { try await idle.sweeper?.sweep() }
            try await look(idle)
            #expect(try await isKept(busy))
            #expect(try await claim(made, by: idle, ahead: 40) == .taken(made))
            // A node has found its claims on the replica, so sweeps no longer skip the replica. This sweep sets `clock`.
            let swept = "SELECT clock FROM claim_history"
            try replica.sql("UPDATE claim_history SET clock = 0")
            try await idle.sweeper?.sweep()
            #expect(try replica.sql(swept) != "0")
            for node in [busy, idle] { await node.close() }
        }

        @Test func `a node whose claims expired skips one sweep of a promoted replica`() async throws {
            try waitForReplica()
            let node = try await node()
            #expect(try await claim(sampleClaim(device), by: node, ahead: 0, life: 1) == .claimed)
            let now = SystemClock().now
            while SystemClock().now < now + 2 {}
            try failOver()
            let former = "SELECT identity FROM claim_history"
            let before = try replica.sql(former)
            try await look(node)
            try await node.sweeper?.sweep()
            #expect(try replica.sql(former) == before)
            try await node.sweeper?.sweep()
            #expect(try replica.sql(former) != before)
            #expect(try await !isKept(node))
            await node.close()
        }

        @Test func `a promoted server whose clock is behind the former primary's records a loss`() async throws {
            try waitForReplica()
            let node = try await node()
            try primary.sql("UPDATE claim_history SET clock = clock + 1000")
            #expect(try await claim(sampleClaim(device), by: node, ahead: 40) == .claimed)
            try failOver()
            #expect(try await !isKept(node))
            await node.close()
        }

        @Test func `a repeated claim that no replica has is not answered`() async throws {
            try waitForReplica()
            let node = try await node()
            let (made, tag) = (sampleClaim(device), ClaimTag(claim: sampleClaim(device)))
            #expect(try await claim(sampleClaim(device), by: node, ahead: 0) == .claimed)
            try replica.pause()
            for _ in 0..<2 {
                await #expect(throws: StoreError.self) { try await claim(made, by: node, ahead: 0, tag: tag) }
            }
            // The primary has had the claim since the first call.
            #expect(try primary.sql("SELECT count(*) FROM claims") == "3")
            try replica.resume()
            #expect(try await eventually { try await claim(made, by: node, ahead: 0, tag: tag) } == .claimed)
            await node.close()
        }
    }
}
