import AuthContract
import AuthService
import ServiceTestHelpers
import Testing

@testable import PostgreSQLStores

extension AgainstPostgreSQL {
    /// The database is outside the process. A value that cannot be read is an error, never a trap.
    @Suite
    struct DamageTests {
        @Test(arguments: [
            "status = 'other'", "platform = ''", "key = ''", "key = '\\x00'", "assurance = '{'", "assurance = '[]'",
            "highest_scheme = 9", "highest_scheme = -9223372036854775808", "previous_key = '\\x01'",
            "must_rotate_by = 1, must_rotate_reason = 'other'", "must_rotate_by = 1, must_rotate_reason = NULL",
            "attested_key_id = '\\x01'", "attested_key_id = '\\x01', attested_counter = 4294967296",
            "attested_key_id = '\\x01', attested_counter = -1",
        ])
        func `a damaged row of a device is unreadable`(_ change: String) async throws {
            let server = try await PostgreSQLServer.shared()
            let url = try server.database()
            let stores = try await open(url)
            let device = try sampleDevice()
            try await stores.add(device)
            try server.sql("UPDATE devices SET \(change)", in: url)
            await #expect { try await stores.devices.device(device.deviceID, of: device.appID) } throws: {
                ($0 as? StoreError)?.code == .unreadable
            }
            // The connection still works.
            #expect(try await stores.apps.app(device.appID) != nil)
            await stores.close()
        }

        /// PostgreSQL refuses to change the type of a column that a trigger names.
        private static let dropTrigger = "DROP TRIGGER changed_devices_have_a_version ON devices"

        @Test(arguments: [
            "ALTER TABLE devices ALTER COLUMN registered_at TYPE text",
            "\(Self.dropTrigger); ALTER TABLE devices ALTER COLUMN key TYPE text",
            "\(Self.dropTrigger); ALTER TABLE devices ALTER COLUMN admitted_under_observation TYPE text",
            "ALTER TABLE devices DROP COLUMN last_seen", "ALTER TABLE devices ALTER COLUMN device_id TYPE text",
        ])
        func `a column of another type is unreadable`(_ change: String) async throws {
            let server = try await PostgreSQLServer.shared()
            let url = try server.database()
            let stores = try await open(url)
            let device = try sampleDevice()
            try await stores.add(device)
            try server.sql(
                "ALTER TABLE keys DROP CONSTRAINT keys_device_id_fkey; DROP INDEX devices_observed; \(change)", in: url)
            await #expect(throws: StoreError.self) {
                try await stores.devices.device(device.deviceID, of: device.appID)
            }
            await stores.close()
        }

        @Test func `a damaged device does not hold up the receipts of the others`() async throws {
            let server = try await PostgreSQLServer.shared()
            let url = try server.database()
            let stores = try await open(url)
            let (damaged, sound) = (try sampleDevice(withReceiptDueAt: 1), try sampleDevice(withReceiptDueAt: 2))
            for device in [damaged, sound] { try await stores.add(device) }
            try server.sql(
                "UPDATE devices SET assurance = '{' WHERE device_id = '\(damaged.deviceID.text)'", in: url)
            let now = UnixTime(1_750_000_000)
            let receipts = stores.receipts
            await #expect { try await receipts.takeDueReceipt(at: now, lease: now + 60) } throws: {
                ($0 as? StoreError)?.code == .unreadable
            }
            #expect(try await receipts.takeDueReceipt(at: now, lease: now + 60)?.deviceID == sound.deviceID)
            #expect(try await receipts.takeDueReceipt(at: now, lease: now + 60) == nil)
            await stores.close()
        }

        @Test func `a prepared statement survives a column that a newer version adds`() async throws {
            let server = try await PostgreSQLServer.shared()
            let url = try server.database()
            let stores = try await open(url)
            let device = try sampleDevice()
            try await stores.add(device)
            try server.sql("ALTER TABLE devices ADD COLUMN more text", in: url)
            #expect(try await stores.devices.device(device.deviceID, of: device.appID) == device)
            await stores.close()
        }
    }
}
