import AuthContract
import AuthService
import ServiceTestHelpers
import Testing

@testable import PostgreSQLStores

extension AgainstPostgreSQL {
    /// PostgreSQL's data goes back to an earlier state, and the stored identity of the server does not show it.
    @Suite
    struct WentBackTests {
        private let server: PostgreSQLServer
        private let url: String
        private let device: DeviceRecord

        init() async throws {
            server = try await PostgreSQLServer.shared()
            url = try server.database()
            device = try sampleDevice()
        }

        /// A node that does not read the row of the keeper (the store of the claims) in the background.
        private func node(_ place: ClaimPlace = .postgresql) async throws -> PostgreSQLStores {
            var options = PostgreSQLStores.Options.patient
            options.claims = place
            options.vacancy = .seconds(3600)
            let stores = try await open(url, options: options, clock: SystemClock())
            try watch(stores).finish()
            return stores
        }

        /// Reads the keeper's row twice. Returns true if the first reading found that PostgreSQL's data went back and named a
        /// new id of the claims' history, and the second reading succeeded.
        private func notices(_ stores: PostgreSQLStores) async throws -> Bool {
            let before = try id()
            let first = try await watch(stores).read()
            let second = try await watch(stores).read()
            return try !first && second && id() != before
        }

        private func watch(_ stores: PostgreSQLStores) throws -> KeeperWatch {
            try #require(stores.keeper as? KeeperWatch)
        }

        /// Claims for a request that is dated `ahead` seconds after now.
        private func claim(
            _ claim: ReplayClaim, ahead: Int64 = 0, tag: ClaimTag? = nil, on store: any ReplayStore
        ) async throws -> ClaimOutcome {
            let now = SystemClock().now
            return try await store.claim(
                [claim], of: device.deviceID, timestamp: now + ahead, expiresAt: now + ahead + 660, now: now,
                futureWindow: 60, tag: tag)
        }

        private func isLost(
            _ lost: ReplayClaim, ahead: Int64 = 0, tag: ClaimTag? = nil, on store: any ReplayStore
        ) async throws -> Bool {
            if case .historyLost = try await claim(lost, ahead: ahead, tag: tag, on: store) { true } else { false }
        }

        private func isRefused(
            _ refused: ReplayClaim, ahead: Int64 = 0, tag: ClaimTag? = nil, on store: any ReplayStore
        ) async throws -> Bool {
            do {
                _ = try await claim(refused, ahead: ahead, tag: tag, on: store)
                return false
            } catch let error as StoreError {
                return error.reason.hasSuffix("(\(Schema.wentBackState))")
            }
        }

        private func id() throws -> String { try server.sql("SELECT id FROM claim_keeper", in: url) }

        /// Renames a database under its nodes, whose connections end.
        private func rename(_ name: String, to new: String, copied: Bool = false) throws {
            try server.sql("ALTER DATABASE \(name) ALLOW_CONNECTIONS false")
            try server.sql("SELECT pg_terminate_backend(pid, 20000) FROM pg_stat_activity WHERE datname = '\(name)'")
            try server.sql("ALTER DATABASE \(name) RENAME TO \(new)")
            if copied { try server.sql("CREATE DATABASE \(name) TEMPLATE \(new)") }
            try server.sql("ALTER DATABASE \(new) ALLOW_CONNECTIONS true")
        }

        @Test func `a database that gets its name back is noticed, although a node that just started reads first`()
            async throws
        {
            let name = try server.sql("SELECT current_database()", in: url)
            let running = try await node()
            #expect(try await claim(sampleClaim(device), on: running.replay) == .claimed)
            // Operators keep the database aside, and try something with a copy of it.
            try rename(name, to: "\(name)_kept", copied: true)
            #expect(try await watch(running).read())
            #expect(try await isLost(sampleClaim(device), on: running.replay), "the copy has another identity")
            // This request is dated after the loss of the copy's claims, so the store judges it.
            let accepted = sampleClaim(device)
            #expect(try await claim(accepted, ahead: 110, on: running.replay) == .claimed)

            try rename(name, to: "\(name)_tried")
            try rename("\(name)_kept", to: name)
            let before = try id()
            let started = try await node()
            #expect(try id() == before, "a node that just started cannot know")
            #expect(try await isRefused(accepted, ahead: 110, on: running.replay))
            #expect(try await notices(running))
            for node in [running, started] { #expect(try await isLost(accepted, on: node.replay)) }
            let later = sampleClaim(device)
            #expect(try await claim(later, ahead: 110, on: running.replay) == .claimed)
            #expect(try await claim(later, ahead: 110, on: started.replay) == .taken(later))
            for node in [running, started] { await node.close() }
        }

        /// A column of this node's row in `claim_nodes`, where PostgreSQL records the node's readings of the keeper's row;
        /// empty if the node has no row there.
        private func row(_ column: String, of stores: PostgreSQLStores) throws -> String {
            try server.sql(
                "SELECT \(column) FROM claim_nodes WHERE node = '\(stores.database.readings.node.text)'::uuid", in: url)
        }

        @Test(arguments: ["UPDATE claim_nodes SET number = number - 1", "DELETE FROM claim_nodes"])
        func `no node claims until it has named a new id, and each then claims`(_ goingBack: String) async throws {
            let nodes = [try await node(), try await node()]
            for node in nodes {
                #expect(try await watch(node).read())
                #expect(try await claim(sampleClaim(device), on: node.replay) == .claimed)
            }
            try server.sql(goingBack, in: url)
            for node in nodes {
                // Simulates a replay with the tag of a verification. The caller sends the same tag when it repeats the verification.
                let (replayed, tag) = (sampleClaim(device), ClaimTag(claim: sampleClaim(device)))
                #expect(try await isRefused(replayed, tag: tag, on: node.replay))
                #expect(try await notices(node))
                for node in nodes.reversed() {
                    #expect(try await !node.replay.holds(tag, of: device.deviceID, now: SystemClock().now))
                }
                #expect(try await isLost(replayed, tag: tag, on: node.replay))
                #expect(try await claim(sampleClaim(device), ahead: 110, on: node.replay) == .claimed)
            }
            let last = try id()
            for node in nodes {
                #expect(try await watch(node).read())
                #expect(try id() == last)
            }
            for node in nodes { await node.close() }
        }

        private static let redis = ClaimPlace("redis://h:6379/0?prefix=p:")

        @Test func `a node that is configured for another store records the loss, too`() async throws {
            let name = try server.sql("SELECT current_database()", in: url)
            let here = try await node()
            let there = try await node(Self.redis)
            #expect(try await claim(sampleClaim(device), on: here.replay) == .claimed)
            #expect(try row("number", of: there) != "")
            // A Redis becomes the keeper in a copy of the database. Then the first database gets its name back.
            try rename(name, to: "\(name)_kept", copied: true)
            await here.close()
            _ = try await there.setKeeper(Self.redis, actor: "test")
            #expect(try await watch(there).read())
            try rename(name, to: "\(name)_tried")
            try rename("\(name)_kept", to: name)
            let started = try await node()
            #expect(try await notices(there))
            #expect(try await there.namedKeeper().place == .postgresql)
            #expect(try await isLost(sampleClaim(device), on: started.replay))
            for node in [there, started] { await node.close() }
        }

        @Test func `while a Redis is the keeper, a loss of second claims leaves no unclaimed end`() async throws {
            let nodes = [try await node(Self.redis), try await node(Self.redis)]
            try server.sql("UPDATE claim_keeper SET settles_at = 0", in: url)
            let id = try watch(nodes[0]).current()
            #expect(try await watch(nodes[0]).unclaimedEnd(of: id) != nil)
            try server.sql("UPDATE claim_nodes SET number = 0", in: url)
            #expect(try await watch(nodes[0]).unclaimedEnd(of: id) == nil)
            #expect(try await isRefused(sampleClaim(device), ahead: 30, on: watch(nodes[1]).secondClaims))
            // Simulates a Redis that loses its claims before the node reads the keeper's row again. The node names a new id.
            #expect(try #require(try await watch(nodes[0]).renew(id)).unclaimedEnd == nil)
            #expect(try await watch(nodes[0]).unclaimedEnd(of: watch(nodes[0]).current()) == nil)
            for node in nodes { await node.close() }
        }

        @Test func `while a Redis is the keeper, lost second claims are refused, with their tags too`() async throws {
            let nodes = [try await node(Self.redis), try await node(Self.redis)]
            let (accepted, tag) = (sampleClaim(device), ClaimTag(claim: sampleClaim(device)))
            #expect(try await claim(accepted, ahead: 30, tag: tag, on: watch(nodes[0]).secondClaims) == .claimed)
            try server.sql("DELETE FROM claims; UPDATE claim_nodes SET number = 0", in: url)
            let id = try watch(nodes[1]).current()
            #expect(try await !watch(nodes[1]).isCurrent(id))
            #expect(try await isRefused(accepted, ahead: 30, tag: tag, on: watch(nodes[1]).secondClaims))
            #expect(try await notices(nodes[0]))
            let started = try await node(Self.redis)
            for node in [nodes[0], started] {
                #expect(try await isLost(accepted, ahead: 30, tag: tag, on: watch(node).secondClaims))
            }
            for node in nodes + [started] { await node.close() }
        }

        @Test func `a row that names no store names this node's store`() async throws {
            let running = try await node()
            try server.sql("UPDATE claim_keeper SET place = NULL; UPDATE claim_nodes SET number = 0", in: url)
            #expect(try await notices(running))
            #expect(try await running.namedKeeper().place == .postgresql)
            await running.close()
        }

        @Test func `a node names three ids, and then only refuses`() async throws {
            let running = try await node()
            for _ in 0..<3 {
                try server.sql("UPDATE claim_nodes SET number = 0", in: url)
                #expect(try await notices(running))
            }
            try server.sql("UPDATE claim_nodes SET number = 0", in: url)
            let last = try id()
            #expect(try await !watch(running).read())
            #expect(try id() == last)
            #expect(try await isRefused(sampleClaim(device), on: running.replay))
            await running.close()
        }

        @Test func `while the claims' history has no new id, no reading is recorded`() async throws {
            let running = try await node()
            #expect(try await watch(running).read())
            try server.sql("UPDATE claim_nodes SET number = 0", in: url)
            let table = KeeperTable(database: running.database)
            for _ in 0..<2 {
                #expect(try await table.read(renewing: .postgresql, at: SystemClock().now).wentBack)
                let number = try row("number", of: running)
                #expect(number == "0")
            }
            await running.close()
        }

        @Test func `the row of a node that stopped stays for 30 days`() async throws {
            let nodes = [try await node(), try await node(), try await node()]
            let month = 30 * 86_400
            for (node, age) in zip(nodes, [month - 100, month + 100, month + 100]) {
                let id = node.database.readings.node.text
                try server.sql("UPDATE claim_nodes SET read_at = read_at - \(age) WHERE node = '\(id)'::uuid", in: url)
            }
            // The third node still runs: it reads the keeper's row again, which updates the node's own row in `claim_nodes`.
            #expect(try await watch(nodes[2]).read())
            let started = try await node()
            let isThere = try nodes.map { try row("number", of: $0) != "" }
            #expect(isThere == [true, false, true])
            for node in nodes + [started] { await node.close() }
        }
    }
}

@Suite struct KeeperReadingsTests {
    @Test func `a promoted replica may lack readings, and the primary that acknowledged them may not`() {
        let readings = KeeperReadings(node: NodeID())
        let (former, promoted) = (PrimaryPlace(system: "1", timeline: 1), PrimaryPlace(system: "1", timeline: 2))
        #expect(readings.least(on: former) == 0)
        let numbers = (0..<3).map { _ in readings.begin() }
        #expect(numbers == [1, 2, 3])
        readings.acknowledge(2, by: former)
        // Reading 1 of the keeper's row began before reading 2, and is acknowledged after reading 2.
        readings.acknowledge(1, by: former)
        #expect(readings.least(on: former) == 2)
        #expect(readings.least(on: promoted) == 0)
        #expect(readings.least(on: nil) == 0)
        readings.acknowledge(3, by: promoted)
        #expect(readings.least(on: promoted) == 3)
        readings.acknowledge(readings.begin(), by: former)
        #expect(readings.least(on: promoted) == 3)
    }
}
