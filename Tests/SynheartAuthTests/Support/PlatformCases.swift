import AuthContract
import Testing

@testable import SynheartAuth

/// Keys, records and attestation of a platform, and the possible faults. Each instance is a separate device.
protocol PlatformUnderTest: Sendable {
    init() throws
    var storage: any RecordStorage { get }
    var keyStore: any KeyStore { get }
    var attestation: any AttestationProvider { get }

    /// The number of existing keys.
    var keyCount: Int { get throws }
    var recordCount: Int { get throws }
    /// Makes the system lose every key.
    func loseKeys() throws
    /// Makes every signature fail with this code; nil makes signatures succeed again.
    func failSignatures(_ code: KeyStoreError.Code?) throws
    /// Makes the next attestations fail with these codes.
    func failAttestations(_ codes: [AttestationError.Code]) throws
    /// The nonces of the requested attestations.
    var nonces: [[UInt8]] { get }
    /// Makes records unreadable, as on a device that was not unlocked since its start.
    func lockRecords(_ isLocked: Bool) throws
    /// Makes writes fail, as on a full disk.
    func refuseWrites(_ isRefusing: Bool) throws
}

/// The cases that every platform must pass.
struct PlatformCase: Sendable, CustomTestStringConvertible {
    let testDescription: String
    private let body: @Sendable (any PlatformUnderTest.Type) async throws -> Void

    init(_ name: String, _ body: @escaping @Sendable (any PlatformUnderTest.Type) async throws -> Void) {
        testDescription = name
        self.body = body
    }

    init(_ name: String, _ body: @escaping @Sendable (PlatformPhone) async throws -> Void) {
        self.init(name) { platform in try await body(PlatformPhone(platform.init())) }
    }

    func run(on platform: any PlatformUnderTest.Type) async throws { try await body(platform) }

    static let all: [PlatformCase] = registration + failures + lost + rotationAndReset + deaths
}

/// A phone that uses the platform under test.
struct PlatformPhone: Sendable {
    let phone = Phone()
    let platform: any PlatformUnderTest

    init(_ platform: any PlatformUnderTest) { self.platform = platform }

    /// Starts a process that can die.
    func launch() throws -> SynheartAuth {
        try phone.launch { configuration in
            configuration.storage = FaultyStorage(base: platform.storage, faults: phone.faults)
            configuration.keyStore = FaultyKeyStore(base: platform.keyStore, faults: phone.faults)
            configuration.attestation = FaultyAttestation(base: platform.attestation, faults: phone.faults)
        }
    }

    func register() async throws -> Registration { try await launch().registerDevice(appID: Phone.app) }
    func rotate() async throws { try await launch().rotateKey(appID: Phone.app) }
    func state() async throws -> IdentityState { try await launch().state(appID: Phone.app) }
    func deviceIDs() async -> [String] { await phone.service.devices.map(\.id.text) }

    func expectVerifies(_ comment: Comment? = nil, sourceLocation: SourceLocation = #_sourceLocation) async throws {
        #expect(try await phone.signAndVerify(launch()).status == 200, comment, sourceLocation: sourceLocation)
    }
}

extension PlatformCase {
    fileprivate static let registration: [PlatformCase] = [
        PlatformCase("the eight steps: the service verifies the proof, issues the id, and verifies a signature") {
            (handset: PlatformPhone) async throws in
            let registration = try await handset.register()
            #expect(registration.status == .registered)
            #expect(await handset.deviceIDs() == [registration.deviceId])
            #expect(try handset.platform.keyCount == 1 && handset.platform.recordCount == 1)
            try await handset.expectVerifies()
        },
        PlatformCase("idempotent: alreadyRegistered without network, also after a launch") {
            (handset: PlatformPhone) async throws in
            let sdk = try handset.launch()
            let id = try await sdk.registerDevice(appID: Phone.app).deviceId
            let messages = await handset.phone.network.messages
            let again = Registration(status: .alreadyRegistered, deviceId: id)
            #expect(try await sdk.registerDevice(appID: Phone.app) == again)
            #expect(try await handset.register() == again)
            #expect(await handset.phone.network.messages == messages)
        },
        PlatformCase("the proof is for the binding nonce of challenge and key") {
            (handset: PlatformPhone) async throws in
            _ = try await handset.register()
            let body = try #require(
                await handset.phone.service.requests.compactMap { try? RegisterRequest(parsing: $0.body) }
                    .first { $0.proof != nil })
            let nonce = BindingNonce(challenge: body.challenge, publicKeyText: body.publicKeyText)
            #expect(handset.platform.nonces == [nonce.bytes])
        },
        PlatformCase("100 concurrent calls are one registration") { (handset: PlatformPhone) async throws in
            let sdk = try handset.launch()
            let ids = try await withThrowingTaskGroup(of: String.self) { group in
                for _ in 0..<100 { group.addTask { try await sdk.registerDevice(appID: Phone.app).deviceId } }
                return try await group.reduce(into: Set<String>()) { $0.insert($1) }
            }
            #expect(await handset.deviceIDs() == Array(ids))
        },
        PlatformCase("two processes take turns: the second sees the first one's result") {
            (handset: PlatformPhone) async throws in
            async let first = handset.register()
            async let second = handset.register()
            let ids = try await [first.deviceId, second.deviceId]
            #expect(ids[0] == ids[1])
            #expect(await handset.phone.service.count(.register) == 1)
        },
        PlatformCase("pending, then approved: the same id, and only then signatures") {
            (handset: PlatformPhone) async throws in
            await handset.phone.service.set { $0.decision = .pending }
            let id = try await handset.register().deviceId
            await expectError(.notRegistered) {
                try await handset.launch().signRequest(appID: Phone.app, method: "GET", path: "/")
            }
            await handset.phone.service.edit(id) { $0.status = .registered }
            #expect(try await handset.register() == Registration(status: .registered, deviceId: id))
            try await handset.expectVerifies()
        },
    ]

    fileprivate static let failures: [PlatformCase] = [
        PlatformCase("attestation unsupported: ATTESTATION_UNAVAILABLE, once") {
            (handset: PlatformPhone) async throws in
            try handset.platform.failAttestations([.unsupported])
            await expectError(.attestationUnavailable) { try await handset.register() }
            #expect(try await handset.state() == .unregistered)
            #expect(handset.platform.nonces.count == 1)
        },
        PlatformCase("the provider rejects: once more with a fresh challenge") {
            (handset: PlatformPhone) async throws in
            try handset.platform.failAttestations([.refused])
            #expect(try await handset.register().status == .registered)
            #expect(await handset.phone.service.count(.challenge) == 2)
        },
        PlatformCase("the provider rejects twice: ATTESTATION_FAILED") { (handset: PlatformPhone) async throws in
            try handset.platform.failAttestations([.refused, .refused, .refused])
            await expectError(.attestationFailed) { try await handset.register() }
            #expect(handset.platform.nonces.count == 2)
        },
        PlatformCase("the provider is busy: asked again with the same nonce while the challenge lives") {
            (handset: PlatformPhone) async throws in
            try handset.platform.failAttestations([.unavailable, .unavailable])
            #expect(try await handset.register().status == .registered)
            #expect(handset.platform.nonces.count == 3 && Set(handset.platform.nonces).count == 1)
        },
        PlatformCase("INVALID_CHALLENGE: a new challenge, restart") { (handset: PlatformPhone) async throws in
            await handset.phone.service.refuse(.register, .invalidChallenge)
            #expect(try await handset.register().status == .registered)
            #expect(await handset.phone.service.count(.challenge) == 2)
        },
        PlatformCase("INVALID_ATTESTATION: ATTESTATION_FAILED, not retried") { (handset: PlatformPhone) async throws in
            await handset.phone.service.refuse(.register, .invalidAttestation)
            await expectError(.attestationFailed) { try await handset.register() }
            #expect(await handset.phone.service.count(.register) == 1)
            #expect(try await handset.register().status == .registered)
        },
        PlatformCase("register 5xx: backoff, always with a fresh challenge, the same key, one device") {
            (handset: PlatformPhone) async throws in
            await handset.phone.service.refuse(.register, .internalError, times: 3)
            #expect(try await handset.register().status == .registered)
            let bodies = await handset.phone.service.requests.compactMap { try? RegisterRequest(parsing: $0.body) }
                .filter { $0.proof != nil }
            #expect(Set(bodies.map(\.challenge)).count == 4 && Set(bodies.map(\.publicKeyText)).count == 1)
            #expect(await handset.deviceIDs().count == 1)
        },
        PlatformCase("any network fault at any message of a registration: one device in the end") {
            (platform: any PlatformUnderTest.Type) async throws in
            for fault in TestNetwork.Fault.allCases {
                for index in 0..<4 {
                    let handset = PlatformPhone(try platform.init())
                    await handset.phone.network.plan(fault, at: index)
                    _ = try? await handset.register()
                    _ = try? await handset.phone.network.deliverDelayed()
                    let id = try await handset.register().deviceId
                    #expect(await handset.deviceIDs() == [id], "\(fault) at \(index)")
                    try await handset.expectVerifies("\(fault) at \(index)")
                }
            }
        },
    ]

    fileprivate static let lost: [PlatformCase] = [
        PlatformCase("a key that is gone: KEY_INVALIDATED, keyInvalid, and the next registration makes a new device") {
            (handset: PlatformPhone) async throws in
            let id = try await handset.register().deviceId
            try handset.platform.loseKeys()
            let sdk = try handset.launch()
            await expectSuspicion(on: handset.phone.clock) {
                try await sdk.signRequest(appID: Phone.app, method: "GET", path: "/")
            }
            #expect(try await sdk.isRegistered(appID: Phone.app) == false)
            await expectError(.keyInvalidated) {
                try await sdk.signRequest(appID: Phone.app, method: "GET", path: "/")
            }
            #expect(try await handset.state() == .keyInvalid)
            #expect(try await handset.register().deviceId != id)
            try await handset.expectVerifies()
        },
        PlatformCase("a key that is gone: two answers of two launches are enough") {
            (handset: PlatformPhone) async throws in
            let id = try await handset.register().deviceId
            try handset.platform.loseKeys()
            let first = try handset.launch()
            #expect(try await first.isRegistered(appID: Phone.app), "a suspicion changes nothing")
            let second = try handset.launch()
            await expectSuspicion(on: handset.phone.clock) { try await second.registerDevice(appID: Phone.app) }
            #expect(try await second.registerDevice(appID: Phone.app).deviceId != id)
            try await handset.expectVerifies()
        },
        PlatformCase("a key that is not found once, or always but for less than two seconds, is not lost") {
            (handset: PlatformPhone) async throws in
            let id = try await handset.register().deviceId
            try handset.platform.failSignatures(.notFound)
            let sdk = try handset.launch()
            for _ in 0..<5 {
                let error = await expectError(
                    handset.platform.keyStore.protection == .secureEnclave ? .secureEnclaveError : .keystoreError
                ) { try await sdk.signRequest(appID: Phone.app, method: "GET", path: "/") }
                #expect(error?.isRetryable == true)
                handset.phone.clock.advance(.milliseconds(399))
            }
            try handset.platform.failSignatures(nil)
            #expect(try await handset.phone.signAndVerify(sdk).status == 200)
            #expect(try await handset.register().deviceId == id)
        },
        PlatformCase("a key that the system refuses for good: the same") { (handset: PlatformPhone) async throws in
            _ = try await handset.register()
            try handset.platform.failSignatures(.invalidated)
            await expectError(.keyInvalidated) {
                try await handset.launch().signRequest(appID: Phone.app, method: "GET", path: "/")
            }
            #expect(try await handset.state() == .keyInvalid)
            try handset.platform.failSignatures(nil)
            // The SDK never uses the invalidated key again, although the platform can now sign with it.
            await expectError(.keyInvalidated) {
                try await handset.launch().signRequest(appID: Phone.app, method: "GET", path: "/")
            }
            #expect(try await handset.register().status == .registered)
        },
        PlatformCase("a locked or busy key store is a retryable error, and the state stays") {
            (handset: PlatformPhone) async throws in
            _ = try await handset.register()
            try handset.platform.failSignatures(.unavailable)
            let code: SynheartAuthError.Code =
                handset.platform.keyStore.protection == .secureEnclave ? .secureEnclaveError : .keystoreError
            let error = await expectError(code) {
                try await handset.launch().signRequest(appID: Phone.app, method: "GET", path: "/")
            }
            #expect(error?.isRetryable == true && error?.className == .storageError)
            #expect(try await handset.state() == .registered)
            try handset.platform.failSignatures(nil)
            try await handset.expectVerifies()
        },
        PlatformCase("any other failure of a signature: SIGNING_FAILED, and the state stays") {
            (handset: PlatformPhone) async throws in
            _ = try await handset.register()
            try handset.platform.failSignatures(.failed)
            let error = await expectError(.signingFailed) {
                try await handset.launch().signRequest(appID: Phone.app, method: "GET", path: "/")
            }
            #expect(error?.isRetryable == true && error?.retryAfter == .seconds(2))
            #expect(try await handset.state() == .registered)
            try handset.platform.failSignatures(nil)
            try await handset.expectVerifies()
        },
        PlatformCase("records that cannot be read now: STORAGE_ERROR, and never a new identity") {
            (handset: PlatformPhone) async throws in
            let id = try await handset.register().deviceId
            try handset.platform.lockRecords(true)
            let error = await expectError(.storageError) { try await handset.register() }
            #expect(error?.isRetryable == true)
            try handset.platform.lockRecords(false)
            #expect(try await handset.register().deviceId == id)
            #expect(await handset.deviceIDs() == [id])
        },
        PlatformCase("nothing can be written: STORAGE_ERROR, what was there stays and still signs") {
            (handset: PlatformPhone) async throws in
            let id = try await handset.register().deviceId
            try handset.platform.refuseWrites(true)
            await expectError(.storageError) { try await handset.rotate() }
            try await handset.expectVerifies()
            try handset.platform.refuseWrites(false)
            try await handset.rotate()
            #expect(try await handset.register().deviceId == id)
        },
    ]

    fileprivate static let rotationAndReset: [PlatformCase] = [
        PlatformCase("rotations follow one another: the same id, one key, signatures verify") {
            (handset: PlatformPhone) async throws in
            let id = try await handset.register().deviceId
            for _ in 0..<3 {
                try await handset.rotate()
                handset.phone.clock.advance(.seconds(90))
                try await handset.expectVerifies()
                #expect(try handset.platform.keyCount == 1)
            }
            #expect(await handset.deviceIDs() == [id])
        },
        PlatformCase("any network fault at any message of a rotation: the device signs in the end, with one key") {
            (platform: any PlatformUnderTest.Type) async throws in
            for fault in TestNetwork.Fault.allCases {
                for index in 0..<3 {
                    let handset = PlatformPhone(try platform.init())
                    _ = try await handset.register()
                    await handset.phone.network.plan(fault, at: index)
                    _ = try? await handset.rotate()
                    _ = try? await handset.phone.network.deliverDelayed()
                    try await handset.rotate()
                    handset.phone.clock.advance(.seconds(120))
                    try await handset.expectVerifies("\(fault) at \(index)")
                    #expect(try handset.platform.keyCount == 1, "\(fault) at \(index)")
                }
            }
        },
        PlatformCase("reset: the service is told, and nothing is left") { (handset: PlatformPhone) async throws in
            _ = try await handset.register()
            try await handset.launch().resetDeviceIdentity(appID: Phone.app, reason: .userRequested)
            #expect(try handset.platform.keyCount == 0 && handset.platform.recordCount == 0)
            #expect(await handset.phone.service.devices.map(\.status) == [.deregistered])
            #expect(try await handset.register().status == .registered)
        },
    ]

    fileprivate static let deaths: [PlatformCase] = [
        PlatformCase("the process dies at any call of a registration: one device that signs") {
            (platform: any PlatformUnderTest.Type) async throws in
            try await dying(platform, before: { _ in }, { try await $0.registerDevice(appID: Phone.app) }) {
                handset, comment in
                let id = try await handset.register().deviceId
                #expect(await handset.deviceIDs() == [id], comment)
            }
        },
        PlatformCase("the process dies at any call of a rotation: the device signs, with one key") {
            (platform: any PlatformUnderTest.Type) async throws in
            try await dying(
                platform, before: { try await $0.registerDevice(appID: Phone.app) },
                { try await $0.rotateKey(appID: Phone.app) }
            ) { handset, comment in
                try await handset.rotate()
                handset.phone.clock.advance(.seconds(120))
                #expect(try handset.platform.keyCount == 1, comment)
            }
        },
        PlatformCase("the process dies at any call of a reset: what was begun is finished") {
            (platform: any PlatformUnderTest.Type) async throws in
            try await dying(
                platform, before: { try await $0.registerDevice(appID: Phone.app) },
                { try await $0.resetDeviceIdentity(appID: Phone.app, reason: .userRequested) }
            ) { handset, comment in
                let id = try await handset.register().deviceId
                let live = await handset.phone.service.devices.filter { $0.status == .registered }
                #expect(live.map(\.id.text) == [id], comment)
            }
        },
    ]

    /// Runs `operation` once for each point at which the process can die (`Faults`), and lets it die there. Then runs `recover`, and
    /// expects a signature that verifies.
    private static func dying(
        _ platform: any PlatformUnderTest.Type, before: (SynheartAuth) async throws -> Void,
        _ operation: (SynheartAuth) async throws -> Void, recover: (PlatformPhone, Comment) async throws -> Void
    ) async throws {
        for point in 0..<200 {
            let handset = PlatformPhone(try platform.init())
            try await before(handset.launch())
            handset.phone.faults.die(at: point)
            _ = try? await operation(handset.launch())
            let isOver = !handset.phone.faults.isDead
            handset.phone.faults.revive()
            let comment: Comment = "died at \(point)"
            try await recover(handset, comment)
            try await handset.expectVerifies(comment)
            if isOver {
                #expect(point > 10)
                return
            }
        }
        Issue.record("never came to the end")
    }
}
