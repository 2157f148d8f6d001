import AuthContract
import Bytes
import Testing

@testable import SynheartAuth

/// resetDeviceIdentity: the one way from any state back to unregistered.
@Suite struct ResetTests {
    @Test("a reset succeeds although the hardware cannot delete the key")
    func bestEffort() async throws {
        let (phone, _, _) = try await Phone.registered()
        struct Stubborn: KeyStore {
            let base: MemoryKeyStore
            var protection: KeyProtection { base.protection }
            func create(_ alias: KeyAlias, challenge: [UInt8]?) throws(KeyStoreError) -> DevicePublicKey {
                try base.create(alias, challenge: challenge)
            }
            func load(_ alias: KeyAlias) throws(KeyStoreError) -> DevicePublicKey? { try base.load(alias) }
            func sign(_ message: [UInt8], with alias: KeyAlias) throws(KeyStoreError) -> RequestSignature {
                try base.sign(message, with: alias)
            }
            func delete(_ alias: KeyAlias) throws(KeyStoreError) { throw KeyStoreError(.failed) }
        }
        let sdk = try phone.launch { $0.keyStore = Stubborn(base: phone.keys) }
        try await sdk.resetDeviceIdentity(appID: Phone.app, reason: .userRequested)
        #expect(phone.storage.isEmpty)
        #expect(try await sdk.registerDevice(appID: Phone.app).status == .registered)
    }

    @Test("a reset works offline")
    func offline() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        await phone.network.setOffline(true)
        try await sdk.resetDeviceIdentity(appID: Phone.app, reason: .userRequested)
        #expect(try await sdk.state(appID: Phone.app) == .unregistered)
    }

    @Test("a reset waits three seconds at most for the service")
    func hangs() async throws {
        struct Hanging: HTTPTransport {
            let isAsked = Locked(false)

            func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
                isAsked.withLock { $0 = true }
                await withUnsafeContinuation { (_: UnsafeContinuation<Void, Never>) in }
                throw TransportError("never")
            }
        }
        let (phone, _, _) = try await Phone.registered()
        let transport = Hanging()
        let sdk = try phone.launch { $0.transport = transport }
        let reset = Task { try await sdk.resetDeviceIdentity(appID: Phone.app, reason: .userRequested) }
        try await eventually { transport.isAsked.withLock { $0 } }
        phone.sleeper.expire(.seconds(3))
        try await reset.value
        #expect(phone.storage.isEmpty)
    }

    @Test("a reset of nothing does nothing", arguments: ResetReason.allCases)
    func nothing(reason: ResetReason) async throws {
        let phone = Phone()
        try await phone.launch().resetDeviceIdentity(appID: Phone.app, reason: reason)
        #expect(phone.storage.isEmpty)
        #expect(await phone.network.messages == 0)
        #expect(phone.logger.entries.isEmpty)
    }

    @Test("a reset works from pending and from keyInvalid")
    func otherStates() async throws {
        let pending = Phone()
        await pending.service.set { $0.decision = .pending }
        let sdk = try pending.launch()
        try await sdk.registerDevice(appID: Phone.app)
        try await sdk.resetDeviceIdentity(appID: Phone.app, reason: .serverInstructed)
        #expect(await pending.service.devices.first?.status == .deregistered)
        let (phone, invalid, _) = try await Phone.registered()
        phone.keys.lose()
        _ = try? await invalid.signRequest(appID: Phone.app, method: "GET", path: "/")
        try await invalid.resetDeviceIdentity(appID: Phone.app, reason: .keyLost)
        #expect(try await invalid.state(appID: Phone.app) == .unregistered)
    }

    @Test("a reset after an interrupted rotation is signed with the key that the service has")
    func afterLostRotation() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        for index in 0..<3 { await phone.network.plan(index == 0 ? .answerDropped : .requestDropped, at: index) }
        _ = try? await sdk.rotateKey(appID: Phone.app)
        phone.clock.advance(.seconds(120))
        try await sdk.resetDeviceIdentity(appID: Phone.app, reason: .userRequested)
        #expect(await phone.service.devices.first?.status == .deregistered)
        #expect(phone.keys.aliases.isEmpty)
    }

    @Test("an undecodable record is STORAGE_ERROR at first, a copy is kept, and a reset ends it")
    func undecodable() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        let name = RecordName(try AppID(Phone.app))
        for text in ["", "{", "[]", #"{"version":2,"app_id":"com.example.app"}"#, #"{"version":1}"#] {
            phone.storage.put(Array(text.utf8), name)
            let error = await expectError(.storageError) { try await sdk.registerDevice(appID: Phone.app) }
            #expect(error?.recovery == (text.contains("2") ? SynheartAuthError.Recovery.none : .retry))
            await expectError(.storageError) { try await sdk.isRegistered(appID: Phone.app) }
            #expect(phone.storage.read(name) == .found(Array(text.utf8)))
            #expect(phone.storage.everything.filter { $0 == Array(text.utf8) }.count == 2)
        }
        #expect(await phone.service.devices.count == 1)
        try await sdk.resetDeviceIdentity(appID: Phone.app, reason: .userRequested)
        #expect(phone.storage.read(name) == .absent)
        #expect(try await sdk.registerDevice(appID: Phone.app).status == .registered)
    }

    @Test("a record that cannot be read now is not reset, and nothing is deleted")
    func unavailable() async throws {
        let (phone, sdk, id) = try await Phone.registered()
        phone.storage.beUnavailable(times: 5)
        let error = await expectError(.storageError) {
            try await sdk.resetDeviceIdentity(appID: Phone.app, reason: .userRequested)
        }
        #expect(error?.recovery == .retry && phone.keys.aliases.count == 1)
        #expect(try await sdk.registerDevice(appID: Phone.app).deviceId == id)
    }

    @Test("a reset sends one DELETE with a limit of three seconds, and is logged")
    func request() async throws {
        let (phone, sdk, id) = try await Phone.registered()
        let before = await phone.network.messages
        try await sdk.resetDeviceIdentity(appID: Phone.app, reason: .userRequested)
        let sent = try #require(await phone.service.requests.last)
        #expect(sent.method == "DELETE" && sent.deadline == .seconds(3))
        #expect(await phone.network.messages == before + 1)
        let entry = try #require(phone.logger.entries.last)
        #expect(try entry.event == .identityReset && entry.device == HashedDeviceID(DeviceID(id)))
    }

    @Test("an identity of another service is reset without telling this one")
    func otherService() async throws {
        let (phone, _, _) = try await Phone.registered()
        var record = try phone.record()
        record.authOrigin = "https://other.test"
        phone.storage.put(record.bytes, RecordName(record.appID))
        let sdk = try phone.launch()
        // Only a reset may change the record of another service's identity.
        let now = Double(phone.clock.wallMilliseconds) / 1000
        let error = await expectError(.storageError) {
            try await sdk.correctClockSkew(serverTimestamp: now + 5, appID: Phone.app)
        }
        #expect(try error?.recovery == .reset && phone.record() == record)
        let messages = await phone.network.messages
        try await sdk.resetDeviceIdentity(appID: Phone.app, reason: .userRequested)
        #expect(phone.storage.isEmpty && phone.keys.aliases.isEmpty)
        #expect(await phone.network.messages == messages)
    }

    @Test(arguments: [false, true])
    func `a registration waits for a reset whose caller has gone`(isReconfigured: Bool) async throws {
        let (phone, sdk, id) = try await Phone.registered()
        let name = RecordName(try AppID(Phone.app))
        let lock = try #require(try phone.storage.lock(name, for: IdentityLedger.LockScope.operation.rawValue))
        let reset = Task { try await sdk.resetDeviceIdentity(appID: Phone.app, reason: .userRequested) }
        try await eventually { phone.sleeper.turns > 0 }
        reset.cancel()
        await #expect(throws: CancellationError.self) { try await reset.value }
        if isReconfigured { sdk.reconfigure(try phone.configuration) }
        let impatient = Task { try await sdk.registerDevice(appID: Phone.app) }
        impatient.cancel()
        await #expect(throws: CancellationError.self) { try await impatient.value }
        let registration = Task { try await sdk.registerDevice(appID: Phone.app) }
        for _ in 0..<100 { await Task.yield() }
        lock.release()
        // The reset, whose caller was cancelled, still ends the first identity. The registration must return a new one.
        let device = try await registration.value
        #expect(device.status == .registered && device.deviceId != id)
        #expect(try await phone.signAndVerify(sdk).status == 200)
    }

    @Test func `resets of one app run one after the other, and those of another app do not wait`() async throws {
        let (app, other) = (try AppID(Phone.app), try AppID("com.example.other"))
        let resets = Resets()
        let isLetGo = OnceValue<Void>()
        let ended = Locked<[Int]>([])
        _ = resets.begin(app) {
            await isLetGo.value
            ended.withLock { $0.append(1) }
            return .success(())
        }
        _ = resets.begin(app) {
            ended.withLock { $0.append(2) }
            return .success(())
        }
        _ = await resets.begin(other) {
            ended.withLock { $0.append(3) }
            return .failure(.cancelled)
        }.value
        try await resets.wait(for: other)
        #expect(ended.withLock { $0 } == [3])
        isLetGo.give(())
        try await resets.wait(for: app)
        #expect(ended.withLock { $0 } == [3, 1, 2])
    }
}
