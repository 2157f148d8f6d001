import AuthContract
import AuthService
import Foundation
import GRDB
import Testing

@testable import SQLiteStores

/// The remaining values of a forgotten device's row.
struct EndedDeviceTests {
    @Test func `a forgotten device's row has nothing but the tombstone`() async throws {
        let folder = try TemporaryFolder()
        let stores = try SQLiteStores.open(folder)
        var device = try sampleDevice()
        device.appVersion = "1.2.3"
        try await stores.add(device)
        try await stores.change(device) { $0.status = .deregistered }
        let later = FixedClock().now + 86_400
        let count = try await stores.endedDevices.forgetDevices(
            endedBefore: later, now: later, limit: 10, recording: sampleEvent(.devicesForgotten))
        #expect(count == 1)
        await stores.close()
        let queue = try DatabaseQueue(path: folder.database)
        let kept = try await queue.read { database in
            let row = try #require(try Row.fetchOne(database, sql: "SELECT * FROM devices"))
            let empty: [DatabaseValue] = [.null, 0.databaseValue, "".databaseValue, Data().databaseValue]
            return row.filter { !empty.contains($0.1) }.map(\.0)
        }
        try queue.close()
        #expect(Set(kept) == ["app_id", "device_id", "status", "key_thumbprint", "ended_at", "forgotten", "version"])
    }
}
