import AuthContract
import Bytes
import Foundation
import Testing

@testable import SynheartAuth

/// A key store whose calls wait at gates, except `sign`.
struct GatedKeyStore: KeyStore {
    let base: any KeyStore
    let creating = Gate()
    let loading = Gate()
    let deleting = Gate()
    var protection: KeyProtection { base.protection }

    func create(_ alias: KeyAlias, challenge: [UInt8]?) throws(KeyStoreError) -> DevicePublicKey {
        creating.pass()
        return try base.create(alias, challenge: challenge)
    }

    func load(_ alias: KeyAlias) throws(KeyStoreError) -> DevicePublicKey? {
        loading.pass()
        return try base.load(alias)
    }

    func sign(_ message: [UInt8], with alias: KeyAlias) throws(KeyStoreError) -> RequestSignature {
        try base.sign(message, with: alias)
    }

    func delete(_ alias: KeyAlias) throws(KeyStoreError) {
        deleting.pass()
        try base.delete(alias)
    }
}

/// A storage whose reads and writes wait at gates.
struct GatedStorage: RecordStorage {
    let base: any RecordStorage
    let reading = Gate()
    let writing = Gate()

    func read(_ name: RecordName) -> StorageReading {
        reading.pass()
        return base.read(name)
    }

    func write(_ bytes: [UInt8], to name: RecordName) throws(StorageError) {
        writing.pass()
        try base.write(bytes, to: name)
    }

    func remove(_ name: RecordName) throws(StorageError) { try base.remove(name) }
    func setAside(_ bytes: [UInt8], of name: RecordName) throws(StorageError) { try base.setAside(bytes, of: name) }
    func lock(_ name: RecordName, for scope: String) throws(StorageError) -> (any StorageLock)? {
        try base.lock(name, for: scope)
    }
}

/// Parts of the platform that do not answer: every call ends, no part is called again until it returns, and late results
/// have no effect.
@Suite(.timeLimit(.minutes(15))) struct HangingPartsTests {
    private func name() throws -> RecordName { RecordName(try AppID(Phone.app)) }

    @Test(
        "a key creation that hangs throws KEYSTORE_ERROR and keeps the lock; until it returns, later calls throw at once"
    )
    func creating() async throws {
        let phone = Phone()
        let keys = GatedKeyStore(base: phone.keys)
        keys.creating.shut()
        let sdk = try phone.launch { $0.keyStore = keys }
        let registration = Task { try await sdk.registerDevice(appID: Phone.app) }
        try await eventually { keys.creating.count == 1 }
        phone.sleeper.expire()
        let error = await expectError(.keystoreError) { try await registration.value }
        #expect(error?.isRetryable == true)
        for _ in 0..<5 { await expectError(.keystoreError) { try await sdk.registerDevice(appID: Phone.app) } }
        #expect(keys.creating.count == 1 && phone.sleeper.retries.isEmpty)
        // The call may still make the key, so the lock stays held. Otherwise another process could make a key of the same name meanwhile.
        #expect(try phone.storage.lock(name(), for: "operation") == nil)
        keys.creating.open()
        try await eventually { (try? await sdk.registerDevice(appID: Phone.app)) != nil }
        #expect(try await phone.signAndVerify(sdk).status == 200)
        #expect(await phone.service.devices.count == 1)
    }

    @Test("a deletion that hangs fails the reset and never hits a new key")
    func deleting() async throws {
        let (phone, _, _) = try await Phone.registered()
        let keys = GatedKeyStore(base: phone.keys)
        let sdk = try phone.launch { $0.keyStore = keys }
        keys.deleting.shut()
        let reset = Task { try await sdk.resetDeviceIdentity(appID: Phone.app, reason: .userRequested) }
        try await eventually { keys.deleting.count == 1 }
        phone.sleeper.expire()
        await expectError(.keystoreError) { try await reset.value }
        await expectError(.keystoreError) { try await sdk.registerDevice(appID: Phone.app) }
        keys.deleting.open()
        try await eventually { (try? await sdk.registerDevice(appID: Phone.app)) != nil }
        #expect(try await phone.signAndVerify(sdk).status == 200)
    }

    @Test("a lookup that hangs fails its callers, and other kinds of calls go on")
    func loading() async throws {
        let (phone, _, _) = try await Phone.registered()
        let keys = GatedKeyStore(base: phone.keys)
        let sdk = try phone.launch { $0.keyStore = keys }
        keys.loading.shut()
        let call = Task { try await sdk.isRegistered(appID: Phone.app) }
        try await eventually { keys.loading.count == 1 }
        phone.sleeper.expire()
        await expectError(.keystoreError) { try await call.value }
        #expect(try await sdk.state(appID: Phone.app) == .registered)
        let record = try phone.record()
        let signer = RequestSigner(context: try sdk.identity(Phone.app).context)
        let alias = try record.signingKey().alias
        #expect(
            try await signer.sign(method: "GET", path: "/", body: [], record: record, alias: alias).fields.count == 6)
        #expect(keys.loading.count == 1)
        keys.loading.open()
        try await eventually { (try? await sdk.isRegistered(appID: Phone.app)) == true }
    }

    @Test("a read that hangs is STORAGE_ERROR without a retry")
    func reading() async throws {
        let (phone, _, id) = try await Phone.registered()
        let storage = GatedStorage(base: phone.storage)
        let sdk = try phone.launch { $0.storage = storage }
        storage.reading.shut()
        let call = Task { try await sdk.registerDevice(appID: Phone.app) }
        try await eventually { storage.reading.count == 1 }
        phone.sleeper.expire()
        let error = await expectError(.storageError) { try await call.value }
        #expect(error?.isRetryable == true && phone.sleeper.retries.isEmpty)
        await expectError(.storageError) { try await sdk.getDeviceId(appID: Phone.app) }
        #expect(storage.reading.count == 1)
        storage.reading.open()
        try await eventually { (try? await sdk.registerDevice(appID: Phone.app).deviceId) == id }
    }

    @Test("a write that hangs keeps its lock until it ends")
    func writing() async throws {
        let (phone, _, _) = try await Phone.registered()
        let storage = GatedStorage(base: phone.storage)
        let sdk = try phone.launch { $0.storage = storage }
        storage.writing.shut()
        let call = Task { try await sdk.rotateKey(appID: Phone.app) }
        try await eventually { storage.writing.count == 1 }
        phone.sleeper.expire()
        await expectError(.storageError) { try await call.value }
        await expectError(.storageError) { try await sdk.rotateKey(appID: Phone.app) }
        #expect(storage.writing.count == 1)
        #expect(try phone.storage.lock(name(), for: "record") == nil)
        storage.writing.open()
        try await eventually { (try? await sdk.rotateKey(appID: Phone.app)) != nil }
        #expect(try await phone.signAndVerify(sdk).status == 200)
    }

    @Test("while a write hangs, no app waits for a lock, and none writes")
    func noTurn() async throws {
        let (phone, _, _) = try await Phone.registered()
        let storage = GatedStorage(base: phone.storage)
        let sdk = try phone.launch { $0.storage = storage }
        storage.writing.shut()
        let call = Task { try await sdk.rotateKey(appID: Phone.app) }
        try await eventually { storage.writing.count == 1 }
        phone.sleeper.expire()
        await expectError(.storageError) { try await call.value }
        let turns = phone.sleeper.turns
        let rotation = await expectError(.storageError) { try await sdk.rotateKey(appID: Phone.app) }
        let other = await expectError(.storageError) { try await sdk.registerDevice(appID: "com.example.other") }
        for error in [rotation, other] {
            #expect(error?.message == "the record cannot be locked: the storage does not answer")
        }
        #expect(phone.sleeper.turns == turns && storage.writing.count == 1)
        storage.writing.open()
    }

    @Test("a lock that another process keeps is waited for two minutes")
    func lockedByAnother() async throws {
        struct Impatient: Sleeper {
            let base: TestSleeper
            let waited = Locked(Duration.zero)
            func sleep(for duration: Duration, _ purpose: SleepPurpose) async throws {
                guard purpose == .turn else { return try await base.sleep(for: duration, purpose) }
                waited.withLock { $0 += duration }
            }
        }
        let (phone, _, _) = try await Phone.registered()
        let sleeper = Impatient(base: phone.sleeper)
        let sdk = try phone.launch { $0.sleeper = sleeper }
        let lock = try phone.storage.lock(name(), for: "operation")
        let error = await expectError(.storageError) { try await sdk.rotateKey(appID: Phone.app) }
        #expect(error?.isRetryable == true && error?.message == "another process holds the record")
        #expect(sleeper.waited.withLock { $0 } == .seconds(120))
        lock?.release()
        #expect(try await sdk.rotateKey(appID: Phone.app).deviceId == phone.record().deviceID?.text)
    }

    @Test("a call that hangs counts for all apps, also after configure")
    func shared() async throws {
        let phone = Phone()
        let keys = GatedKeyStore(base: phone.keys)
        keys.creating.shut()
        var configuration = try phone.configuration
        configuration.keyStore = keys
        let sdk = SynheartAuth(configuration)
        let registration = Task { try await sdk.registerDevice(appID: Phone.app) }
        try await eventually { keys.creating.count == 1 }
        phone.sleeper.expire()
        await expectError(.keystoreError) { try await registration.value }
        await expectError(.keystoreError) { try await sdk.registerDevice(appID: "com.example.other") }
        configuration.origins = SendTests.origins
        sdk.reconfigure(configuration)
        await expectError(.keystoreError) { try await sdk.registerDevice(appID: Phone.app) }
        #expect(keys.creating.count == 1)
        keys.creating.open()
    }

    @Test("a transport that never answers is NETWORK_ERROR at the deadline")
    func transport() async throws {
        struct Hanging: HTTPTransport {
            let asked = Locked(0)
            func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
                asked.withLock { $0 += 1 }
                await withUnsafeContinuation { (_: UnsafeContinuation<Void, Never>) in }
                throw TransportError("never")
            }
        }
        let (phone, _, _) = try await Phone.registered()
        let transport = Hanging()
        let sdk = try phone.launch { $0.transport = transport }
        let token = Task { try await sdk.deviceToken(appID: Phone.app) }
        try await eventually { transport.asked.withLock { $0 } == 1 }
        phone.sleeper.expire()
        await expectError(.networkError) { try await token.value }
    }
}

/// A `send` has one deadline for all its steps. A cancelled call ends only its own wait.
@Suite(.timeLimit(.minutes(15))) struct CallDeadlineTests {
    /// A transport that holds requests to one path until a test releases them.
    actor HeldTransport: HTTPTransport {
        let base: any HTTPTransport
        private let path: String
        private var held: [CheckedContinuation<Void, Never>] = []
        private(set) var sent: [String] = []
        private var isOpen = false

        init(_ base: any HTTPTransport, holding path: String) {
            self.base = base
            self.path = path
        }

        var waiting: Int { held.count }

        func letGo() {
            isOpen = true
            for continuation in held { continuation.resume() }
            held = []
        }

        func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
            sent.append(request.url)
            if !isOpen, request.url.hasSuffix(path) { await withCheckedContinuation { held.append($0) } }
            return try await base.send(request)
        }
    }

    private let request = TransportRequest(
        method: "GET", url: "\(SendTests.api)/v1/readings", headers: HeaderFields(), body: [],
        deadline: .milliseconds(1000))

    private func launch(_ phone: Phone, _ transport: any HTTPTransport) throws -> SynheartAuth {
        try phone.launch {
            $0.origins = SendTests.origins
            $0.transport = transport
        }
    }

    @Test(
        "a send ends at its deadline while its rotation runs on")
    func rotation() async throws {
        let (phone, _, id) = try await Phone.registered()
        let transport = HeldTransport(phone.network, holding: Route.rotateKey.rawValue)
        let sdk = try launch(phone, transport)
        await phone.service.edit(id) { $0.isKeyExpired = true }
        let send = Task { try await sdk.send(request, appID: Phone.app) }
        try await eventually { await transport.waiting == 1 }
        // Ends only the wait of the send, whose deadline is 1000 ms. The rotation's exchange has its own deadline of 30 seconds.
        phone.sleeper.expire(.milliseconds(1000))
        let error = await expectError(.networkError) { try await send.value }
        #expect(error?.isRetryable == true)
        await transport.letGo()
        try await eventually { try phone.record().key?.alias == .next(try AppID(Phone.app)) }
        #expect(await transport.sent.filter { $0 == request.url }.count == 1)
        #expect(try await sdk.send(request, appID: Phone.app).status == 200)
    }

    @Test("each exchange of a send has the remaining time")
    func remainingTime() async throws {
        struct Slow: HTTPTransport {
            let base: any HTTPTransport
            let clock: TestClock
            let deadlines = Locked<[Duration]>([])
            func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
                if request.url.hasPrefix(SendTests.api) {
                    deadlines.withLock { $0.append(request.deadline) }
                    clock.advance(.milliseconds(700))
                }
                return try await base.send(request)
            }
        }
        let (phone, _, _) = try await Phone.registered()
        let transport = Slow(base: phone.network, clock: phone.clock)
        let sdk = try launch(phone, transport)
        await phone.service.answer(
            path: "/v1/readings", with: await phone.service.answer(FakeService.Refusal(.nonceReplay)), times: 2)
        await expectError(.nonceReplay) { try await sdk.send(request, appID: Phone.app) }
        #expect(transport.deadlines.withLock { $0 } == [.milliseconds(1000), .milliseconds(300)])
    }

    @Test("a send is not tried again after its deadline")
    func timeOver() async throws {
        struct Slow: HTTPTransport {
            let base: any HTTPTransport
            let clock: TestClock
            func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
                if request.url.hasPrefix(SendTests.api) { clock.advance(.milliseconds(1000)) }
                return try await base.send(request)
            }
        }
        let (phone, _, _) = try await Phone.registered()
        let sdk = try launch(phone, Slow(base: phone.network, clock: phone.clock))
        await phone.service.answer(
            path: "/v1/readings", with: await phone.service.answer(FakeService.Refusal(.nonceReplay)))
        await expectError(.networkError) { try await sdk.send(request, appID: Phone.app) }
        #expect(await phone.service.requests.filter { $0.url == request.url }.count == 1)
    }

    @Test("a send whose deadline passes while it waits for its assertion is never sent")
    func inLineForAnAssertion() async throws {
        struct Asserting: AttestationProvider {
            let base: TestAttestation
            let asked = Locked(0)
            let held = OnceValue<Void>()
            var platform: Platform { base.platform }
            func makeHandle() async throws(AttestationError) -> String? { try await base.makeHandle() }
            func attest(_ subject: AttestationSubject) async throws(AttestationError) -> AttestationEvidence {
                try await base.attest(subject)
            }
            func assertion(handle: String, clientDataHash: [UInt8]) async throws(AttestationError) -> [UInt8] {
                let isFirst = asked.withLock { asked in
                    asked += 1
                    return asked == 1
                }
                if isFirst { await held.value }
                return TestAttestation.assertion(handle, clientDataHash)
            }
        }
        let phone = Phone()
        let provider = Asserting(base: phone.attestation)
        let transport = HeldTransport(phone.network, holding: "nothing")
        let sdk = try phone.launch {
            $0.origins = SendTests.origins
            $0.transport = transport
            $0.attestation = provider
        }
        try await sdk.registerDevice(appID: Phone.app)
        for path in ["/v1/readings", "/v1/other"] {
            await phone.service.answer(
                path: path, with: await phone.service.answer(FakeService.Refusal(.assertionRequired)))
        }
        let patient = TransportRequest(method: "GET", url: request.url, headers: HeaderFields(), body: [])
        let first = Task { try await sdk.send(patient, appID: Phone.app) }
        try await eventually { provider.asked.withLock { $0 } == 1 }
        let other = TransportRequest(
            method: "GET", url: "\(SendTests.api)/v1/other", headers: HeaderFields(), body: [],
            deadline: request.deadline)
        let second = Task { try await sdk.send(other, appID: Phone.app) }
        try await eventually { await transport.sent.contains(other.url) }
        phone.sleeper.expire(.milliseconds(1000))
        await expectError(.networkError) { try await second.value }
        provider.held.give(())
        #expect(try await first.value.status == 200)
        // When this call is done, all earlier calls in the queue are done too.
        await phone.service.answer(
            path: "/v1/last", with: await phone.service.answer(FakeService.Refusal(.assertionRequired)))
        let last = TransportRequest(
            method: "GET", url: "\(SendTests.api)/v1/last", headers: HeaderFields(), body: [])
        #expect(try await sdk.send(last, appID: Phone.app).status == 200)
        #expect(await transport.sent.filter { $0 == other.url }.count == 1)
        #expect(provider.asked.withLock { $0 } == 2)
    }

    @Test("a registration outlives its cancelled caller, and the next caller joins it")
    func cancelled() async throws {
        let phone = Phone()
        phone.attestation.hold()
        let sdk = try phone.launch()
        let first = Task { try await sdk.registerDevice(appID: Phone.app) }
        try await eventually { phone.attestation.subjects.count == 1 }
        let second = Task { try await sdk.registerDevice(appID: Phone.app) }
        first.cancel()
        await #expect(throws: CancellationError.self) { try await first.value }
        await expectError(.registrationInProgress) { try await sdk.registerDevice(appID: Phone.app, joins: false) }
        phone.attestation.letGo()
        #expect(try await second.value.status == .registered)
        #expect(phone.attestation.subjects.count == 1)
        #expect(try await sdk.registerDevice(appID: Phone.app, joins: false).status == .alreadyRegistered)
    }

    @Test("a registration that backs off holds no lock")
    func backsOffWithoutLock() async throws {
        struct Watching: Sleeper {
            let storage: MemoryStorage
            let base: TestSleeper
            let taken = Locked(0)
            func sleep(for duration: Duration, _ purpose: SleepPurpose) async throws {
                if purpose == .retry {
                    let lock = try storage.lock(RecordName(AppID(Phone.app)), for: "operation")
                    if lock != nil { taken.withLock { $0 += 1 } }
                    lock?.release()
                }
                try await base.sleep(for: duration, purpose)
            }
        }
        let phone = Phone()
        let sleeper = Watching(storage: phone.storage, base: phone.sleeper)
        await phone.service.refuse(.register, .internalError, times: 2)
        let sdk = try phone.launch { $0.sleeper = sleeper }
        #expect(try await sdk.registerDevice(appID: Phone.app).status == .registered)
        #expect(sleeper.taken.withLock { $0 } == 2 && phone.sleeper.retries.count == 2)
    }

    @Test("a registration that another process finishes during a back-off is taken over")
    func finishedByAnother() async throws {
        struct Interrupted: Sleeper {
            let base: TestSleeper
            let meanwhile: @Sendable () async throws -> Void
            func sleep(for duration: Duration, _ purpose: SleepPurpose) async throws {
                if purpose == .retry { try await meanwhile() }
                try await base.sleep(for: duration, purpose)
            }
        }
        let phone = Phone()
        await phone.service.refuse(.register, .internalError)
        let other = try phone.launch()
        let sleeper = Interrupted(base: phone.sleeper) { try await other.registerDevice(appID: Phone.app) }
        let sdk = try phone.launch { $0.sleeper = sleeper }
        #expect(try await sdk.registerDevice(appID: Phone.app).status == .alreadyRegistered)
        #expect(await phone.service.devices.count == 1)
        #expect(await phone.service.count(.register) == 2)
    }
}
