import AttestationTestKit
import AuthContract
import Crypto
import StoreConformance
import StrictJSON
import Testing

@testable import AuthService

@Suite("The same key again")
struct SameKeyAgainTests {
    @Test("a registered key gets the same id, and nothing changes")
    func registered() async throws {
        let world = try await World()
        let device = try await world.device()
        let before = try await world.row(device)
        world.clock.advance(1000)
        let answer = try await world.register(try await world.enrolment(device.key))
        #expect(answer == RegisterResponse(deviceID: device.id, status: .registered))
        #expect(try await world.row(device) == before)
    }

    @Test("evidence of a registered key is replaced only with a valid key proof")
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

    @Test("the same App Attest key again keeps its counter")
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

    // MARK: Another App Attest key

    @Test(
        "after a lost answer the same key with a new App Attest key gets the same id",
        arguments: [0, 6])
    func lostAnswer(days: Int64) async throws {
        let world = try await AppleWorld(ios: ["assertions_required_except": []])
        let (device, _) = try await world.device()
        world.world.clock.advance(days * 86_400)
        let (again, second) = try await world.enrolment(device.key)
        #expect(try await world.world.register(again, []) == RegisterResponse(deviceID: device.id, status: .registered))
        var attestKey = second
        try await world.world.verify(world.asserting(try world.world.signed(device), &attestKey))
        let row = try await world.world.row(device)
        #expect(row.assurance.labels == ["category:4"])
        #expect(try await world.world.audited(.deviceEvidenceReplaced).map { $0.detail["rebound"] } == [false])
    }

    /// Events after which a new registration with the same key is not a retry of the first one. Either the device was
    /// used, which shows that its client got the first answer, or a week has passed.
    enum Use: String, CaseIterable {
        case justVerified, writtenDown, notWritten, asserted, rotated, schemeTwo, weekOld
    }

    @Test(
        "the signing key alone cannot replace the App Attest key of a device in use",
        arguments: Use.allCases)
    func stolenKey(use: Use) async throws {
        let world = try await AppleWorld(["keys": ["rebind_on_rotation": false]])
        var (device, owner) = try await world.device()
        switch use {
        case .justVerified: try await world.world.verify(device)
        case .writtenDown:
            try await world.world.verify(device)
            await world.world.service.writeLastSeen()
        case .notWritten:
            try await world.world.verify(device)
            await world.world.stores.interrupt(.writeLastSeen) { $0.fail(.writeLastSeen) }
            await world.world.service.writeLastSeen()
        case .asserted: try await world.world.verify(world.asserting(try world.world.signed(device), &owner))
        case .rotated: device = try await world.world.rotated(device)
        case .schemeTwo: try await world.world.verify(device, RequestDraft().with { $0.scheme = .two })
        case .weekOld: world.world.clock.advance(7 * 86_400 + 1)
        }
        let before = try await world.world.row(device)
        let (stolen, thief) = try await world.enrolment(device.key)
        #expect(
            try await world.world.register(stolen, []) == RegisterResponse(deviceID: device.id, status: .registered))
        #expect(try await world.world.row(device) == before)
        #expect(try await world.world.audited(.deviceEvidenceReplaced).isEmpty)
        guard use != .schemeTwo else { return }
        var keys = (owner: owner, thief: thief)
        let request = try world.asserting(try world.world.signed(device), &keys.thief)
        try await expect(.invalidAssertion) { try await world.world.verify(request) }
        try await world.world.verify(world.asserting(try world.world.signed(device), &keys.owner))
    }

    @Test("a node relies on the last-seen times that other nodes stored")
    func stolenKeyAtAnotherNode() async throws {
        let world = try await AppleWorld()
        let (device, owner) = try await world.device()
        try await world.world.verify(device)
        await world.world.service.writeLastSeen()
        let (stolen, _) = try await world.enrolment(device.key)
        try await world.world.register(stolen, [], at: try world.world.anotherNode())
        #expect(try await world.world.row(device).appAttest?.keyID == owner.keyID)
    }

    @Test("if the policy allows it, a device in use may bring another App Attest key, and the audit log says so")
    func rebound() async throws {
        let world = try await AppleWorld(["keys": ["rebind_on_rotation": true]])
        let (device, _) = try await world.device()
        try await world.world.verify(device)
        let (without, _) = try await world.enrolment(device.key, proving: false)
        let before = try await world.world.row(device)
        try await world.world.register(without, [])
        #expect(try await world.world.row(device) == before)
        let (again, second) = try await world.enrolment(device.key)
        try await world.world.register(again, [])
        let row = try await world.world.row(device)
        #expect(row.appAttest?.keyID == second.keyID)
        #expect(row.assurance.labels == ["category:4", "rebound"])
        #expect(try await world.world.audited(.deviceEvidenceReplaced).map { $0.detail["rebound"] } == [true])
    }

    @Test(
        "a registration replaces nothing while the key must rotate because of a compromise",
        arguments: [true, false], [true, false])
    func compromised(byPolicy: Bool, isInUse: Bool) async throws {
        let keys: [String: JSONValue] = ["rebind_on_rotation": true]
        let world = try await AppleWorld(["keys": .object(World.object(keys))])
        let (device, _) = try await world.device()
        if isInUse { try await world.world.verify(device) }
        world.world.clock.advance(10)
        let now = world.world.clock.now
        if byPolicy {
            let compromise: JSONValue = ["keys_before": .string(now.iso8601), "rotate_by": .string((now + 60).iso8601)]
            try await world.change(["keys": .object(World.object(keys.merging(["compromise": compromise]) { $1 }))])
        } else {
            _ = try await world.world.service.administration.forceRotation(
                device.id, of: device.appID, by: now + 60, reason: .compromise, actor: "test")
        }
        let before = try await world.world.row(device)
        let (again, _) = try await world.enrolment(device.key)
        try await world.world.register(again, [])
        #expect(try await world.world.row(device) == before)
    }

    @Test("a demand of compromise during a registration keeps the App Attest key")
    func compromisedMeanwhile() async throws {
        let world = try await AppleWorld(["keys": ["rebind_on_rotation": true]])
        let (device, owner) = try await world.device()
        let now = world.world.clock.now
        await world.world.stores.interrupt(.save) { stores in
            _ = try? stores.change(device.id, of: device.appID) {
                $0.mustRotate = RotationDemand(by: now + 60, reason: .compromise)
            }
        }
        let (again, _) = try await world.enrolment(device.key)
        #expect(try await world.world.register(again, []).deviceID == device.id)
        #expect(try await world.world.row(device).appAttest?.keyID == owner.keyID)
    }

    @Test("an assertion during a registration keeps the App Attest key and its counter")
    func assertedMeanwhile() async throws {
        let world = try await AppleWorld()
        let (device, owner) = try await world.device()
        await world.world.stores.interrupt(.save) { stores in
            _ = try? stores.raise(.counter(1, ofAppAttestKey: owner.keyID), of: device.id, app: device.appID)
        }
        let (again, _) = try await world.enrolment(device.key)
        try await world.world.register(again, [])
        #expect(try await world.world.row(device).appAttest?.keyID == owner.keyID)
        #expect(try await world.world.row(device).appAttest?.counter == 1)
    }

    @Test("a pending device may bring another App Attest key until it asked for its status")
    func pendingLostAnswer() async throws {
        let world = try await AppleWorld(["registration": ["approval": "manual"]])
        let (device, first) = try await world.device()
        let (without, _) = try await world.enrolment(device.key, proving: false)
        try await world.world.register(without, [])
        #expect(try await world.world.row(device).appAttest?.keyID == first.keyID)
        let (again, second) = try await world.enrolment(device.key)
        #expect(try await world.world.register(again, []) == RegisterResponse(deviceID: device.id, status: .pending))
        #expect(try await world.world.row(device).appAttest?.keyID == second.keyID)
        try await world.world.status(device)
        let (third, _) = try await world.enrolment(device.key)
        try await world.world.register(third, [])
        #expect(try await world.world.row(device).appAttest?.keyID == second.keyID)
    }

    @Test("a new verdict of Google replaces the old one")
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

    /// The stored assurance, the assurance of the new proof, and the stored assurance afterwards; nil if it stays as it was.
    private static let proofs: [(Assurance, Assurance, Assurance?)] = [
        (.of(.none, .strongbox), google, .of(.playIntegrity, .strongbox, device)),
        (.of(.none, .tee), google, .of(.playIntegrity, .tee, device)),
        (.of(.playIntegrity, .tee, ["MEETS_STRONG_INTEGRITY"]), google, .of(.playIntegrity, .tee, device)),
        (.of(.playIntegrity, .appVouched), google, google),
        // Key level `rotated` is weaker than `app-vouched`.
        (.of(.playIntegrity, .rotated), google, google),
        // A key level that `test` or `development` proved is not combined with Google's assurance.
        (.of(.test, .strongbox), google, google), (.of(.development, .unattested), google, google),
        (.of(.none, .unattested), google, google), (.of(.playIntegrity, .strongbox, device), development, nil),
        (.of(.test, .tee), development, nil), (.of(.none, .tee), development, nil),
        (.of(.development, .rotated), development, nil),
        (.of(.appAttest, .appVouched, ["category:4"]), development, nil),
        (.of(.playIntegrity, .rotated, ["rebound"]), google, .of(.playIntegrity, .appVouched, device + ["rebound"])),
    ]
    private static let device = ["MEETS_DEVICE_INTEGRITY"]
    private static let google = Assurance.of(.playIntegrity, .appVouched, device)
    private static let development = Assurance.of(.development, .unattested)

    @Test(
        "a weaker proof does not lower the assurance, and its parts are not mixed with a stronger one's",
        arguments: proofs)
    func joined(before: Assurance, sent: Assurance, after: Assurance?) async throws {
        let world = try await World()
        let key = P256.Signing.PrivateKey()
        func enrolment() async throws -> RegisterRequest {
            let now = world.clock.now
            return try await world.enrolment(
                key, platform: .android, proof: sent == Self.google ? { TestGoogle.token($0, at: now) } : nil)
        }
        let id = try await world.register(try await enrolment()).deviceID
        let device = TestDevice(appID: try AppID(World.appID), id: id, key: key)
        // The test sets this state itself: registrations by the test authority get `test`, not `app-attest`.
        let attested = AppAttestKeyState(
            keyID: [1], publicKey: [2], appID: "T.a", environment: "production", counter: 7)
        let evidence = before.app == .appAttest ? attested : nil
        try await world.stores.change(device.id, of: device.appID) {
            ($0.appAttest, $0.assurance) = (evidence, before)
        }
        #expect(try await world.register(try await enrolment()).deviceID == id)
        #expect(try await world.row(device).assurance == after ?? before)
        #expect(try await world.row(device).appAttest == evidence)
    }

    @Test("a proof that another one overtakes is joined with it")
    func overtaken() async throws {
        let world = try await World()
        let key = P256.Signing.PrivateKey()
        let device = try await world.registerAndroid(key)
        await world.overtakeEvidence(of: try await world.row(device), by: .of(.none, .strongbox))
        let now = world.clock.now
        let again = try await world.enrolment(key, platform: .android, proof: { TestGoogle.token($0, at: now) })
        #expect(try await world.register(again, []).deviceID == device.id)
        #expect(try await world.row(device).assurance == .of(.playIntegrity, .strongbox, Self.device))
    }

    @Test("proofs of two providers join in either order, and a weaker app assurance does not raise the key's")
    func joinedEitherWay() {
        let (hardware, google) = (Assurance.of(.none, .strongbox), Self.google)
        #expect(google.joined(with: hardware) == (.of(.playIntegrity, .strongbox, Self.device), false))
        #expect(hardware.joined(with: google) == (.of(.playIntegrity, .strongbox, Self.device), true))
        let (store, xcode) = (Assurance.of(.appAttest, .rotated), Assurance.of(.appAttestDevelopment, .appVouched))
        #expect(store.joined(with: xcode) == (store, false))
        #expect(xcode.joined(with: .of(.appAttest, .appVouched)) == (.of(.appAttest, .appVouched), true))
    }

    @Test("a pending key gets the same id, and the policy is judged again")
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

    @Test("a pending device is admitted and marked under observation, and is pending again once the app enforces")
    func pendingUnderObservation() async throws {
        let world = try await World(["registration": ["approval": "manual"]])
        let device = try await world.device()
        try await world.change(["registration": ["approval": "manual"], "mode": "observe"])
        let answer = try await world.register(try await world.enrolment(device.key))
        #expect(answer == RegisterResponse(deviceID: device.id, status: .registered))
        #expect(try await world.row(device).admittedUnderObservation)
        try await world.token(device)
        try await world.change(["registration": ["approval": "manual"]])
        try await expect(.devicePending) { try await world.token(device) }
    }

    @Test("a rejected key gets the same id and status rejected")
    func rejected() async throws {
        let world = try await World(["registration": ["approval": "manual"]])
        let device = try await world.device()
        try await world.reject(device)
        let answer = try await world.register(try await world.enrolment(device.key))
        #expect(answer == RegisterResponse(deviceID: device.id, status: .rejected))
    }

    @Test("a revoked key is DEVICE_REVOKED")
    func revoked() async throws {
        let world = try await World()
        let device = try await world.device()
        try await world.revoke(device)
        let enrolment = try await world.enrolment(device.key)
        try await expect(.deviceRevoked) { try await world.register(enrolment) }
    }

    @Test("a deregistered key stays refused, and a new key registers")
    func deregistered() async throws {
        let world = try await World()
        let device = try await world.device()
        try await world.deregister(device)
        let enrolment = try await world.enrolment(device.key)
        try await expect(.invalidAttestation) { try await world.register(enrolment) }
        _ = try await world.device()
    }

    @Test("a key in another role, app or platform is INVALID_ATTESTATION")
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

    @Test("whether a key is known shows only after the proof verified")
    func lookedUpLast() async throws {
        let world = try await AppleWorld()
        let (device, _) = try await world.device()
        try await world.world.revoke(device)
        let (enrolment, _) = try await world.enrolment(device.key)
        try await expect(.invalidAttestation) {
            try await world.world.register(enrolment.replacing(proof: "AAAA"), [])
        }
    }

    @Test("64 concurrent registrations of one key get the same id")
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

extension World {
    /// An Android device, registered with a development proof.
    fileprivate func registerAndroid(_ key: P256.Signing.PrivateKey) async throws -> TestDevice {
        let id = try await register(try await enrolment(key, platform: .android)).deviceID
        return TestDevice(appID: try AppID(World.appID), id: id, key: key)
    }

    /// Stores another proof of the device right before the next proof is recorded.
    func overtakeEvidence(of row: DeviceRecord, by assurance: Assurance) async {
        await stores.interrupt(.save) { stores in
            _ = try? stores.change(row.deviceID, of: row.appID) {
                ($0.appAttest, $0.assurance) = (nil, assurance)
            }
        }
    }
}

extension Assurance {
    fileprivate static func of(_ app: App, _ key: Key, _ labels: [String] = []) -> Assurance {
        Assurance(app: app, key: key, labels: labels)
    }
}
