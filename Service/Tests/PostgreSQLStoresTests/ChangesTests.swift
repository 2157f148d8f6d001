import AuthContract
import AuthService
import Crypto
import ServiceTestHelpers
import Testing

@testable import PostgreSQLStores

extension AgainstPostgreSQL {
    /// A node is notified of the changes of another node.
    @Suite(.timeLimit(.minutes(2)))
    struct ChangesTests {
        private struct Pair {
            let url: String
            let one: PostgreSQLStores
            let other: PostgreSQLStores
            let device: DeviceRecord

            init() async throws {
                url = try await PostgreSQLServer.shared().database()
                (one, other) = (try await open(url), try await open(url))
                device = try sampleDevice()
                try await one.add(device)
            }

            func revoke() async throws {
                try await one.change(device) { $0.status = .revoked }
            }

            func close() async {
                await one.close()
                await other.close()
            }
        }

        @Test func `a revocation reaches another node within a second`() async throws {
            let pair = try await Pair()
            var changes = pair.other.devices.externalChanges().makeAsyncIterator()
            // Skip the stream's first signal.
            _ = await changes.next()
            for _ in 0..<3 {
                let began = ContinuousClock.now
                try await pair.revoke()
                _ = await changes.next()
                #expect(began.duration(to: .now) < .seconds(1))
            }
            await pair.close()
            #expect(await changes.next() == nil)
        }

        @Test func `a row whose key or version another node replaced may have rotated, and no other`() async throws {
            let pair = try await Pair()
            func mayHaveRotated(_ device: DeviceRecord) async throws -> Bool {
                try await pair.other.devices.mayHaveRotatedElsewhere(device)
            }
            func read() async throws -> DeviceRecord {
                try #require(try await pair.one.devices.device(pair.device.deviceID, of: pair.device.appID))
            }
            #expect(try await mayHaveRotated(try read()) == false)
            // Raising a fact about the device, such as its highest signature scheme, does not change the device's version.
            #expect(try await pair.one.devices.raise(.scheme(.two), of: pair.device.deviceID, app: pair.device.appID))
            #expect(try await mayHaveRotated(pair.device) == false)
            let key = DevicePublicKey(P256.Signing.PrivateKey().publicKey)
            try await pair.one.change(pair.device) { ($0.previousKey, $0.key) = ($0.key, key) }
            #expect(try await mayHaveRotated(pair.device))
            var rotated = try await read()
            #expect(rotated.key == key)
            #expect(try await mayHaveRotated(rotated) == false)
            // A restored database may use the same version again, for another key.
            rotated.key = pair.device.key
            #expect(try await mayHaveRotated(rotated))
            try await pair.revoke()
            rotated.key = key
            #expect(try await mayHaveRotated(rotated))
            await pair.close()
        }

        @Test func `an app's change reaches another node`() async throws {
            let pair = try await Pair()
            var changes = pair.other.devices.externalChanges().makeAsyncIterator()
            _ = await changes.next()
            let app = StoredApp(appID: pair.device.appID, sealedJSON: "{}")
            let change = AppChange(from: app, to: "{}", needsNoDevices: false, recording: sampleEvent(.appChanged))
            #expect(try await pair.one.apps.save(change) == .saved)
            _ = await changes.next()
            await pair.close()
        }

        @Test func `a node hears nothing of its own changes and of registrations`() async throws {
            let pair = try await Pair()
            var changes = pair.one.devices.externalChanges().makeAsyncIterator()
            _ = await changes.next()
            try await pair.revoke()
            try await pair.other.add(try sampleDevice())
            let heard = Counter()
            let listening = Task {
                for await _ in pair.one.devices.externalChanges() { _ = heard.next() }
            }
            // This change by the other node is the last notification on the channel. After its signal, no earlier change may have
            // caused another signal.
            try await pair.other.change(pair.device) { $0.status = .rejected }
            _ = await changes.next()
            #expect(heard.count <= 1)
            await pair.close()
            await listening.value
        }

        @Test func `another node's notification signals a change, whichever server process sends it`() async throws {
            let pair = try await Pair()
            var changes = pair.one.devices.externalChanges().makeAsyncIterator()
            _ = await changes.next()
            // Older versions send notifications with an empty payload.
            for text in ["another", ""] {
                try await pair.one.database.write { (connection) throws(StoreError) in
                    _ = try connection.rows("SELECT pg_notify('\(ExternalChanges.channel)', $1)", [.text(text)])
                }
                _ = await changes.next()
            }
            await pair.close()
            #expect(await changes.next() == nil)
        }

        @Test func `a listener that lost its connection tells of changes once it listens again`() async throws {
            let pair = try await Pair()
            let server = try await PostgreSQLServer.shared()
            var changes = pair.other.devices.externalChanges().makeAsyncIterator()
            _ = await changes.next()
            let ended = try server.sql(
                """
                SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
                WHERE datname = current_database() AND query LIKE 'LISTEN%'
                """, in: pair.url)
            #expect(ended == "1")
            _ = await changes.next()
            try await pair.revoke()
            _ = await changes.next()
            await pair.close()
        }

        @Test func `a key that was rotated keeps a command from writing`() async throws {
            let pair = try await Pair()
            let checks = try (0..<2).map { byte in
                try #require(ServiceKey([UInt8](repeating: UInt8(byte), count: 32))?.checks.first)
            }
            #expect(try await pair.one.serviceKeys.replaceKeyChecks([], with: [checks[0]], recording: nil))
            pair.other.allowWrites(whileSealing: checks[0])
            try await pair.other.audit.append(sampleEvent())
            #expect(try await pair.one.serviceKeys.replaceKeyChecks([checks[0]], with: [checks[1]], recording: nil))
            await #expect(throws: StoreError.self) { try await pair.other.audit.append(sampleEvent()) }
            // Reads still work.
            #expect(try await pair.other.apps.app(pair.device.appID) != nil)
            await pair.close()
        }
    }
}
