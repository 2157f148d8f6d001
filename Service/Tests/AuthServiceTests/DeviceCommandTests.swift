import AuthContract
import Crypto
import StoreConformance
import StrictJSON
import Testing

@testable import AuthService

/// The effect of a command on a device, decided by the device's record alone.
@Suite("Commands about a device")
struct DeviceCommandTests {
    private static let now = UnixTime(1_750_000_000)

    private static func key() -> DevicePublicKey { DevicePublicKey(P256.Signing.PrivateKey().publicKey) }

    private static func device(
        registeredAt: UnixTime = now - 1000, _ change: (inout DeviceRecord) -> Void = { _ in }
    ) throws -> DeviceRecord {
        var device = DeviceRecord(
            appID: try AppID(World.appID), deviceID: DeviceID(from: SystemRandom()), platform: .ios,
            status: .registered, key: key(), assurance: Assurance(app: .appAttest, key: .appVouched),
            registeredAt: registeredAt)
        change(&device)
        return device
    }

    private static func apply(
        _ command: DeviceCommand, to device: DeviceRecord, under members: [String: JSONValue] = [:]
    ) throws -> DeviceChange? {
        try device.applying(command, under: try World.record(members), at: now, by: "test")
    }

    // MARK: Evidence

    @Test("evidence that replaces the app's part brings its version, and evidence without one leaves the version")
    func appVersion() throws {
        func proven(_ app: Assurance.App, _ version: String?, _ device: DeviceRecord) throws -> String? {
            let evidence = VerifiedEvidence(assurance: Assurance(app: app, key: .tee), appVersion: version)
            return try Self.apply(.proveAgain(evidence, of: device.key, wasSeen: false), to: device)?.after.appVersion
        }
        let device = try Self.device {
            ($0.assurance, $0.appVersion) = (Assurance(app: .playIntegrity, key: .tee), "1")
        }
        #expect(try proven(.playIntegrity, "2", device) == "2")
        #expect(try proven(.playIntegrity, nil, device) == nil, "nothing changes")
        #expect(try proven(.none, "2", device) == nil, "a weaker proof changes nothing")
    }

    @Test("a proof of a key that was replaced meanwhile changes nothing")
    func proofOfReplacedKey() throws {
        let device = try Self.device()
        let evidence = VerifiedEvidence(assurance: Assurance(app: .appAttest, key: .appVouched), appVersion: "2")
        #expect(try Self.apply(.proveAgain(evidence, of: device.key, wasSeen: false), to: device) != nil)
        let conflict = #expect(throws: DeviceConflict.self) {
            try Self.apply(.proveAgain(evidence, of: Self.key(), wasSeen: false), to: device)
        }
        #expect(conflict?.code == .invalidAttestation)
    }

    private static func appAttest(_ id: UInt8, counter: UInt32 = 0) -> AppAttestKeyState {
        AppAttestKeyState(
            keyID: Array(repeating: id, count: 32), publicKey: Array(repeating: 4, count: 65), appID: "TEAMID1234.app",
            environment: "production", attestedExtensions: false, counter: counter)
    }

    private static func proven(
        _ appAttest: AppAttestKeyState, to device: DeviceRecord, rebinds: Bool
    ) throws -> DeviceChange? {
        let evidence = VerifiedEvidence(assurance: device.assurance, appAttest: appAttest)
        return try apply(
            .proveAgain(evidence, of: device.key, wasSeen: false), to: device,
            under: ["keys": ["rebind_on_rotation": .bool(rebinds)]])
    }

    @Test("a second proof of the same App Attest key leaves its counter", arguments: [false, true])
    func sameAppAttestKey(rebinds: Bool) throws {
        for counter in [0, 5] as [UInt32] {
            let device = try Self.device { $0.appAttest = Self.appAttest(1, counter: counter) }
            var again = Self.appAttest(1)
            again.receipt = [1]
            #expect(try Self.proven(again, to: device, rebinds: rebinds) == nil)
        }
    }

    @Test("an unused device may be registered again for a week")
    func lostAnswer() throws {
        func replaced(after age: Int64, _ change: (inout DeviceRecord) -> Void = { _ in }) throws -> Bool {
            let device = try Self.device(registeredAt: Self.now - age) {
                $0.appAttest = Self.appAttest(1)
                change(&$0)
            }
            return try Self.proven(Self.appAttest(2), to: device, rebinds: false)?.after.appAttest == Self.appAttest(2)
        }
        let week: Int64 = 7 * 86_400
        #expect(try replaced(after: week))
        #expect(try !replaced(after: week + 1))
        #expect(try !replaced(after: 1) { $0.lastSeen = Self.now })
        #expect(try !replaced(after: 1) { $0.appAttest?.counter = 1 })
        #expect(try !replaced(after: 1) { $0.keyRotatedAt = Self.now })
        #expect(try !replaced(after: 1) { $0.highestScheme = .two })
    }

    // MARK: Waiting devices

    @Test(
        "a command for pending devices changes no device in another state",
        arguments: [DeviceStatus.registered, .rejected, .revoked, .deregistered])
    func settledBefore(status: DeviceStatus) throws {
        let device = try Self.device { $0.status = status }
        let evidence = VerifiedEvidence(assurance: Assurance(app: .appAttest, key: .appVouched), appVersion: "2")
        for command in [DeviceCommand.settleProof(evidence), .admit, .refuseProof(outcome: "expired"), .hold] {
            #expect(try Self.apply(command, to: device) == nil, "\(command)")
        }
    }

    @Test("a settled proof brings the version of the app only with the app's part")
    func settledVersion() throws {
        let device = try Self.device { ($0.status, $0.assurance, $0.appVersion) = (.pending, .approvedUnproven, "1") }
        func settled(_ app: Assurance.App, _ version: String?) throws -> String? {
            let evidence = VerifiedEvidence(assurance: Assurance(app: app, key: .tee), appVersion: version)
            return try Self.apply(.settleProof(evidence), to: device)?.after.appVersion
        }
        #expect(try settled(.playIntegrity, "2") == "2")
        #expect(try settled(.playIntegrity, nil) == "1")
        let proven = try Self.device { ($0.status, $0.appVersion) = (.pending, "1") }
        let weaker = VerifiedEvidence(assurance: Assurance(app: .development, key: .unattested), appVersion: "2")
        #expect(try Self.apply(.settleProof(weaker), to: proven)?.after.appVersion == "1")
    }

    @Test("a device that was admitted under observation is held, rejected or admitted as any other")
    func observed() throws {
        let device = try Self.device { $0.admittedUnderObservation = true }
        for (command, status) in [
            (DeviceCommand.hold, DeviceStatus.pending), (.reject, .rejected), (.admit, .registered),
            (.approve(allowsUnproven: false), .registered),
        ] {
            let after = try #require(try Self.apply(command, to: device)).after
            #expect(after.status == status)
            #expect(!after.admittedUnderObservation)
        }
    }

    // MARK: Rotations with evidence

    @Test("evidence of a rotation needs the App Attest key by which it was judged")
    func judgedAppAttestKey() throws {
        let device = try Self.device { $0.appAttest = Self.appAttest(1) }
        func rotate(_ reattestation: Reattestation?, judgedBy key: [UInt8]?) throws -> DeviceChange? {
            var rotation = KeyRotation(newKey: Self.key(), signedBy: device.key, reason: .scheduled)
            (rotation.reattestation, rotation.judgedAppAttestKey) = (reattestation, key)
            return try Self.apply(.rotate(rotation), to: device)
        }
        let evidence = Reattestation(app: nil, key: .appVouched)
        #expect(try rotate(nil, judgedBy: nil) != nil)
        #expect(try rotate(evidence, judgedBy: Self.appAttest(1).keyID) != nil)
        for key in [nil, Self.appAttest(2).keyID] {
            let conflict = #expect(throws: DeviceConflict.self) { try rotate(evidence, judgedBy: key) }
            #expect(conflict?.code == .rotationFailed)
        }
    }

    @Test("a rotation with evidence removes the label of an unproven device, and one without evidence leaves it")
    func unprovenLabel() throws {
        let device = try Self.device { $0.assurance = .approvedUnproven }
        var rotation = KeyRotation(newKey: Self.key(), signedBy: device.key, reason: .scheduled)
        #expect(try Self.apply(.rotate(rotation), to: device)?.after.assurance.labels == [Assurance.unprovenLabel])
        rotation.reattestation = Reattestation(app: nil, key: .tee)
        #expect(try Self.apply(.rotate(rotation), to: device)?.after.assurance.labels == [])
    }

    // MARK: Demands to rotate

    private static func demand(_ reason: RotationReason, in seconds: Int64) -> RotationDemand {
        RotationDemand(by: now + seconds, reason: reason)
    }

    @Test(
        "the stronger demand to rotate wins",
        arguments: [
            (nil, demand(.scheduled, in: 9), demand(.scheduled, in: 9)),
            (demand(.scheduled, in: 9), demand(.scheduled, in: 99), demand(.scheduled, in: 99)),
            (demand(.scheduled, in: 99), demand(.compromise, in: 9), demand(.compromise, in: 9)),
            // The merged demand never extends the time in which the key verifies.
            (demand(.scheduled, in: 9), demand(.compromise, in: 99), demand(.compromise, in: 9)),
            (demand(.scheduled, in: -9), demand(.compromise, in: -9), demand(.compromise, in: -9)),
            // The stored demand ends in the present second, so it is not overdue yet.
            (demand(.scheduled, in: 0), demand(.compromise, in: 9), demand(.compromise, in: 0)),
            (demand(.compromise, in: 9), demand(.scheduled, in: 0), nil),
            (demand(.compromise, in: -9), demand(.scheduled, in: 9), nil),
            (demand(.compromise, in: -9), demand(.compromise, in: 9), nil),
            (demand(.compromise, in: 9), demand(.compromise, in: 8), demand(.compromise, in: 8)),
        ] as [(RotationDemand?, RotationDemand, RotationDemand?)])
    func strongerDemand(stored: RotationDemand?, new: RotationDemand, set: RotationDemand?) throws {
        let device = try Self.device { $0.mustRotate = stored }
        let change = try Self.apply(.demandRotation(new), to: device)
        #expect(change?.after.mustRotate == set)
    }

    @Test("the audit event of a decision says what was before")
    func before() throws {
        let pending = try Self.device { $0.status = .pending }
        let marked = try Self.device { $0.admittedUnderObservation = true }
        let registered = try Self.device { ($0.highestScheme, $0.mustRotate) = (.two, Self.demand(.scheduled, in: 9)) }
        for (command, device, from, to) in [
            (DeviceCommand.approve(allowsUnproven: true), pending, JSONValue("pending"), JSONValue("registered")),
            // A device that was admitted under observation is pending in an app that enforces.
            (.approve(allowsUnproven: false), marked, "pending", "registered"),
            (.reject, pending, "pending", "rejected"), (.revoke(reason: nil), registered, "registered", "revoked"),
            (.lowerScheme(to: .one), registered, 2, 1),
        ] {
            let detail = try #require(try Self.apply(command, to: device)).event.detail
            #expect(detail["from"] == from && detail["to"] == to, "\(command)")
        }
        let demand = try #require(
            try Self.apply(.demandRotation(Self.demand(.compromise, in: 5)), to: registered)
        ).event.detail
        #expect(demand["before"]?.object?["reason"] == "scheduled" && demand["reason"] == "compromise")
    }

    @Test("a demand for compromise does not revive a key whose rotation is overdue, and does not end it unasked")
    func overdueDemand() throws {
        let device = try Self.device { $0.mustRotate = Self.demand(.scheduled, in: -9) }
        let conflict = #expect(throws: DeviceConflict.self) {
            try Self.apply(.demandRotation(Self.demand(.compromise, in: 9)), to: device)
        }
        #expect(conflict?.code == .conflict)
        #expect(conflict?.description.contains("lift that demand first") == true)
    }

    @Test("a demand is lifted by a command of its own, and a key that it ended rotates again")
    func lifting() async throws {
        let world = try await World()
        let device = try await world.device()
        let operators = world.service.administration
        let (id, app) = (device.id, device.appID)
        try await operators.forceRotation(id, of: app, by: world.clock.now, reason: .compromise, actor: "test")
        world.clock.advance(1)
        try await expect(.keyExpired) { try await world.rotated(device) }
        let kept = try await operators.forceRotation(id, of: app, by: world.clock.now + 60, actor: "test")
        #expect(kept.mustRotate?.reason == .compromise)
        try await expect(.keyExpired) { try await world.rotated(device) }
        try await operators.liftRotation(id, of: app, actor: "test")
        try await operators.liftRotation(id, of: app, actor: "test")
        #expect(try await world.audited(.deviceRotationLifted).count == 1)
        try await world.verify(try await world.rotated(device))
    }

    @Test("a later compromise in the app's policy does not revive the keys that an earlier one ended")
    func severalCompromises() async throws {
        func compromise(_ before: UnixTime, _ by: UnixTime) -> JSONValue {
            ["keys_before": .string(before.iso8601), "rotate_by": .string(by.iso8601)]
        }
        let world = try await World()
        let old = try await world.device()
        world.clock.advance(10)
        let first = compromise(world.clock.now, world.clock.now + 10)
        try await world.change(["keys": ["compromise": first]])
        world.clock.advance(20)
        let newer = try await world.device()
        world.clock.advance(10)
        let second = compromise(world.clock.now, world.clock.now + 100)
        let error = await #expect(throws: ContractError.self) {
            try await world.change(["keys": ["compromise": second]])
        }
        #expect(error?.code == .conflict)
        try await world.change(["keys": ["compromise": [first, second]]])
        try await expect(.keyExpired) { try await world.rotated(old) }
        try await world.verify(try await world.rotated(newer))
        // Null removes all demands.
        try await world.change(["keys": ["compromise": .null]])
        try await world.verify(try await world.rotated(old))
    }

    @Test("a demand for compromise in force is not replaced by one that begins later")
    func laterBeginning() async throws {
        let world = try await World()
        _ = try await world.device()
        world.clock.advance(10)
        func change(from before: UnixTime, by: UnixTime) async throws {
            let demand: JSONValue = ["keys_before": .string(before.iso8601), "rotate_by": .string(by.iso8601)]
            try await world.change(["keys": ["compromise": demand]])
        }
        let now = world.clock.now
        try await change(from: now, by: now + 100)
        let error = await #expect(throws: ContractError.self) { try await change(from: now + 50, by: now + 100) }
        #expect(error?.code == .conflict)
        world.clock.advance(50)
        try await change(from: now + 50, by: now + 100)
    }

    // MARK: Ended devices

    @Test(
        "the evidence of a device that has ended is not replaced",
        arguments: [(DeviceStatus.revoked, ErrorCode.deviceRevoked), (.rejected, .invalidAttestation)])
    func endedEvidence(status: DeviceStatus, code: ErrorCode) throws {
        let device = try Self.device { $0.status = status }
        let evidence = VerifiedEvidence(assurance: Assurance(app: .development, key: .unattested))
        let conflict = #expect(throws: DeviceConflict.self) {
            try Self.apply(.proveAgain(evidence, of: device.key, wasSeen: false), to: device)
        }
        #expect(conflict?.code == code)
    }

    @Test(
        "a device that is rejected or has ended is not told to rotate and keeps its scheme",
        arguments: [DeviceStatus.rejected, .revoked, .deregistered])
    func ended(status: DeviceStatus) throws {
        let device = try Self.device { ($0.status, $0.highestScheme) = (status, .two) }
        for command in [
            DeviceCommand.demandRotation(Self.demand(.scheduled, in: 9)), .liftRotationDemand, .lowerScheme(to: .one),
        ] {
            let conflict = #expect(throws: DeviceConflict.self) { try Self.apply(command, to: device) }
            #expect(conflict?.code == .conflict)
        }
    }

    @Test("lowering never raises the scheme")
    func lowering() throws {
        let (one, two) = (try Self.device(), try Self.device { $0.highestScheme = .two })
        #expect(throws: DeviceConflict.self) { try Self.apply(.lowerScheme(to: .two), to: one) }
        #expect(try Self.apply(.lowerScheme(to: .two), to: two) == nil)
        #expect(try Self.apply(.lowerScheme(to: .one), to: one) == nil)
        #expect(try Self.apply(.lowerScheme(to: .one), to: two)?.after.highestScheme == .one)
    }

    // MARK: Own routes after a rotation elsewhere

    @Test("a key that was replaced on another node deletes nothing and gets no token")
    func replacedElsewhere() async throws {
        let world = try await World()
        let device = try await world.device()
        let node = try world.anotherNode()
        // This request brings the device into the node's cache.
        _ = try await node.authenticate(try world.signed(device, for: .status), for: .status)
        let after = try await world.rotated(device, reason: .compromise)
        let deletion = try await node.authenticate(try world.signed(device, for: .deregister), for: .deregister)
        try await expect(.invalidSignature) { try await node.deregister(deletion) }
        let question = try await node.authenticate(try world.signed(after, for: .token), for: .token)
        _ = try await node.issueToken(TokenRequest(audience: nil), question)
        #expect(try await world.row(device).status == .registered)
    }

    @Test("a token is judged on the row of now, not on the row that the signature was judged by")
    func tokenAfterRotation() async throws {
        let world = try await World()
        let (rotated, revoked) = (try await world.device(), try await world.device())
        let verified = [
            try await world.service.authenticate(try world.signed(rotated, for: .token), for: .token),
            try await world.service.authenticate(try world.signed(revoked, for: .token), for: .token),
        ]
        _ = try await world.rotated(rotated)
        try await world.revoke(revoked)
        for (request, code) in zip(verified, [ErrorCode.invalidSignature, .deviceRevoked]) {
            try await expect(code) { try await world.service.issueToken(TokenRequest(audience: nil), request) }
        }
    }

    // MARK: A model

    /// The state of a device as the protocol's table describes it, independent of the implementation.
    private struct Model {
        var status = DeviceStatus.registered
        var keys: [DevicePublicKey]
        var demand: RotationDemand?
        var overlap = false
        var scheme = SignatureScheme.one
    }

    @Test("random commands change the device as the model predicts", arguments: 0..<40)
    func walk(seed: UInt64) throws {
        var random = SeededNumbers(seed: seed)
        var model = Model(keys: [Self.key()])
        var device = try Self.device { $0.key = model.keys[0] }
        let app = try World.record([:])
        var now = Self.now
        for _ in 0..<200 {
            now = now + Int64.random(in: 0...40, using: &random)
            let version = device.version
            let (command, expected) = Self.step(&model, at: now, &random)
            let change: DeviceChange?
            do {
                change = try device.applying(command, under: app, at: now, by: "test")
            } catch {
                #expect(expected == .refused, "\(command): \(error)")
                continue
            }
            #expect((change == nil ? Expected.nothing : .changed) == expected, "\(command)")
            if let change { device = change.saved }
            #expect(device.version == version + (change == nil ? 0 : 1))
            #expect(device.status == model.status)
            #expect(device.key == model.keys.last)
            #expect(device.mustRotate == model.demand)
            #expect((device.previousKeyUntil != nil) == model.overlap)
        }
    }

    private enum Expected { case changed, nothing, refused }

    /// Applies a random command to the model. Returns the command and its result according to the model.
    private static func step(
        _ model: inout Model, at now: UnixTime, _ random: inout SeededNumbers
    ) -> (DeviceCommand, Expected) {
        let isAlive = model.status == .registered || model.status == .pending
        switch Int.random(in: 0..<100, using: &random) {
        case 0..<40:
            let signer = Bool.random(using: &random) ? model.keys[model.keys.count - 1] : model.keys[0]
            let reason: RotationReason = Bool.random(using: &random) ? .compromise : .scheduled
            let rotation = KeyRotation(newKey: key(), signedBy: signer, reason: reason)
            let isEnded = model.demand.map { $0.reason == .compromise && now > $0.by } ?? false
            guard model.status == .registered, !isEnded, signer == model.keys.last else {
                return (.rotate(rotation), .refused)
            }
            model.overlap = reason == .scheduled && model.demand?.reason != .compromise
            model.demand = nil
            model.keys.append(rotation.newKey)
            return (.rotate(rotation), .changed)
        case 40..<50:
            let key = Bool.random(using: &random) ? model.keys[model.keys.count - 1] : model.keys[0]
            let isHeard = key == model.keys.last && model.overlap
            if isHeard { model.overlap = false }
            return (.endOverlap(of: key), isHeard ? .changed : .nothing)
        case 50..<75:
            let reason: RotationReason = Bool.random(using: &random) ? .compromise : .scheduled
            let demand = RotationDemand(by: now + Int64.random(in: 0...60, using: &random), reason: reason)
            guard isAlive else { return (.demandRotation(demand), .refused) }
            let stored = model.demand
            if let stored {
                let isWeaker = stored.reason == .compromise && (reason == .scheduled || demand.by >= stored.by)
                if isWeaker || demand == stored { return (.demandRotation(demand), .nothing) }
            }
            model.demand = demand
            if let stored, stored.reason == .scheduled, reason == .compromise {
                if stored.by < now, demand.by > stored.by {
                    model.demand = stored
                    return (.demandRotation(demand), .refused)
                }
                model.demand = RotationDemand(by: min(stored.by, demand.by), reason: .compromise)
            }
            return (.demandRotation(demand), .changed)
        case 75..<90:
            guard isAlive else { return (.liftRotationDemand, .refused) }
            defer { model.demand = nil }
            return (.liftRotationDemand, model.demand == nil ? .nothing : .changed)
        case 90..<94:
            guard model.status == .pending else { return (.approve(allowsUnproven: false), .refused) }
            model.status = .registered
            return (.approve(allowsUnproven: false), .changed)
        case 94..<96:
            guard model.status == .pending else { return (.reject, .refused) }
            model.status = .rejected
            return (.reject, .changed)
        case 96..<98:
            guard model.status != .deregistered else { return (.revoke(reason: nil), .refused) }
            defer { model.status = .revoked }
            return (.revoke(reason: nil), model.status == .revoked ? .nothing : .changed)
        default:
            let signer = Bool.random(using: &random) ? model.keys[model.keys.count - 1] : model.keys[0]
            if model.status == .revoked { return (.deregister(signedBy: signer), .refused) }
            if model.status == .deregistered { return (.deregister(signedBy: signer), .nothing) }
            guard signer == model.keys.last else { return (.deregister(signedBy: signer), .refused) }
            model.status = .deregistered
            return (.deregister(signedBy: signer), .changed)
        }
    }
}
