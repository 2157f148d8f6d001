import AuthContract
import AuthService
import Crypto
import Foundation
import GRDB
import Testing

@testable import SQLiteStores

/// Rows of older versions, read by this version.
struct MigrationTests {
    private static let undoSixth = """
        ALTER TABLE signing_keys DROP COLUMN signs_from;
        DROP TABLE revoked_signing_keys;
        DROP INDEX devices_observed;
        """

    @Test func `a signing key of an older version signs when it did before`() async throws {
        let folder = try TemporaryFolder()
        let stores = try SQLiteStores.open(folder)
        let key = StoredSigningKey(id: "kid", sealedKey: [1, 2, 3], createdAt: UnixTime(1_780_272_000))
        let change = SigningKeyChange(from: [], to: [key], at: key.createdAt, recording: nil)
        #expect(try await stores.signingKeys.save(change))
        await stores.close()
        let queue = try DatabaseQueue(path: folder.database)
        try await queue.write { database in
            try database.execute(
                sql: "\(Self.undoSixth) DELETE FROM grdb_migrations WHERE identifier = '6';")
        }
        try queue.close()
        let again = try SQLiteStores.open(folder)
        #expect(try await again.signingKeys.signingKeys() == [key])
        await again.close()
    }

    @Test func `a credential of an older version is one of a gateway that forwards no bodies`() async throws {
        let folder = try TemporaryFolder()
        let stores = try SQLiteStores.open(folder)
        func credential(_ bodies: ForwardedBodies) -> Credential {
            Credential(
                id: "id", name: "name", role: .service, scope: .allApps, secretHash: SystemRandom().bytes(32),
                createdAt: UnixTime(1_780_272_000), expiresAt: UnixTime(1_790_272_000), bodies: bodies)
        }
        let event = AuditEvent(.credentialCreated, at: UnixTime(1_780_272_000), actor: "test")
        #expect(try await stores.credentials.insert(credential(.whole), recording: event))
        #expect(try await stores.credentials.credential("id")?.bodies == .whole)
        await stores.close()
        let queue = try DatabaseQueue(path: folder.database)
        try await queue.write { database in
            try database.execute(
                sql: """
                    ALTER TABLE credentials DROP COLUMN bodies;
                    DELETE FROM grdb_migrations WHERE identifier = '8';
                    """)
        }
        try queue.close()
        let again = try SQLiteStores.open(folder)
        #expect(try await again.credentials.credential("id")?.bodies == .headers)
        await again.close()
    }

    @Test func `a device of an older version has no app version, and verdicts are counted from then on`() async throws {
        let folder = try TemporaryFolder()
        let stores = try SQLiteStores.open(folder)
        let device = try sampleDevice()
        try await stores.add(device)
        await stores.close()
        let queue = try DatabaseQueue(path: folder.database)
        try await queue.write { database in
            try database.execute(
                sql: """
                    ALTER TABLE devices DROP COLUMN app_version;
                    DROP TABLE verdict_counts;
                    DROP TABLE verdict_batches;
                    DELETE FROM grdb_migrations WHERE identifier IN ('9', '11');
                    """)
        }
        try queue.close()
        let again = try SQLiteStores.open(folder)
        #expect(try await again.devices.device(device.deviceID, of: device.appID)?.appVersion == nil)
        let verdict = CountedVerdict(appID: device.appID, kind: .registration, code: "registered")
        let minute = UnixTime(1_780_272_000)
        try await again.history.add(VerdictBatch(id: "id", minute: minute, counts: [verdict: 2]))
        let query = VerdictQuery(since: minute, until: minute + 1, step: 60, limit: 10)
        #expect(try await again.history.sums(query) == [VerdictSum(slot: minute, texts: [:], count: 2)])
        await again.close()
    }

    @Test func `deliveries of a webhook of an older version are kept from then on`() async throws {
        let folder = try TemporaryFolder()
        let stores = try SQLiteStores.open(folder)
        let webhook = Webhook(
            id: "0123456789abcdef", url: "https://hooks.example.com/", scope: .allApps, sealedSecret: [1],
            createdAt: FixedClock().now, position: 3)
        #expect(try await stores.webhooks.insert(webhook, recording: sampleEvent()))
        await stores.close()
        let queue = try DatabaseQueue(path: folder.database)
        try await queue.write { database in
            try database.execute(
                sql: "DROP TABLE webhook_deliveries; DELETE FROM grdb_migrations WHERE identifier = '13';")
        }
        try queue.close()
        let again = try SQLiteStores.open(folder)
        #expect(try await again.webhooks.webhooks() == [webhook])
        #expect(try await again.webhooks.deliveries(of: webhook.id, limit: 100) == [])
        let delivery = WebhookDelivery(
            sequence: 4, attempt: 1, at: FixedClock().now, milliseconds: 7, status: 204, failure: nil)
        #expect(try await again.webhooks.save(WebhookChange(from: webhook, to: webhook, noting: [delivery])))
        #expect(try await again.webhooks.deliveries(of: webhook.id, limit: 100) == [delivery])
        await again.close()
    }

    @Test func `counts by minute and by hour of an older version are added to the slots of every step`() async throws {
        let folder = try TemporaryFolder()
        await (try SQLiteStores.open(folder)).close()
        let day = UnixTime(1_780_272_000)
        let queue = try DatabaseQueue(path: folder.database)
        try await queue.write { database in
            try database.execute(sql: "DELETE FROM grdb_migrations WHERE identifier = '11'")
            // An older version merged old minutes into hours: here the last hour before `day`, and the second hour of `day`. Two minutes
            // are not merged yet: one in the second hour, and one in the third.
            for (step, at, count) in [(3600, -3600, 1), (3600, 3600, 2), (60, 7140, 4), (60, 7200, 8)]
                as [(Int64, Int64, Int64)]
            {
                try database.execute(
                    sql: "INSERT INTO verdict_counts VALUES (?, ?, '', 'device', 'ios', 'verified', '1', '7', ?)",
                    arguments: [step, day.seconds + at, count])
            }
        }
        try queue.close()
        let again = try SQLiteStores.open(folder)
        let wanted: [(Int64, [Int64])] = [
            (60, [4, 8]), (300, [4, 8]), (900, [4, 8]), (3600, [1, 6, 8]), (21_600, [1, 14]), (86_400, [1, 14]),
        ]
        for (step, counts) in wanted {
            let query = VerdictQuery(since: day - 86_400, until: day + 86_400, step: step, limit: 10)
            #expect(try await again.history.sums(query).map(\.count) == counts, "\(step)")
        }
        await again.close()
    }

    @Test func `an App Attest key whose category was proven keeps the mark of its extension map`() async throws {
        let folder = try TemporaryFolder()
        let stores = try SQLiteStores.open(folder)
        var devices: [DeviceRecord] = []
        for (labels, attested) in [(["category:4"], true), (["rebound"], true), (["category:4"], false)] {
            let sample = try sampleDevice()
            let evidence = AppAttestKeyState(
                keyID: SystemRandom().bytes(32), publicKey: SystemRandom().bytes(65), appID: "T.com.example.app",
                environment: "production")
            let device = DeviceRecord(
                appID: sample.appID, deviceID: sample.deviceID, platform: .ios, status: .registered, key: sample.key,
                assurance: Assurance(app: .appAttest, key: .appVouched, labels: labels),
                appAttest: attested ? evidence : nil, registeredAt: sample.registeredAt)
            try await stores.add(device)
            devices.append(device)
        }
        await stores.close()

        let queue = try DatabaseQueue(path: folder.database)
        try await queue.write { database in
            try database.execute(
                sql: """
                    ALTER TABLE devices DROP COLUMN attested_extensions;
                    \(Self.undoSixth)
                    DELETE FROM grdb_migrations WHERE identifier IN ('5', '6');
                    """)
        }
        try queue.close()

        let again = try SQLiteStores.open(folder)
        let marks: [Bool?] = [true, false, nil]
        for (device, mark) in zip(devices, marks) {
            let row = try await again.devices.device(device.deviceID, of: device.appID)
            #expect(row?.appAttest?.attestedExtensions == mark)
        }
        await again.close()
    }
}
