import AuthContract
import AuthService
import Bytes
import Foundation
import ServiceTestHelpers
import Testing

@testable import PostgreSQLStores

extension AgainstPostgreSQL {
    /// Servers that crash, hang and come back. Each test has its own server.
    @Suite
    struct BreakingTests {
        private var few: PostgreSQLStores.Options {
            var options = PostgreSQLStores.Options()
            options.deadline = .seconds(5)
            options.connections = 4
            options.clockTolerance = 1 << 40
            return options
        }

        private func started(_ settings: [String: String] = [:]) throws -> PostgreSQLServer {
            let server = try PostgreSQLServer(settings: settings)
            try server.start()
            return server
        }

        /// Retries a call until it succeeds. Each attempt ends by its own deadline.
        private func eventually<Value>(_ call: () async throws -> Value) async throws -> Value {
            let end = ContinuousClock.now + .seconds(30)
            while true {
                do { return try await call() } catch {
                    if ContinuousClock.now > end { throw error }
                }
            }
        }

        /// Waits until a replica has replayed everything that its primary has now.
        private func wait(for replica: PostgreSQLServer, behind primary: PostgreSQLServer) throws {
            let end = try primary.sql("SELECT pg_current_wal_lsn()")
            while try replica.sql("SELECT pg_last_wal_replay_lsn() >= '\(end)'") != "t" {}
        }

        @Test func `after a crash everything acknowledged is there, and the service is back at once`() async throws {
            let server = try started()
            let stores = try await open(server.url(), options: few, clock: SystemClock())
            let device = try sampleDevice()
            try await stores.add(device)
            let claim = ReplayClaim.nonce(RequestNonce(from: SystemRandom()), of: device.deviceID)
            let now = SystemClock().now
            func claimed() async throws -> ClaimOutcome {
                try await stores.replay.claim(
                    [claim], of: device.deviceID, timestamp: now, expiresAt: now + 660, now: SystemClock().now,
                    futureWindow: 60)
            }
            #expect(try await claimed() == .claimed)
            #expect(try await stores.change(device) { $0.status = .revoked } == .saved)
            try server.kill()
            await #expect(throws: StoreError.self) { try await stores.apps.app(device.appID) }
            await #expect(throws: StoreError.self) { try await claimed() }
            await #expect(throws: StoreError.self) { try await stores.check() }
            try server.start()
            let started = ContinuousClock.now
            #expect(
                try await eventually { try await stores.devices.device(device.deviceID, of: device.appID)?.status }
                    == .revoked)
            #expect(started.duration(to: .now) < .seconds(5))
            #expect(try await claimed() == .taken(claim))
            #expect(try await stores.audit.firstBrokenLink() == nil)
            try await stores.check()
            await stores.close()
        }

        @Test func `a server that hangs costs a call its deadline, and the pool recovers`() async throws {
            let server = try started()
            var options = few
            options.deadline = .seconds(1)
            let stores = try await open(server.url(), options: options)
            let device = try sampleDevice()
            try await stores.add(device)
            try server.pause()
            let began = ContinuousClock.now
            // There are more calls than connections. Waiting calls must end at their deadlines, too.
            await withDiscardingTaskGroup { group in
                for _ in 0..<12 {
                    group.addTask {
                        await #expect { try await stores.devices.device(device.deviceID, of: device.appID) } throws: {
                            ($0 as? StoreError)?.code == .tooSlow
                        }
                    }
                }
            }
            // If a call's deadline began only when the call gets a connection, the twelve calls on four connections would take
            // three times as long.
            #expect(began.duration(to: .now) < .seconds(3))
            try server.resume()
            #expect(
                try await eventually { try await stores.devices.device(device.deviceID, of: device.appID) } == device)
            await stores.close()
        }

        @Test func `a restart of the server while the connections are idle fails no call`() async throws {
            let server = try started()
            let pool = ConnectionPool(
                address: try ServerAddress(server.url()), settings: [], size: 4, deadline: .seconds(20),
                maximumWaiting: 10)
            @Sendable func call(_ seconds: Double) async throws {
                try await pool.run { (connection) throws(StoreError) in
                    _ = try connection.rows("SELECT pg_sleep(\(seconds))")
                }
            }
            try await withThrowingDiscardingTaskGroup { group in
                for _ in 0..<4 { group.addTask { try await call(0.3) } }
            }
            #expect(pool.processes.count == 4)
            server.stop()
            try server.start()
            try await withThrowingDiscardingTaskGroup { group in
                for _ in 0..<8 { group.addTask { try await call(0.1) } }
            }
            #expect(pool.use.failedConnects == 0)
            await pool.close()
        }

        @Test func `a connection lost before the commit is retried, and the change happens once`() async throws {
            let server = try started()
            let stores = try await open(server.url(), options: few)
            let device = try sampleDevice()
            try await stores.add(device)
            let attempts = Counter()
            let value = try await stores.database.write { (connection) throws(StoreError) in
                _ = try connection.rows("SELECT 1 FROM apps FOR UPDATE")
                if attempts.next() == 1 {
                    // The server ends this connection, which the next statement notices.
                    _ = try? connection.rows("SELECT pg_terminate_backend(pg_backend_pid())")
                }
                _ = try connection.change(
                    "UPDATE devices SET local_id = 'once'", [], recording: sampleEvent(.deviceSchemeLowered))
                return attempts.count
            }
            #expect(value == 2)
            #expect(try await stores.devices.device(device.deviceID, of: device.appID)?.localID == "once")
            #expect(try await stores.audit.events(app: nil, device: nil, before: nil, limit: 10).count == 3)
            await stores.close()
        }

        @Test func `a change whose commit was lost throws`() async throws {
            let server = try started()
            let stores = try await open(server.url(), options: few)
            // The deferred check runs inside the commit, and ends the connection there.
            try server.sql(
                """
                CREATE TABLE broken (id int);
                CREATE FUNCTION end_connection() RETURNS trigger LANGUAGE plpgsql AS
                  $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$;
                CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON broken DEFERRABLE INITIALLY DEFERRED
                  FOR EACH ROW EXECUTE FUNCTION end_connection();
                """)
            let attempts = Counter()
            await #expect(throws: StoreError.self) {
                try await stores.database.write { (connection) throws(StoreError) in
                    _ = attempts.next()
                    _ = try connection.rows("INSERT INTO broken VALUES (1)")
                }
            }
            #expect(attempts.count == 1)
            #expect(try await stores.apps.apps().isEmpty)
            await stores.close()
        }

        @Test func `after the promotion of a replica that lags, requests of the lost time are refused`() async throws {
            let primary = try PostgreSQLServer(settings: ["wal_level": "replica", "max_wal_senders": "4"])
            try primary.start()
            let url = primary.url()
            try await PostgreSQLStores.migrate(url)
            let replica = try PostgreSQLServer(.replica(of: primary))
            try replica.start()
            let both = "postgresql://auth@127.0.0.1:\(primary.port),127.0.0.1:\(replica.port)/postgres"
            let stores = try await open(both, options: few, clock: SystemClock())
            let now = SystemClock().now
            let device = try sampleDevice()
            func claim(_ claim: ReplayClaim, at time: UnixTime) async throws -> ClaimOutcome {
                try await stores.replay.claim(
                    [claim], of: device.deviceID, timestamp: time, expiresAt: time + 660, now: now, futureWindow: 60)
            }
            let (first, lost) = (sampleClaim(device), sampleClaim(device))
            #expect(try await claim(first, at: now) == .claimed)
            try await stores.add(device)
            try wait(for: replica, behind: primary)
            // The replica stops. The next claim is acknowledged and then lost with the primary.
            replica.stop()
            #expect(try await claim(lost, at: now) == .claimed)
            try primary.kill()
            try replica.start()
            try replica.promote()
            let outcome = try await eventually { try await claim(lost, at: now) }
            guard case .historyLost(let seconds) = outcome else {
                Issue.record("the replay got \(outcome)")
                return
            }
            #expect((1...130).contains(seconds))
            // The data on the replica are kept, and the new primary accepts changes.
            #expect(try await stores.devices.device(device.deviceID, of: device.appID) == device)
            try await stores.add(try sampleDevice())
            #expect(try await stores.audit.firstBrokenLink() == nil)
            // A request that is dated after the loss of claims is accepted.
            let later = SystemClock().now + 200
            let fresh = try await stores.replay.claim(
                [sampleClaim(device)], of: device.deviceID, timestamp: later, expiresAt: later + 660, now: later,
                futureWindow: 60)
            #expect(fresh == .claimed)
            await stores.close()
        }

        @Test func `a former primary that still runs is not used once its successor was seen`() async throws {
            let primary = try PostgreSQLServer(settings: ["wal_level": "replica", "max_wal_senders": "4"])
            try primary.start()
            try await PostgreSQLStores.migrate(primary.url())
            let successor = try PostgreSQLServer(.replica(of: primary))
            try successor.start()
            let servers = [primary, successor].map { "127.0.0.1:\($0.port)" }.joined(separator: ",")
            var options = few
            options.deadline = .seconds(2)
            let stores = try await open("postgresql://auth@\(servers)/postgres?connect_timeout=2", options: options)
            let device = try sampleDevice()
            try await stores.add(device)
            try wait(for: successor, behind: primary)
            func found() async throws -> DeviceRecord? {
                try await stores.devices.device(device.deviceID, of: device.appID)
            }
            // The primary hangs and its replica takes over. Then the former primary resumes, unaware of the failover.
            try primary.pause()
            try successor.promote()
            #expect(try await eventually { try await found() } == device)
            let late = try sampleDevice()
            try await eventually { try await stores.add(late) }
            try primary.resume()
            try successor.pause()
            for _ in 0..<3 { await #expect(throws: StoreError.self) { try await found() } }
            try successor.resume()
            #expect(try await eventually { try await found() } == device)
            #expect(try await stores.devices.device(late.deviceID, of: late.appID) == late)
            await stores.close()
        }

        /// A primary whose commits wait for a replica, and the replica.
        private func synchronous() throws -> (primary: PostgreSQLServer, replica: PostgreSQLServer) {
            let primary = try PostgreSQLServer(settings: [
                "wal_level": "replica", "max_wal_senders": "4", "synchronous_standby_names": "'*'",
            ])
            try primary.start()
            let replica = try PostgreSQLServer(.replica(of: primary))
            try replica.start()
            return (primary, replica)
        }

        @Test func `a revocation that no replica has is not confirmed by the next call`() async throws {
            let (primary, replica) = try synchronous()
            // Creates a user without special rights.
            try primary.sql("CREATE ROLE poor LOGIN")
            try primary.sql("CREATE DATABASE poor OWNER poor")
            let url = primary.url("poor").replacing("auth@", with: "poor@")
            var options = few
            options.deadline = .seconds(2)
            let stores = try await open(url, options: options)
            let device = try sampleDevice()
            try await stores.add(device)
            // Every call expects the row as it was inserted, so only the first one can succeed.
            @Sendable func revoke() async throws -> Bool {
                var revoked = device
                revoked.status = .revoked
                return try await stores.devices.save(DeviceChange(from: device, to: revoked, event: sampleEvent()))
                    == .saved
            }
            try replica.pause()
            for _ in 0..<2 { await #expect(throws: StoreError.self) { try await revoke() } }
            // The primary has had the revocation since the first call.
            #expect(try primary.sql("SELECT status FROM devices", in: url) == "revoked")
            try replica.resume()
            #expect(try await eventually(revoke) == false)
            try primary.kill()
            // The replica has the commit on its disk, but may not have replayed it yet.
            let end = ContinuousClock.now + .seconds(30)
            var status = ""
            while status != "revoked", ContinuousClock.now < end {
                status = (try? replica.sql("SELECT status FROM devices", in: replica.url("poor"))) ?? ""
            }
            #expect(status == "revoked")
            await stores.close()
        }

        @Test func `a commit that stopped waiting for a replica throws, whoever cancelled it`() async throws {
            let (primary, replica) = try synchronous()
            // This setting of the role hides the server's warning that a commit stopped waiting for its replica. The store's
            // sessions must override the setting.
            try primary.sql("ALTER ROLE auth SET client_min_messages = error")
            let stores = try await open(primary.url())
            let device = try sampleDevice()
            try await stores.add(device)
            try replica.pause()
            let lowering = Task {
                try await stores.change(device) {
                    $0.mustRotate = RotationDemand(by: $0.registeredAt, reason: .scheduled)
                }
            }
            let cancel = """
                SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity
                WHERE wait_event = 'SyncRep' AND backend_type = 'client backend' AND query = 'COMMIT'
                """
            while try primary.sql(cancel) == "0" {}
            await #expect(throws: StoreError.self) { try await lowering.value }
            try replica.resume()
            await stores.close()
        }

        @Test func `a restored dump is a loss of history`() async throws {
            let server = try started()
            let url = try server.database()
            let stores = try await open(url, clock: SystemClock())
            // Stops the node's background readings of the row that names the store of the claims, so that the dump contains the
            // last reading. A reading after the dump would show at once that the database went back to an earlier state.
            (stores.keeper as? KeeperWatch)?.finish()
            let now = SystemClock().now
            let device = try sampleDevice()
            func claim() async throws -> ClaimOutcome {
                try await stores.replay.claim(
                    [sampleClaim(device)], of: device.deviceID, timestamp: now, expiresAt: now + 660, now: now,
                    futureWindow: 60)
            }
            #expect(try await claim() == .claimed)
            try server.run("pg_dump", ["-d", url, "-c", "-f", "\(server.folder)/dump.sql"])
            try server.run("psql", ["-q", "-X", "-d", url, "-f", "\(server.folder)/dump.sql"])
            guard case .historyLost = try await claim() else {
                Issue.record("the store takes claims that it may have lost")
                return
            }
            await stores.close()
        }
    }
}

final class Counter: Sendable {
    let value = Locked(0)
    var count: Int { value.withLock { $0 } }

    func next() -> Int {
        value.withLock {
            $0 += 1
            return $0
        }
    }
}

func sampleClaim(_ device: DeviceRecord) -> ReplayClaim {
    .nonce(RequestNonce(from: SystemRandom()), of: device.deviceID)
}
