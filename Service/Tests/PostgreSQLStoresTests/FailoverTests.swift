import AuthContract
import AuthService
import StoreServers
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

        /// A node whose background work only the test runs.
        private func node() async throws -> PostgreSQLStores {
            var options = PostgreSQLStores.Options.patient
            options.deadline = .seconds(2)
            options.isFailoverLossless = true
            let url = "postgresql://auth@127.0.0.1:\(primary.port),127.0.0.1:\(replica.port)/postgres"
            let stores = try await open(url, options: options, clock: SystemClock())
            (stores.keeper as? KeeperWatch)?.finish()
            stores.sweeper?.finish()
            return stores
        }

        private func claim(
            _ claim: ReplayClaim, by node: PostgreSQLStores, ahead: Int64, tag: ClaimTag? = nil
        ) async throws -> ClaimOutcome {
            let now = SystemClock().now
            return try await node.replay.claim(
                [claim], of: device.deviceID, timestamp: now + ahead, expiresAt: now + ahead + ReplayClaim.life,
                now: now,
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

        /// Whether only the dates up to some seconds ahead are refused.
        private func isShort(_ node: PostgreSQLStores) async throws -> Bool {
            switch try await eventually({ try await claim(sampleClaim(device), by: node, ahead: 40) }) {
            case .claimed: return true
            case .historyLost: return false
            case let outcome:
                Issue.record("a fresh request is \(outcome)")
                return false
            }
        }

        @Test func `a replica with every claim refuses the dates until five seconds later, and no claim is made twice`()
            async throws
        {
            try waitForReplica()
            let (one, other) = (try await node(), try await node())
            let claims = (0..<20).map { _ in sampleClaim(device) }
            for (place, made) in claims.enumerated() {
                #expect(try await claim(made, by: place % 2 == 0 ? one : other, ahead: 40) == .claimed)
            }
            try failOver()
            #expect(try await isShort(one))
            guard case .historyLost(let seconds) = try await claim(sampleClaim(device), by: one, ahead: 0) else {
                Issue.record("a date of before the failover is judged")
                return
            }
            #expect((1...6).contains(seconds))
            for node in [one, other] {
                for made in claims {
                    #expect(try await eventually { try await claim(made, by: node, ahead: 40) } == .taken(made))
                }
                await node.close()
            }
        }

        @Test func `a replica that lacks a claim of any node lost all claims`() async throws {
            let (one, other) = (try await node(), try await node())
            #expect(try await claim(sampleClaim(device), by: one, ahead: 0) == .claimed)
            let end = try primary.sql("SELECT pg_current_wal_lsn()")
            while try replica.sql("SELECT pg_last_wal_replay_lsn() >= '\(end)'") != "t" {}
            replica.stop()
            let lost = sampleClaim(device)
            #expect(try await claim(lost, by: other, ahead: 40) == .claimed)
            try primary.kill()
            try replica.start()
            try replica.promote()
            #expect(try await isShort(one))
            // The other node gets no request, and finds it in its next round.
            let watch = try #require(other.keeper as? KeeperWatch)
            while await !watch.read() {}
            for node in [one, other] {
                guard case .historyLost(let seconds) = try await claim(lost, by: node, ahead: 40) else {
                    Issue.record("a lost claim is made again")
                    continue
                }
                #expect(seconds > 40)
                await node.close()
            }
        }

        @Test func `a node that made no claim lately does not trust the replica`() async throws {
            try waitForReplica()
            let node = try await node()
            try failOver()
            #expect(try await !isShort(node))
            await node.close()
        }

        @Test func `a sweep leaves a promoted replica to the nodes that made claims`() async throws {
            try waitForReplica()
            let (busy, idle) = (try await node(), try await node())
            let made = sampleClaim(device)
            #expect(try await claim(made, by: busy, ahead: 40) == .claimed)
            try failOver()
            try await eventually { try await idle.sweeper?.sweep() }
            let watch = try #require(idle.keeper as? KeeperWatch)
            while await !watch.read() {}
            #expect(try await isShort(busy))
            #expect(try await claim(made, by: idle, ahead: 40) == .taken(made))
            // From now on sweeps go on as before.
            let swept = "SELECT clock FROM claim_history"
            try replica.sql("UPDATE claim_history SET clock = 0")
            try await idle.sweeper?.sweep()
            #expect(try replica.sql(swept) != "0")
            for node in [busy, idle] { await node.close() }
        }

        @Test func `a server's clock that is behind the former one's is a loss`() async throws {
            try waitForReplica()
            let node = try await node()
            try primary.sql("UPDATE claim_history SET clock = clock + 10")
            #expect(try await claim(sampleClaim(device), by: node, ahead: 40) == .claimed)
            try failOver()
            #expect(try await !isShort(node))
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
