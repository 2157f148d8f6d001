import AuthContract
import AuthService
import Crypto
import StoreConformance
import StrictJSON
import Testing

/// A client that always fails does not block another registered device at its address.
@Suite("Fair limits")
struct FairLimitTests {
    private static let one = Rate(burst: 1, perMinute: 1)

    /// The device's id with another key.
    private func wrong(_ device: TestDevice) -> TestDevice {
        TestDevice(appID: device.appID, id: device.id, key: P256.Signing.PrivateKey())
    }

    private func stranger(_ world: World) throws -> TestDevice {
        TestDevice(appID: try AppID(World.appID), id: DeviceID(from: world.random), key: P256.Signing.PrivateKey())
    }

    /// Asks for the status from another address.
    private func status(_ device: TestDevice, _ world: World, from address: String) async throws {
        let request = try RequestDraft(.status).signed(
            by: device, at: world.clock.now, random: world.random, address: ClientAddress(address))
        _ = try await world.service.authenticate(request, for: .status)
    }

    @Test("a device that always fails is refused only at its own address, and its neighbours are accepted")
    func failures() async throws {
        let world = try await World { $0.failedSignatures = Rate(burst: 3, perMinute: 1) }
        let (device, neighbour) = (try await world.device(), try await world.device())
        for _ in 0..<3 { try await expect(.invalidSignature) { try await world.status(wrong(device)) } }
        await world.stores.fail(.device)
        for _ in 0..<20 { try await expect(.rateLimited) { try await world.status(wrong(device)) } }
        await world.stores.recover()
        try await world.status(neighbour)
        // The failures at `world.address` do not lock the device out at another address.
        try await status(device, world, from: "198.51.100.1")
        try await expect(.rateLimited) { try await world.status(device) }
    }

    @Test("failures of many addresses do not lock out the device at its own")
    func elsewhere() async throws {
        let world = try await World { $0.failedSignatures = Self.one }
        let device = try await world.device()
        for number in 1...50 {
            let address = "198.51.100.\(number)"
            try await expect(.invalidSignature) { try await status(wrong(device), world, from: address) }
            try await expect(.rateLimited) { try await status(wrong(device), world, from: address) }
        }
        try await world.status(device)
    }

    @Test("after too many strangers invented ids are refused without the store, and devices that exist are not")
    func strangers() async throws {
        let world = try await World { $0.strangers = Rate(burst: 3, perMinute: 1) }
        let (cached, device) = (try await world.device(), try await world.device())
        try await world.status(cached)
        await world.service.updateKnownDevices()
        for _ in 0..<3 { try await expect(.notRegistered) { try await world.status(stranger(world)) } }
        await world.stores.fail(.device)
        for _ in 0..<50 {
            let refusal = try await expect(.rateLimited) { try await world.status(stranger(world)) }
            #expect(refusal?.retryAfter == 60)
        }
        // The row of this device is cached, so `authenticate` reads no store. The status route itself would read one.
        _ = try await world.service.authenticate(try world.signed(cached, for: .status), for: .status)
        await world.stores.recover()
        try await world.status(device)
        try await status(device, world, from: "198.51.100.1")
        try await expect(.notRegistered) { try await status(stranger(world), world, from: "198.51.100.1") }
        world.clock.advance(60)
        await world.service.updateKnownDevices()
        try await expect(.notRegistered) { try await world.status(stranger(world)) }
        try await expect(.rateLimited) { try await world.status(stranger(world)) }
    }

    @Test("a node that does not know which devices exist refuses no id")
    func loading() async throws {
        let world = try await World { $0.strangers = Self.one }
        for _ in 0..<3 { try await expect(.notRegistered) { try await world.status(stranger(world)) } }
        await world.service.updateKnownDevices()
        try await expect(.rateLimited) { try await world.status(stranger(world)) }
        // The node has not read the audit log for 6 s. Its known ids are out of date, so it refuses no id.
        world.clock.advance(6)
        try await expect(.notRegistered) { try await world.status(stranger(world)) }
    }

    @Test("a device that just registered passes on its node at once, and on another after the log was read")
    func registeredMeanwhile() async throws {
        let world = try await World(sharesLimits: true) { $0.strangers = Self.one }
        let other = try world.anotherNode()
        for node in [world.service, other] {
            await node.updateKnownDevices()
            try await expect(.notRegistered) { try await world.status(stranger(world), at: node) }
            try await expect(.rateLimited) { try await world.status(stranger(world), at: node) }
        }
        let device = try await world.device()
        try await world.status(device)
        let refusal = try await expect(.rateLimited) { try await world.status(device, at: other) }
        #expect((1...300).contains(try #require(refusal?.retryAfter)))
        await other.updateKnownDevices()
        try await world.status(device, at: other)
    }

    @Test("an id that passes and does not exist is read three times for an address, then once a minute")
    func wrongPositives() async throws {
        let world = try await World { $0.strangers = Rate(burst: 1, perMinute: 0) }
        try await world.add(World.record(["app_id": "com.example.other"]))
        let (device, neighbour) = (try await world.device(), try await world.device())
        await world.service.updateKnownDevices()
        // The id exists, but in another app. The service treats it like a false positive of the filter of known ids.
        let misplaced = RequestDraft(.status).with { $0.appID = try? AppID("com.example.other") }
        func ask() async throws {
            _ = try await world.service.authenticate(try world.signed(device, misplaced), for: .status)
        }
        for _ in 0..<4 { try await expect(.notRegistered) { try await ask() } }
        await world.stores.fail(.device)
        for _ in 0..<20 { try await expect(.rateLimited) { try await ask() } }
        await world.stores.recover()
        try await world.status(neighbour)
        // The limit is for this id at `world.address`, so it does not refuse the device at another address.
        try await status(device, world, from: "198.51.100.1")
        world.clock.advance(60)
        await world.service.updateKnownDevices()
        for expected in [ErrorCode.notRegistered, .rateLimited] { try await expect(expected) { try await ask() } }
        world.clock.advance(60)
        await world.service.updateKnownDevices()
        try await world.status(device)
    }

    @Test("unknown apps and credentials of a neighbour refuse no signed request of a device")
    func otherStrangers() async throws {
        let world = try await World { $0.strangers = Self.one }
        let device = try await world.device()
        await world.service.updateKnownDevices()
        try await expect(.unknownApp) { try await world.challenge("com.example.nobody") }
        for _ in 0..<5 {
            try await expect(.rateLimited) {
                try await world.service.credentials.authenticate(
                    authorization: "Bearer sya_0000000000000000_AAAA", from: world.address)
            }
        }
        try await world.status(device)
        _ = try await world.challenge()
    }

    @Test("a deregistered device that goes on counts for itself, and not as a stranger")
    func deregistered() async throws {
        let world = try await World {
            $0.strangers = Self.one
            $0.failedSignatures = Rate(burst: 2, perMinute: 1)
        }
        let gone = try await world.device()
        try await world.deregister(gone)
        for expected in [ErrorCode.notRegistered, .notRegistered, .rateLimited, .rateLimited] {
            try await expect(expected) { try await world.status(gone) }
        }
        try await expect(.notRegistered) { try await world.status(stranger(world)) }
    }

    @Test("one client does not use up the re-reads of its neighbours")
    func rereads() async throws {
        let world = try await World { $0.rereads = Self.one }
        let (device, neighbour) = (try await world.device(), try await world.device())
        for device in [device, neighbour] { try await world.status(device) }
        try await expect(.invalidSignature) { try await world.status(wrong(device)) }
        try await expect(.rateLimited) { try await world.status(wrong(device)) }
        // Another node rotates the neighbour's key, so its next request needs a re-read here.
        var after = neighbour
        after.key = P256.Signing.PrivateKey()
        try await world.rotate(neighbour, try world.rotation(neighbour, to: after.key), at: world.anotherNode())
        try await world.status(after)
    }

    @Test("all phones of a /64 and those of an IPv4 address under NAT64 have one bucket of strangers")
    func networks() async throws {
        let world = try await World { $0.strangers = Rate(burst: 2, perMinute: 1) }
        let device = try await world.device()
        await world.service.updateKnownDevices()
        for address in ["2001:db8::%d", "64:ff9b::198.51.100.7"] {
            let addresses = (1...4).map { address.replacing("%d", with: "\($0)") }
            for (number, address) in addresses.enumerated() {
                try await expect(number < 2 ? .notRegistered : .rateLimited, "\(address)") {
                    try await status(stranger(world), world, from: address)
                }
                try await status(device, world, from: address)
            }
        }
        try await expect(.rateLimited) { try await status(stranger(world), world, from: "198.51.100.7") }
    }
}
