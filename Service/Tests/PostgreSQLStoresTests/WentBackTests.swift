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

        /// A node that does not read the keeper in the background.
        private func node() async throws -> PostgreSQLStores {
            let stores = try await open(url, clock: SystemClock())
            try watch(stores).finish()
            return stores
        }

        private func watch(_ stores: PostgreSQLStores) throws -> KeeperWatch {
            try #require(stores.keeper as? KeeperWatch)
        }

        /// Claims for a request that is dated `ahead` seconds after now.
        private func claim(
            _ claim: ReplayClaim, ahead: Int64 = 0, on stores: PostgreSQLStores
        ) async throws -> ClaimOutcome {
            let now = SystemClock().now
            return try await stores.replay.claim(
                [claim], of: device.deviceID, timestamp: now + ahead, expiresAt: now + ahead + 660, now: now,
                futureWindow: 60, tag: nil)
        }

        private func claimIsLost(
            _ replayed: ReplayClaim, ahead: Int64 = 0, on stores: PostgreSQLStores
        ) async throws -> Bool {
            if case .historyLost = try await claim(replayed, ahead: ahead, on: stores) { true } else { false }
        }

        private func claimIsRefused(
            _ refused: ReplayClaim, ahead: Int64 = 0, on stores: PostgreSQLStores
        ) async throws -> Bool {
            do {
                _ = try await claim(refused, ahead: ahead, on: stores)
                return false
            } catch let error as StoreError {
                return error.reason == KeeperReadings.wentBack.reason
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
            #expect(try await claim(sampleClaim(device), on: running) == .claimed)
            // Operators keep the database aside, and try something with a copy of it.
            try rename(name, to: "\(name)_kept", copied: true)
            #expect(try await watch(running).read())
            #expect(try await claimIsLost(sampleClaim(device), on: running), "the copy has another identity")
            // Dated after the loss of the copy's claims, so it is judged.
            let accepted = sampleClaim(device)
            #expect(try await claim(accepted, ahead: 110, on: running) == .claimed)

            try rename(name, to: "\(name)_tried")
            try rename("\(name)_kept", to: name)
            let before = try id()
            let started = try await node()
            #expect(try id() == before, "a node that just started cannot know")
            #expect(try await claimIsRefused(accepted, ahead: 110, on: running))
            #expect(try await watch(running).read())
            #expect(try id() != before)
            for node in [running, started] { #expect(try await claimIsLost(accepted, on: node)) }
            let later = sampleClaim(device)
            #expect(try await claim(later, ahead: 110, on: running) == .claimed)
            #expect(try await claim(later, ahead: 110, on: started) == .taken(later))
            for node in [running, started] { await node.close() }
        }

        /// The row in which PostgreSQL has this node's readings.
        private func row(_ column: String, of stores: PostgreSQLStores) throws -> String {
            try server.sql(
                "SELECT \(column) FROM claim_nodes WHERE node = '\(stores.database.readings.node.text)'::uuid", in: url)
        }

        @Test(arguments: ["UPDATE claim_nodes SET number = number - 1", "DELETE FROM claim_nodes"])
        func `no node claims until it has named a new id, and each then claims`(_ goingBack: String) async throws {
            let nodes = [try await node(), try await node()]
            for node in nodes {
                #expect(try await watch(node).read())
                #expect(try await claim(sampleClaim(device), on: node) == .claimed)
            }
            try server.sql(goingBack, in: url)
            for node in nodes {
                let before = try id()
                #expect(try await claimIsRefused(sampleClaim(device), on: node))
                #expect(try await watch(node).read())
                #expect(try id() != before)
                #expect(try await claimIsLost(sampleClaim(device), on: node))
                #expect(try await claim(sampleClaim(device), ahead: 110, on: node) == .claimed)
            }
            let last = try id()
            for node in nodes {
                #expect(try await watch(node).read())
                #expect(try id() == last)
            }
            for node in nodes { await node.close() }
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

        @Test func `the row of a node that stopped stays for a day`() async throws {
            let stopped = [try await node(), try await node()]
            for (node, age) in zip(stopped, [86_300, 86_500]) {
                let id = node.database.readings.node.text
                try server.sql("UPDATE claim_nodes SET read_at = read_at - \(age) WHERE node = '\(id)'::uuid", in: url)
                await node.close()
            }
            let started = try await node()
            #expect(try server.sql("SELECT count(*) FROM claim_nodes", in: url) == "2")
            #expect(try row("number", of: stopped[0]) != "")
            #expect(try row("number", of: stopped[1]) == "")
            await started.close()
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
        // Begun earlier, and answered later.
        readings.acknowledge(1, by: former)
        #expect(readings.least(on: former) == 2)
        #expect(readings.least(on: promoted) == 0)
        #expect(readings.least(on: nil) == 0)
        readings.acknowledge(3, by: promoted)
        #expect(readings.least(on: promoted) == 3)
    }
}
