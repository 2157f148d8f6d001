import AuthContract
import Crypto
import PlayIntegrity
import StoreConformance
import StrictJSON
import Testing

@testable import AuthService

@Suite("Outage of a provider")
struct ProviderOutageTests {
    /// The number of rounds, one every 30 s, in the last hour of the 24 hours for which the service keeps a proof.
    private static let lastRounds = 120
    private static let waiting: [String: JSONValue] = ["registration": ["provider_outage": "pending"]]

    private func enrolment(
        _ world: World, _ key: P256.Signing.PrivateKey, package: String = World.appID, proving: Bool = true
    ) async throws
        -> RegisterRequest
    {
        let now = world.clock.now
        return try await world.enrolment(
            key, platform: .android, proof: { TestGoogle.token($0, at: now, package: package) }, proving: proving)
    }

    /// Makes Google stop answering, and registers a device.
    private func waitingDevice(_ world: World, package: String = World.appID) async throws -> TestDevice {
        world.google.goAway()
        let key = P256.Signing.PrivateKey()
        let answer = try await world.register(try await enrolment(world, key, package: package), [])
        #expect(answer.status == .pending)
        return TestDevice(appID: try AppID(World.appID), id: answer.deviceID, key: key)
    }

    @Test("a device is registered with the labels that Google returned")
    func vouched() async throws {
        let world = try await World()
        let answer = try await world.register(try await enrolment(world, P256.Signing.PrivateKey()), [])
        let row = try #require(try await world.stores.device(answer.deviceID, of: AppID(World.appID)))
        #expect(answer.status == .registered)
        #expect(
            row.assurance
                == Assurance(app: .playIntegrity, key: .appVouched, labels: ["MEETS_DEVICE_INTEGRITY"]))
    }

    @Test("by default an outage is PROVIDER_UNAVAILABLE with Retry-After, uses up the challenge and stores nothing")
    func refused() async throws {
        let world = try await World()
        world.google.goAway()
        let enrolment = try await enrolment(world, P256.Signing.PrivateKey())
        let refusal = try await expect(.providerUnavailable) { try await world.register(enrolment, []) }
        #expect(refusal?.retryAfter != nil)
        world.google.comeBack()
        try await expect(.invalidChallenge) { try await world.register(enrolment, []) }
        #expect(try await world.stores.count(of: AppID(World.appID)) == [:])
    }

    @Test("a wrong key proof or challenge costs no quota, because Google is asked last")
    func askedLast() async throws {
        let world = try await World()
        let enrolment = try await enrolment(world, P256.Signing.PrivateKey())
        try await expect(.invalidAttestation) { try await world.register(enrolment.replacing(keyProof: [1]), []) }
        try await expect(.invalidChallenge) { try await world.register(enrolment, []) }
        #expect(world.google.questions == 0)
    }

    @Test("if the policy says pending, the proof is sealed and the device is pending")
    func pending() async throws {
        let world = try await World(Self.waiting)
        let device = try await waitingDevice(world)
        #expect(try await world.status(device).assurance == Assurance(app: .none, key: .unattested))
        try await expect(.devicePending) { try await world.verify(device) }
        let proof = try #require(try await world.stores.pendingProofs(after: nil, limit: 10).first)
        #expect(proof.deviceID == device.id && proof.arrivedAt == world.clock.now)
        #expect(!String(decoding: proof.sealedRequest, as: UTF8.self).contains(device.publicKey.base64))
    }

    @Test("after the outage the proof is judged as of its arrival, and erased")
    func settled() async throws {
        let world = try await World(Self.waiting)
        let device = try await waitingDevice(world)
        await world.service.settlePendingProofs()
        #expect(try await world.row(device).status == .pending)
        // The token is now much older than a token may be when it arrives.
        world.clock.advance(20 * 3600)
        world.google.comeBack()
        await world.service.settlePendingProofs()
        #expect(try await world.row(device).assurance.app == .playIntegrity)
        try await world.verify(device)
        #expect(try await world.stores.pendingProofs(after: nil, limit: 10).isEmpty)
        #expect(try await world.audited(.deviceApproved).map(\.actor) == ["service"])
    }

    @Test("a proof that does not verify rejects the device")
    func rejected() async throws {
        let world = try await World(Self.waiting)
        let device = try await waitingDevice(world, package: "com.example.evil")
        world.google.comeBack()
        await world.service.settlePendingProofs()
        #expect(try await world.row(device).status == .rejected)
        #expect(try await world.stores.pendingProofs(after: nil, limit: 10).isEmpty)
    }

    @Test(
        "a proof that is not settled within a day is rejected and erased",
        arguments: [(86_400, false), (86_401, true)] as [(Int64, Bool)])
    func tooLong(seconds: Int64, isRejected: Bool) async throws {
        let world = try await World(Self.waiting)
        let device = try await waitingDevice(world)
        world.clock.advance(seconds - 30 * Int64(Self.lastRounds))
        for _ in 0..<Self.lastRounds {
            await world.service.settlePendingProofs()
            #expect(try await world.row(device).status == .pending)
            world.clock.advance(30)
        }
        await world.service.settlePendingProofs()
        #expect(try await world.row(device).status == (isRejected ? .rejected : .pending))
        #expect(try await world.stores.pendingProofs(after: nil, limit: 10).isEmpty == isRejected)
    }

    @Test("a clock that is a day ahead for a while rejects no device, nor does a service that was down for days")
    func clockAhead() async throws {
        let world = try await World(Self.waiting)
        let device = try await waitingDevice(world)
        world.clock.advance(3 * 86_400)
        for _ in 0..<Self.lastRounds { await world.service.settlePendingProofs() }
        #expect(try await world.row(device).status == .pending)
        world.clock.advance(-3 * 86_400)
        await world.service.settlePendingProofs()
        // The clock was right in the last round, so the proof was not in its last hour. The service set its count of rounds
        // in the last hour back to 0.
        world.clock.advance(3 * 86_400)
        for _ in 0..<Self.lastRounds { await world.service.settlePendingProofs() }
        #expect(try await world.row(device).status == .pending)
        // The clock is set back, so the next retry is three days ahead. The service ignores a retry time that is so far ahead.
        world.clock.advance(-3 * 86_400 + 120)
        world.google.comeBack()
        await world.service.settlePendingProofs()
        #expect(try await world.row(device).status == .registered)
    }

    @Test("with manual approval a device whose proof verified waits for an operator")
    func manual() async throws {
        let world = try await World(["registration": ["provider_outage": "pending", "approval": "manual"]])
        let device = try await waitingDevice(world)
        world.google.comeBack()
        await world.service.settlePendingProofs()
        let row = try await world.row(device)
        #expect(row.status == .pending && row.assurance.app == .playIntegrity)
        #expect(try await world.stores.pendingProofs(after: nil, limit: 10).isEmpty)
        try await world.approve(device)
        try await world.verify(device)
    }

    /// Begins to settle the held proofs, after the outage. Returns as soon as Google is asked. It answers after `comeBack`.
    private func settling(_ world: World) async -> Task<Void, Never> {
        world.google.comeBack()
        world.google.neverReturn()
        let asked = AsyncStream<Void>.makeStream()
        world.google.whenAsked { asked.continuation.yield() }
        let settled = Task { await world.service.settlePendingProofs() }
        for await _ in asked.stream { break }
        return settled
    }

    @Test("while one node asks Google about a proof, no other node does")
    func oneNodeAsks() async throws {
        let world = try await World(Self.waiting)
        let device = try await waitingDevice(world)
        let other = try world.anotherNode()
        let before = world.google.questions
        let settled = await settling(world)
        await other.settlePendingProofs()
        world.google.comeBack()
        await settled.value
        #expect(world.google.questions - before == 1)
        try await world.verify(device)
    }

    @Test("a device whose held proof gets an empty verdict stays pending: Google may have decoded the token before")
    func clearedVerdict() async throws {
        let world = try await World(Self.waiting)
        let devices = [try await waitingDevice(world), try await waitingDevice(world)]
        let before = world.google.questions
        world.google.comeBack()
        let cleared: JSONValue = ["appIntegrity": ["appRecognitionVerdict": "UNEVALUATED"], "deviceIntegrity": [:]]
        let payload = try #require(cleared.object)
        world.google.answer(.decoded(IntegrityVerdict(payload: payload, decodedBy: .google)), for: World.appID)
        await world.service.settlePendingProofs()
        #expect(world.google.questions - before == 2, "an empty verdict on one proof must not delay the others")
        for device in devices { #expect(try await world.row(device).status == .pending) }
        world.google.answer(nil, for: World.appID)
        world.clock.advance(1000)
        await world.service.settlePendingProofs()
        for device in devices { try await world.verify(device) }
    }

    @Test("the policy after the provider's answer decides about the device, not the policy before it")
    func policyChangedMeanwhile() async throws {
        let world = try await World(Self.waiting)
        let device = try await waitingDevice(world)
        let settled = await settling(world)
        try await world.change(["registration": ["provider_outage": "pending", "approval": "manual"]])
        world.google.comeBack()
        await settled.value
        let row = try await world.row(device)
        #expect(row.status == .pending && row.assurance.app == .playIntegrity)
    }

    @Test("a held proof that verifies under observation admits its device, and marks it")
    func settledUnderObservation() async throws {
        let manual: JSONValue = ["provider_outage": "pending", "approval": "manual"]
        let world = try await World(["registration": manual, "mode": "observe"])
        let device = try await waitingDevice(world)
        world.google.comeBack()
        await world.service.settlePendingProofs()
        let row = try await world.row(device)
        #expect(row.status == .registered && row.admittedUnderObservation)
        try await world.verify(device)
        try await world.change(["registration": manual])
        try await expect(.devicePending) { try await world.verify(device) }
    }

    @Test("a decision of an operator wins, and the proof is erased")
    func decidedMeanwhile() async throws {
        let world = try await World(Self.waiting)
        let (revoked, rejected) = (try await waitingDevice(world), try await waitingDevice(world))
        try await world.revoke(revoked)
        try await world.reject(rejected)
        world.google.comeBack()
        await world.service.settlePendingProofs()
        #expect(try await world.row(revoked).status == .revoked)
        #expect(try await world.row(rejected).status == .rejected)
        #expect(try await world.stores.pendingProofs(after: nil, limit: 10).isEmpty)
    }

    @Test("during an outage the holder of a pending key learns its status, and a stranger learns nothing")
    func againWhileAway() async throws {
        let world = try await World(Self.waiting)
        let device = try await waitingDevice(world)
        let again = try await world.register(try await enrolment(world, device.key), [])
        #expect(again == RegisterResponse(deviceID: device.id, status: .pending))
        #expect(try await world.stores.pendingProofs(after: nil, limit: 10).count == 1)
        let nonceOnly = try await enrolment(world, device.key)
        let bare = RegisterRequest(
            appID: nonceOnly.appID, publicKeyText: nonceOnly.publicKeyText, challenge: nonceOnly.challenge,
            platform: .android, proof: nonceOnly.proof)
        try await expect(.providerUnavailable) { try await world.register(bare, []) }
    }

    @Test("after the outage the same key registers, and the old proof is erased")
    func againWhenBack() async throws {
        let world = try await World(Self.waiting)
        let device = try await waitingDevice(world, package: "com.example.evil")
        world.google.comeBack()
        let answer = try await world.register(try await enrolment(world, device.key), [])
        #expect(answer == RegisterResponse(deviceID: device.id, status: .registered))
        #expect(try await world.row(device).assurance.app == .playIntegrity)
        #expect(try await world.stores.pendingProofs(after: nil, limit: 10).isEmpty)
        await world.service.settlePendingProofs()
        try await world.verify(device)
    }

    @Test("an old proof that would be refused does not reject a device whose later proof verified")
    func oldProofOfProvenDevice() async throws {
        let world = try await World(Self.waiting)
        let device = try await waitingDevice(world, package: "com.example.evil")
        world.google.comeBack()
        await world.stores.fail(.eraseProof)
        let again = try await enrolment(world, device.key)
        try await expect(.serviceUnavailable) { try await world.register(again, []) }
        await world.stores.recover()
        #expect(try await world.row(device).assurance.app == .playIntegrity)
        #expect(try await world.stores.pendingProofs(after: nil, limit: 10).count == 1)
        await world.service.settlePendingProofs()
        #expect(try await world.row(device).status == .registered)
        #expect(try await world.stores.pendingProofs(after: nil, limit: 10).isEmpty)
        try await world.verify(device)
    }

    @Test("a proof that this node cannot open waits: another node may have sealed it with a newer key")
    func sealedByAnotherKey() async throws {
        let world = try await World(Self.waiting)
        let device = try await waitingDevice(world)
        let proof = try #require(try await world.stores.pendingProofs(after: nil, limit: 1).first)
        let sealed = try #require(ServiceKey([UInt8](repeating: 9, count: 32))).seal([1, 2, 3], context: "another")
        try await world.stores.erasePendingProof(of: device.id)
        try await world.stores.keep(
            PendingProof(
                appID: proof.appID, deviceID: device.id, arrivedAt: proof.arrivedAt, sealedRequest: sealed))
        world.google.comeBack()
        await world.service.settlePendingProofs()
        #expect(try await world.row(device).status == .pending)
        #expect(try await world.stores.pendingProofs(after: nil, limit: 10).count == 1)
    }

    @Test("only the holder of the key can prove a device that waits for its provider")
    func provenByAnother() async throws {
        let world = try await World(Self.waiting)
        let device = try await waitingDevice(world)
        world.google.comeBack()
        let foreign = try await enrolment(world, device.key, proving: false)
        #expect(try await world.register(foreign, []) == RegisterResponse(deviceID: device.id, status: .pending))
        #expect(try await world.row(device).assurance.isUnproven)
        #expect(try await world.stores.pendingProofs(after: nil, limit: 10).count == 1)
    }

    @Test("pending rows are bounded during an outage, and a refused one leaves no proof")
    func bounded() async throws {
        let world = try await World(["registration": ["provider_outage": "pending", "maximum_unproven": 1]])
        _ = try await waitingDevice(world)
        let second = try await enrolment(world, P256.Signing.PrivateKey())
        try await expect(.rateLimited) { try await world.register(second, []) }
        #expect(try await world.stores.pendingProofs(after: nil, limit: 10).count == 1)
    }

    @Test("the proof of a failed registration is erased", arguments: [MemoryStores.Call.insertDevice])
    func leftOver(call: MemoryStores.Call) async throws {
        let world = try await World(Self.waiting)
        world.google.goAway()
        let enrolment = try await enrolment(world, P256.Signing.PrivateKey())
        await world.stores.fail(call)
        try await expect(.serviceUnavailable) { try await world.register(enrolment, []) }
        await world.stores.recover()
        world.clock.advance(61)
        await world.service.settlePendingProofs()
        #expect(try await world.stores.pendingProofs(after: nil, limit: 10).isEmpty)
    }

    @Test(
        "settling continues after a failure of the store",
        arguments: [MemoryStores.Call.save, .eraseProof])
    func interrupted(call: MemoryStores.Call) async throws {
        let world = try await World(Self.waiting)
        let device = try await waitingDevice(world)
        world.google.comeBack()
        await world.stores.fail(call)
        await world.service.settlePendingProofs()
        await world.stores.recover()
        // The nodes ask about a proof at most once in one or two minutes.
        world.clock.advance(120)
        await world.service.settlePendingProofs()
        #expect(try await world.row(device).status == .registered)
        #expect(try await world.stores.pendingProofs(after: nil, limit: 10).isEmpty)
    }

    @Test("a device that proves itself while its stored proof is settled is not rejected")
    func overtaken() async throws {
        let world = try await World(Self.waiting)
        let device = try await waitingDevice(world)
        world.google.comeBack()
        await world.overtakeEvidence(of: try await world.row(device), by: Assurance(app: .none, key: .strongbox))
        await world.service.settlePendingProofs()
        #expect(try await world.row(device).status == .registered)
        #expect(try await world.row(device).assurance.key == .strongbox)
        #expect(try await world.row(device).assurance.app == .playIntegrity)
    }

    @Test("during an outage one proof of an app is tried in each round")
    func askedOnce() async throws {
        let world = try await World(Self.waiting)
        for _ in 0..<5 { _ = try await waitingDevice(world) }
        let before = world.google.questions
        await world.service.settlePendingProofs()
        #expect(world.google.questions == before + 1)
    }

    @Test("a proof that Google cannot judge is retried at growing intervals, and the others are settled")
    func postponed() async throws {
        let world = try await World(Self.waiting)
        world.google.goAway()
        var devices: [TestDevice] = []
        for _ in 0..<4 {
            let key = P256.Signing.PrivateKey()
            let enrolment = try await enrolment(world, key)
            let answer = try await world.register(enrolment, [])
            devices.append(TestDevice(appID: try AppID(World.appID), id: answer.deviceID, key: key))
            if devices.count == 1 { world.google.neverAnswer(try #require(enrolment.proof)) }
        }
        world.google.comeBack()
        let before = world.google.questions
        // Two hours with an attempt every 30 s.
        for _ in 0..<240 {
            await world.service.settlePendingProofs()
            world.clock.advance(30)
        }
        for device in devices.dropFirst() { #expect(try await world.row(device).status == .registered) }
        let first = try #require(devices.first)
        #expect(try await world.row(first).status == .pending)
        // The retries come after 1, 2, 4 and 8 minutes, then every 15 minutes.
        #expect((8...14).contains(world.google.questions - before - 3))
    }

    @Test("Google is asked about each package of an app until one has a verdict")
    func severalPackages() async throws {
        let packages: JSONValue = ["com.example.other", .string(World.appID), "com.example.third"]
        let world = try await World(["android": World.android(["packages": packages])])
        let answer = try await world.register(try await enrolment(world, P256.Signing.PrivateKey()), [])
        #expect(answer.status == .registered)
        #expect(world.google.questions == 2)
        let foreign = try await enrolment(world, P256.Signing.PrivateKey(), package: "com.example.evil")
        try await expect(.invalidAttestation) { try await world.register(foreign, []) }
        #expect(world.google.questions == 5)
    }
}
