import AuthContract
import AuthService
import ServiceTestHelpers
import Testing

@testable import PostgreSQLStores

extension AgainstPostgreSQL {
    /// The remaining values of a forgotten device's row.
    @Suite
    struct EndedDeviceTests {
        @Test func `a forgotten device's row has nothing but the tombstone`() async throws {
            let server = try await PostgreSQLServer.shared()
            let url = try server.database()
            let stores = try await open(url)
            var device = try sampleDevice()
            device.appVersion = "1.2.3"
            try await stores.add(device)
            try await stores.change(device) { $0.status = .deregistered }
            let later = FixedClock().now + 86_400
            let count = try await stores.endedDevices.forgetDevices(
                endedBefore: later, now: later, limit: 10, recording: sampleEvent(.devicesForgotten))
            #expect(count == 1)
            await stores.close()
            let kept = try server.sql(
                """
                SELECT member FROM devices, jsonb_each_text(to_jsonb(devices)) AS members (member, content)
                WHERE content NOT IN ('', '0', 'false', '\\x')
                """, in: url)
            #expect(
                Set(kept.split(whereSeparator: \.isNewline).map(String.init))
                    == ["app_id", "device_id", "status", "ended_at", "forgotten", "version"])
        }
    }
}
