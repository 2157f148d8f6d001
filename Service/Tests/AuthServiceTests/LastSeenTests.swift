import AuthContract
import Crypto
import StoreConformance
import Testing

@testable import AuthService

/// The last-seen times of devices are written in steps: each write has at most `LastSeen.step` devices.
struct LastSeenTests {
    private let world: World
    private let devices: [DeviceID]

    init() async throws {
        world = try await World()
        var devices: [DeviceID] = []
        for _ in 0..<2 * LastSeen.step + 500 {
            let record = DeviceRecord(
                appID: try AppID(World.appID), deviceID: DeviceID(from: SystemRandom()), platform: .android,
                status: .registered, key: DevicePublicKey(P256.Signing.PrivateKey().publicKey),
                assurance: Assurance(app: .playIntegrity, key: .strongbox), registeredAt: world.clock.now)
            let event = AuditEvent(.deviceRegistered, at: world.clock.now, actor: "test")
            _ = try await world.stores.insert(record, recording: event)
            devices.append(record.deviceID)
        }
        self.devices = devices
    }

    private func seen() async throws -> Int {
        var count = 0
        for device in devices {
            if try await world.stores.device(device, of: AppID(World.appID))?.lastSeen != nil { count += 1 }
        }
        return count
    }

    // The stores refuse a write with more devices than one step has.
    @Test func `every device is written, in steps`() async throws {
        for device in devices { world.service.seen.record(device, at: world.clock.now) }
        await world.service.writeLastSeen()
        #expect(try await seen() == devices.count)
    }

    @Test func `a store that fails is not asked for the other steps, and gets them at the next flush`() async throws {
        for device in devices { world.service.seen.record(device, at: world.clock.now) }
        await world.stores.interrupt(.writeLastSeen) { $0.fail(.writeLastSeen) }
        await world.service.writeLastSeen()
        #expect(try await seen() <= LastSeen.step)
        await world.stores.recover()
        await world.service.writeLastSeen()
        #expect(try await seen() == devices.count)
    }
}
