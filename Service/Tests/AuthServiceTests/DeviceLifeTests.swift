import AuthContract
import AuthService
import Crypto
import StoreConformance
import StrictJSON
import Testing

@Suite("The life of a device")
struct DeviceLifeTests {
    private static let aging: [String: JSONValue] = ["keys": ["maximum_age_days": 30, "grace_days": 7]]

    @Test(
        "a key verifies until its age, then only rotates until its grace ends",
        arguments: [
            (30 * 86_400, nil, nil), (30 * 86_400 + 1, .keyExpired, nil), (37 * 86_400, .keyExpired, nil),
            (37 * 86_400 + 1, .keyExpired, .keyExpired),
        ] as [(Int64, ErrorCode?, ErrorCode?)])
    func age(seconds: Int64, token: ErrorCode?, rotation: ErrorCode?) async throws {
        let world = try await World(Self.aging)
        let device = try await world.device()
        world.clock.advance(seconds)
        #expect(try await refusal { try await world.token(device) }?.code == token)
        #expect(try await refusal { try await world.rotated(device) }?.code == rotation)
    }

    @Test("the age of a key counts from the last rotation")
    func ageAfterRotation() async throws {
        let world = try await World(Self.aging)
        let device = try await world.device()
        world.clock.advance(30 * 86_400)
        let after = try await world.rotated(device)
        world.clock.advance(30 * 86_400)
        try await world.verify(after)
        #expect(try await world.status(after).keyAgeSeconds == 30 * 86_400)
    }

    @Test(
        "on each of our own routes a body that names another app or device than the headers is refused",
        arguments: [Operation.status, .rotateKey, .deregister, .token])
    func idsInTheBody(_ operation: Operation) async throws {
        let world = try await World()
        let device = try await world.device()
        let other = #"{"device_id":"123e4567-e89b-42d3-a456-426614174000"}"#
        for body in [#"{"app_id":"com.example.other"}"#, other, #"{"app_id":1}"#] {
            let sent = try world.signed(device, RequestDraft(operation, body: Array(body.utf8)))
            #expect(
                try await refusal { try await world.service.authenticate(sent, for: operation) }?.code
                    == .invalidRequest, "\(body)")
        }
        let same = #"{"app_id":"\#(World.appID)","device_id":"\#(device.id.text)"}"#
        let sent = try world.signed(device, RequestDraft(operation, body: Array(same.utf8)))
        _ = try await world.service.authenticate(sent, for: operation)
    }

    @Test("the status names the stored state and the server's time")
    func status() async throws {
        let world = try await World()
        let device = try await world.device()
        world.clock.advance(100)
        let before = try await world.status(device)
        #expect(before.deviceID == device.id && before.status == .registered && before.platform == .ios)
        #expect(before.registeredAt == World.start && before.keyRotatedAt == nil && before.keyAgeSeconds == 100)
        #expect(before.keyThumbprint == device.publicKey.thumbprint && before.serverTimestamp == world.clock.now)
        let after = try await world.rotated(device)
        world.clock.advance(5)
        // The status names the current key, whichever key signs the request.
        for asking in [device, after] {
            let status = try await world.status(asking)
            #expect(status.keyThumbprint == after.publicKey.thumbprint)
            #expect(status.keyRotatedAt == World.start + 100 && status.keyAgeSeconds == 5)
        }
    }

    @Test("the current key is read from the store, not from the cache")
    func statusIsFresh() async throws {
        let world = try await World()
        let device = try await world.device()
        try await world.verify(device)
        var after = device
        after.key = P256.Signing.PrivateKey()
        try await world.rotate(device, try world.rotation(device, to: after.key), at: try world.anotherNode())
        #expect(try await world.status(device).keyThumbprint == after.publicKey.thumbprint)
    }

    @Test("after DELETE the device is unknown, and its key cannot be registered")
    func delete() async throws {
        let world = try await World()
        let device = try await world.device()
        try await world.deregister(device)
        try await expect(.notRegistered) { try await world.status(device) }
        #expect(try await world.row(device).status == .deregistered)
        #expect(try await world.audited(.deviceDeregistered).map(\.actor) == ["device"])
        let other = try await world.device()
        try await expect(.rotationFailed) { try await world.rotate(other, world.rotation(other, to: device.key)) }
        try await expect(.conflict) { try await world.revoke(device) }
    }

    @Test("DELETE of a device that was revoked meanwhile is DEVICE_REVOKED")
    func deleteRevoked() async throws {
        let world = try await World()
        let device = try await world.device()
        let verified = try await world.service.authenticate(
            try world.signed(device, for: .deregister), for: .deregister)
        try await world.revoke(device)
        try await expect(.deviceRevoked) { try await world.service.deregister(verified) }
        #expect(try await world.row(device).status == .revoked)
    }

    @Test("a revocation between the signature and the answer shows in the status")
    func statusRevokedMeanwhile() async throws {
        let world = try await World()
        let device = try await world.device()
        let verified = try await world.service.authenticate(try world.signed(device, for: .status), for: .status)
        try await world.revoke(device)
        try await expect(.deviceRevoked) { try await world.service.status(verified) }
    }

    @Test("a revocation is permanent for the id; the phone may come back with a new key")
    func revocation() async throws {
        let world = try await World()
        let device = try await world.device()
        try await world.revoke(device)
        try await expect(.conflict) { try await world.approve(device) }
        try await expect(.conflict) { try await world.reject(device) }
        // A retry after a timeout succeeds without a second event.
        try await world.revoke(device)
        #expect(try await world.audited(.deviceRevoked).count == 1)
        #expect(try await world.row(device).status == .revoked)
        _ = try await world.device()
    }

    // MARK: Cached rows

    @Test("a cached row never refuses: the row is re-read first")
    func rememberedRows() async throws {
        let world = try await World(["registration": ["approval": "manual"]])
        let device = try await world.device()
        let node = try world.anotherNode()
        try await expect(.devicePending) { try await world.verify(device, at: node) }
        try await world.approve(device)
        try await world.verify(device, at: node)
        let after = try await world.rotated(device)
        try await world.verify(after, at: node)
    }

    @Test("a cached row accepts for five seconds at most, also if the clock is set back")
    func rememberedForFiveSeconds() async throws {
        let world = try await World()
        let device = try await world.device()
        let node = try world.anotherNode()
        try await world.verify(device, at: node)
        try await world.revoke(device)
        try await expect(.deviceRevoked) { try await world.verify(device) }
        world.clock.advance(4)
        try await world.verify(device, at: node)
        world.clock.advance(1)
        try await expect(.deviceRevoked) { try await world.verify(device, at: node) }
        let other = try await world.device()
        try await world.verify(other, at: node)
        try await world.revoke(other)
        world.clock.stepBack(30)
        try await expect(.deviceRevoked) { try await world.verify(other, at: node) }
    }

    @Test("a change by another process counts once it is announced")
    func announced() async throws {
        let world = try await World()
        let device = try await world.device()
        let node = try world.anotherNode()
        try await world.verify(device, at: node)
        let following = Task { await node.run() }
        defer { following.cancel() }
        try await world.revoke(device)
        var code: ErrorCode?
        for _ in 0..<10_000 where code == nil {
            world.stores.signalExternalChange()
            code = try await refusal { try await world.verify(device, at: node) }?.code
            await Task.yield()
        }
        #expect(code == .deviceRevoked)
    }

    @Test("Re-reads are bounded for each address, and beyond the bound the answer is 429")
    func rereads() async throws {
        let world = try await World { $0.rereads = Rate(burst: 2, perMinute: 60) }
        let device = try await world.device()
        var stranger = device
        stranger.key = P256.Signing.PrivateKey()
        try await world.status(device)
        for _ in 0..<2 {
            try await world.verify(device)
            try await expect(.invalidSignature) { try await world.status(stranger) }
        }
        try await expect(.rateLimited) { try await world.status(stranger) }
        // A cached row that accepts the request is not re-read.
        try await world.verify(device)
    }

    @Test("through /verify re-reads are bounded for each device")
    func foreignRereads() async throws {
        let world = try await World { $0.rereads = Rate(burst: 2, perMinute: 1) }
        let (device, neighbour) = (try await world.device(), try await world.device())
        var stranger = device
        stranger.key = P256.Signing.PrivateKey()
        try await world.verify(device)
        for _ in 0..<2 { try await expect(.invalidSignature) { try await world.verify(stranger) } }
        try await expect(.rateLimited) { try await world.verify(stranger) }
        try await world.verify(neighbour)
        let node = try world.anotherNode()
        let after = try await Self.rotatedElsewhere(neighbour, world, node)
        try await world.verify(after)
    }

    private static func rotatedElsewhere(
        _ device: TestDevice, _ world: World, _ node: AuthService
    ) async throws -> TestDevice {
        var after = device
        after.key = P256.Signing.PrivateKey()
        try await world.rotate(device, try world.rotation(device, to: after.key), at: node)
        return after
    }

    @Test("absence is not cached")
    func absence() async throws {
        let world = try await World()
        let node = try world.anotherNode()
        let id = DeviceID(from: SeededRandom(seed: 99))
        let device = TestDevice(appID: try AppID(World.appID), id: id, key: P256.Signing.PrivateKey())
        try await expect(.notRegistered) { try await world.verify(device, at: node) }
        _ = try await world.stores.insert(
            DeviceRecord(
                appID: device.appID, deviceID: id, platform: .ios, status: .registered, key: device.publicKey,
                assurance: Assurance(app: .development, key: .unattested), registeredAt: world.clock.now),
            recording: AuditEvent(.deviceRegistered, at: world.clock.now, actor: "test"))
        try await world.verify(device, at: node)
    }
}
