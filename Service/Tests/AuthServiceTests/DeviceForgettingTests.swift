import AuthContract
import StoreConformance
import Testing

@testable import AuthService

/// Devices that were deregistered or rejected long ago lose everything but the tombstone.
@Suite struct DeviceForgettingTests {
    private func forgetting(_ world: World, days: Int64 = 30) -> DeviceForgetting {
        var stores = AuthService.Stores(
            challenges: world.stores, replay: world.stores, apps: world.stores, devices: world.stores,
            audit: world.stores, credentials: world.stores, signingKeys: world.stores)
        stores.endedDevices = world.stores
        return DeviceForgetting(in: stores, afterDays: days, clock: world.clock)
    }

    @Test func `a forgotten device is unknown, and its key can never be registered again`() async throws {
        let world = try await World()
        let (device, neighbour) = (try await world.device(), try await world.device())
        try await world.deregister(device)
        world.clock.advance(30 * 86_400)
        #expect(try await forgetting(world).forgetNext(asOf: world.clock.now) == 0)
        #expect(try await world.row(device).status == .deregistered)
        world.clock.advance(3601)
        #expect(try await forgetting(world).forgetNext(asOf: world.clock.now - 3600) == 1)
        #expect(try await forgetting(world).forgetNext(asOf: world.clock.now) == 0)
        #expect(try await world.stores.device(device.id, of: device.appID) == nil)
        try await expect(.notRegistered) { try await world.verify(device) }
        let again = try await world.enrolment(device.key)
        try await expect(.invalidAttestation) { try await world.register(again) }
        try await world.verify(neighbour)
        #expect(try await world.audited(.devicesForgotten).map(\.at) == [world.clock.now])
    }

    @Test func `a store that fails, or that forgets nothing, changes nothing`() async throws {
        let world = try await World()
        let device = try await world.device()
        try await world.deregister(device)
        world.clock.advance(31 * 86_400)
        await world.stores.fail(.forgetDevices)
        await #expect(throws: StoreError.self) { try await forgetting(world).forgetNext(asOf: world.clock.now) }
        await world.stores.recover()
        #expect(try await world.row(device).status == .deregistered)
        let without = AuthService.Stores(
            challenges: world.stores, replay: world.stores, apps: world.stores, devices: world.stores,
            audit: world.stores, credentials: world.stores, signingKeys: world.stores)
        let nothing = DeviceForgetting(in: without, afterDays: 1, clock: world.clock)
        #expect(try await nothing.forgetNext(asOf: world.clock.now) == 0)
    }
}
