import AttestationTestKit
import AuthContract
import AuthService
import Crypto
import StoreConformance
import StrictJSON
import Testing

@Suite("The same key again")
struct SameKeyAgainTests {
    @Test("Registered: 200, the same id, nothing changes")
    func registered() async throws {
        let world = try await World()
        let device = try await world.device()
        let before = try await world.row(device)
        world.clock.advance(1000)
        let answer = try await world.register(try await world.enrolment(device.key))
        #expect(answer == RegisterResponse(deviceID: device.id, status: .registered))
        #expect(try await world.row(device) == before)
    }

    @Test("Registered: evidence is replaced where a valid key proof accompanies it, and only there")
    func evidence() async throws {
        let world = try await AppleWorld()
        let (device, first) = try await world.device()
        let (without, _) = try await world.enrolment(device.key, proving: false)
        #expect(try await world.world.register(without, []).deviceID == device.id)
        #expect(try await world.world.row(device).appAttest?.keyID == first.keyID)
        let (with, second) = try await world.enrolment(device.key)
        #expect(try await world.world.register(with, []).deviceID == device.id)
        #expect(try await world.world.row(device).appAttest?.keyID == second.keyID)
        #expect(try await world.world.audited(.deviceEvidenceReplaced).count == 1)
    }

    @Test("The same App Attest key again keeps its counter")
    func counterIsKept() async throws {
        let world = try await AppleWorld()
        var (device, attestKey) = try await world.device()
        let request = try world.asserting(try world.world.signed(device), &attestKey)
        try await world.world.verify(request)
        #expect(try await world.world.row(device).appAttest?.counter == 1)
        let (again, _) = try await world.enrolment(device.key, attestedBy: attestKey)
        try await world.world.register(again, [])
        #expect(try await world.world.row(device).appAttest?.counter == 1)
    }

    @Test("Android: what Google says anew replaces what it said")
    func android() async throws {
        let world = try await World()
        let key = P256.Signing.PrivateKey()
        func enrolment(_ labels: [String]) async throws -> RegisterRequest {
            let now = world.clock.now
            return try await world.enrolment(
                key, platform: .android, proof: { TestGoogle.token($0, at: now, labels: labels) })
        }
        let id = try await world.register(try await enrolment(["MEETS_DEVICE_INTEGRITY"]), []).deviceID
        let strong = ["MEETS_DEVICE_INTEGRITY", "MEETS_STRONG_INTEGRITY"]
        #expect(try await world.register(try await enrolment(strong), []).deviceID == id)
        let row = try #require(try await world.stores.device(id, of: AppID(World.appID)))
        #expect(row.assurance == Assurance(app: .playIntegrity, key: .appVouched, labels: strong))
    }

    @Test("Pending: policy is judged again, the same id")
    func pending() async throws {
        let world = try await World(["registration": ["approval": "manual"]])
        let device = try await world.device()
        let still = try await world.register(try await world.enrolment(device.key))
        #expect(still == RegisterResponse(deviceID: device.id, status: .pending))
        try await world.change([:])
        let admitted = try await world.register(try await world.enrolment(device.key))
        #expect(admitted == RegisterResponse(deviceID: device.id, status: .registered))
        try await world.verify(device)
    }

    @Test("Pending: observation does not let in whom it could not mark")
    func pendingUnderObservation() async throws {
        let world = try await World(["registration": ["approval": "manual"]])
        let device = try await world.device()
        try await world.change(["registration": ["approval": "manual"], "mode": "observe"])
        let answer = try await world.register(try await world.enrolment(device.key))
        #expect(answer == RegisterResponse(deviceID: device.id, status: .pending))
    }

    @Test("Rejected: 200, the same id, rejected")
    func rejected() async throws {
        let world = try await World(["registration": ["approval": "manual"]])
        let device = try await world.device()
        try await world.reject(device)
        let answer = try await world.register(try await world.enrolment(device.key))
        #expect(answer == RegisterResponse(deviceID: device.id, status: .rejected))
    }

    @Test("Revoked: DEVICE_REVOKED")
    func revoked() async throws {
        let world = try await World()
        let device = try await world.device()
        try await world.revoke(device)
        let enrolment = try await world.enrolment(device.key)
        try await expect(.deviceRevoked) { try await world.register(enrolment) }
    }

    @Test("Deregistered: the tombstone keeps the key; a new key is welcome")
    func deregistered() async throws {
        let world = try await World()
        let device = try await world.device()
        try await world.deregister(device)
        let enrolment = try await world.enrolment(device.key)
        try await expect(.invalidAttestation) { try await world.register(enrolment) }
        _ = try await world.device()
    }

    @Test("A key in another role, app or platform is INVALID_ATTESTATION")
    func otherRoles() async throws {
        let world = try await World()
        try await world.add(World.record(["app_id": "com.example.other"]))
        let first = try await world.device()
        let second = try await world.rotated(first)
        let third = try await world.rotated(second)
        for key in [first.key, second.key] {
            let enrolment = try await world.enrolment(key)
            try await expect(.invalidAttestation) { try await world.register(enrolment) }
        }
        let otherApp = try await world.enrolment(third.key, app: "com.example.other")
        try await expect(.invalidAttestation) { try await world.register(otherApp) }
        let otherPlatform = try await world.enrolment(third.key, platform: .android)
        try await expect(.invalidAttestation) { try await world.register(otherPlatform) }
        #expect(try await world.register(try await world.enrolment(third.key)).deviceID == first.id)
    }

    @Test("Whether a key is known shows only after the proof verified")
    func lookedUpLast() async throws {
        let world = try await AppleWorld()
        let (device, _) = try await world.device()
        try await world.world.revoke(device)
        let (enrolment, _) = try await world.enrolment(device.key)
        try await expect(.invalidAttestation) {
            try await world.world.register(enrolment.replacing(proof: "AAAA"), [])
        }
    }

    @Test("Of 64 concurrent registrations of one key each gets the same id")
    func concurrent() async throws {
        let world = try await World()
        let key = P256.Signing.PrivateKey()
        let enrolments = try await (0..<64).asyncMap { _ in try await world.enrolment(key) }
        let ids = try await withThrowingTaskGroup(of: DeviceID.self) { group in
            for enrolment in enrolments { group.addTask { try await world.register(enrolment).deviceID } }
            return try await group.reduce(into: Set()) { $0.insert($1) }
        }
        #expect(ids.count == 1)
        #expect(try await world.stores.count(of: AppID(World.appID)) == [.registered: 1])
    }
}
