import AuthContract
import Bytes
import Testing

@testable import SynheartAuth

/// Keys that the operating system lost, and keys that load but can no longer sign. Each case has a recovery.
@Suite struct LostKeyTests {
    /// How a key is lost.
    enum Loss: Sendable, CaseIterable {
        case gone, cannotSign

        func happen(to alias: KeyAlias, on phone: Phone) {
            switch self {
            case .gone: phone.keys.lose(alias)
            case .cannotSign: phone.keys.invalidate(alias)
            }
        }
    }

    @Test func `a sent key that loads but cannot sign is replaced by the next registration`() async throws {
        let phone = Phone()
        let sdk = try phone.launch()
        await phone.network.plan(.answerDropped, at: 1)
        for index in 2...5 { await phone.network.plan(.requestDropped, at: index) }
        await expectError(.networkError) { try await sdk.registerDevice(appID: Phone.app) }
        try phone.keys.invalidate(KeyAlias.primary(AppID(Phone.app)))
        let error = await expectError(.keyInvalidated) { try await sdk.registerDevice(appID: Phone.app) }
        #expect(error?.recovery == .register)
        #expect(try phone.record().journal == nil)
        #expect(try await sdk.registerDevice(appID: Phone.app).status == .registered)
        #expect(try await phone.signAndVerify(sdk).status == 200)
        #expect(phone.keys.created == 2)
    }

    @Test(arguments: Loss.allCases)
    func `a pending device whose key is lost registers with a new key`(loss: Loss) async throws {
        let phone = Phone()
        await phone.service.set { $0.decision = .pending }
        let sdk = try phone.launch()
        let id = try await sdk.registerDevice(appID: Phone.app).deviceId
        try loss.happen(to: KeyAlias.primary(AppID(Phone.app)), on: phone)
        await phone.service.set { $0.decision = .registered }
        let registration = try await sdk.registerDevice(appID: Phone.app)
        #expect(registration.status == .registered && registration.deviceId != id)
        #expect(try await phone.signAndVerify(sdk).status == 200)
    }

    @Test func `a pending device whose key cannot sign now keeps it`() async throws {
        let phone = Phone()
        await phone.service.set { $0.decision = .pending }
        let sdk = try phone.launch()
        let pending = try await sdk.registerDevice(appID: Phone.app)
        let keys = FailingToSign(base: phone.keys, failure: KeyStoreError(.unavailable))
        let next = try phone.launch { $0.keyStore = keys }
        let error = await expectError(.keystoreError) { try await next.registerDevice(appID: Phone.app) }
        #expect(error?.recovery == .retry)
        #expect(try await sdk.registerDevice(appID: Phone.app) == pending)
        #expect(phone.keys.created == 1)
    }

    /// A device whose rotation the service refused before the rotation took effect. The new key exists, and no copy of the request
    /// can arrive later.
    private func refusedForEvidence() async throws -> (Phone, SynheartAuth) {
        let (phone, sdk, _) = try await Phone.registered()
        await phone.service.setPolicy { $0.reattests = true }
        phone.attestation.fail(.unsupported)
        await expectError(.attestationUnavailable) { try await sdk.rotateKey(appID: Phone.app) }
        guard case .rotation(let pending) = try phone.record().journal, pending.thumbprint != nil else {
            throw StorageError("no pending key")
        }
        #expect(pending.lastCopy == nil)
        return (phone, sdk)
    }

    @Test(arguments: Loss.allCases)
    func `a lost pending key is replaced if no copy of its rotation is open`(loss: Loss) async throws {
        let (phone, sdk) = try await refusedForEvidence()
        try loss.happen(to: .next(AppID(Phone.app)), on: phone)
        try await sdk.rotateKey(appID: Phone.app)
        #expect(phone.keys.created == 3 && phone.keys.aliases.count == 1)
        #expect(try await phone.signAndVerify(sdk).status == 200)
    }

    @Test(arguments: Loss.allCases)
    func `a lost pending key is kept in the journal while a copy may take effect`(loss: Loss) async throws {
        let (phone, sdk, _) = try await Phone.registered()
        await phone.network.setOffline(true)
        await expectError(.networkError) { try await sdk.rotateKey(appID: Phone.app) }
        await phone.network.setOffline(false)
        try loss.happen(to: .next(AppID(Phone.app)), on: phone)
        let error = await expectError(.rotationFailed) { try await sdk.rotateKey(appID: Phone.app) }
        #expect(error?.recovery == .retry && phone.keys.created == 2)
        phone.clock.advance(.seconds(16 * 60))
        try await sdk.rotateKey(appID: Phone.app)
        #expect(try await phone.signAndVerify(sdk).status == 200)
    }

    @Test(arguments: Loss.allCases)
    func `a pending key that is lost after its copies expired calls for another rotation`(loss: Loss) async throws {
        let (phone, sdk, _) = try await Phone.registered()
        await phone.network.setOffline(true)
        await expectError(.networkError) { try await sdk.rotateKey(appID: Phone.app) }
        await phone.network.setOffline(false)
        try loss.happen(to: .next(AppID(Phone.app)), on: phone)
        phone.clock.advance(.seconds(16 * 60))
        // The current key is intact, so the error does not ask the app to register again.
        let error = await expectError(.rotationFailed) { try await sdk.rotateKey(appID: Phone.app) }
        #expect(error?.recovery == .retry)
        try await sdk.rotateKey(appID: Phone.app)
        #expect(try await phone.signAndVerify(sdk).status == 200)
    }

    @Test(arguments: Loss.allCases)
    func `a current key that is lost during a rotation calls for a registration`(loss: Loss) async throws {
        let (phone, sdk, id) = try await Phone.registered()
        try loss.happen(to: .primary(AppID(Phone.app)), on: phone)
        let error = await expectError(.keyInvalidated) { try await sdk.rotateKey(appID: Phone.app) }
        #expect(try error?.recovery == .register && phone.record().state == .keyInvalid)
        #expect(try await sdk.registerDevice(appID: Phone.app).deviceId != id)
        #expect(try await phone.signAndVerify(sdk).status == 200)
    }

    @Test(arguments: Loss.allCases)
    func `losing both keys while a copy may take effect asks for a registration, and logs no FOREIGN_KEY`(
        loss: Loss
    ) async throws {
        let (phone, sdk, id) = try await Phone.registered()
        await phone.network.setOffline(true)
        await expectError(.networkError) { try await sdk.rotateKey(appID: Phone.app) }
        await phone.network.setOffline(false)
        for alias in try KeyAlias.both(AppID(Phone.app)) { loss.happen(to: alias, on: phone) }
        let error = await expectError(.keyInvalidated) { try await sdk.rotateKey(appID: Phone.app) }
        #expect(try error?.recovery == .register && phone.record().state == .keyInvalid)
        #expect(!phone.logger.entries.contains { $0.event == .foreignKey })
        #expect(try await sdk.registerDevice(appID: Phone.app).deviceId != id)
    }

    @Test(arguments: Loss.allCases)
    func `losing the new key after the service took it keeps the old key, and logs no FOREIGN_KEY`(
        loss: Loss
    ) async throws {
        let (phone, sdk, id) = try await Phone.registered()
        for index in 0..<3 { await phone.network.plan(index == 0 ? .answerDropped : .requestDropped, at: index) }
        await expectError(.networkError) { try await sdk.rotateKey(appID: Phone.app) }
        try loss.happen(to: .next(AppID(Phone.app)), on: phone)
        // After the overlap, the service refuses the old key. The refusal may be a mistake, so the SDK keeps the key until the app
        // resets the identity.
        phone.clock.advance(.seconds(61))
        for _ in 0..<2 {
            let error = await expectError(.rotationFailed) { try await sdk.rotateKey(appID: Phone.app) }
            #expect(try error?.recovery == .reset && phone.record().state == .registered)
        }
        #expect(!phone.logger.entries.contains { $0.event == .foreignKey })
        try await sdk.resetDeviceIdentity(appID: Phone.app, reason: .userRequested)
        #expect(try await sdk.registerDevice(appID: Phone.app).deviceId != id)
        #expect(try await phone.signAndVerify(sdk).status == 200)
    }

    @Test(arguments: Loss.allCases)
    func `a key that is lost while a token is fetched calls for a registration`(loss: Loss) async throws {
        let (phone, sdk, id) = try await Phone.registered()
        try loss.happen(to: .primary(AppID(Phone.app)), on: phone)
        let error = await expectError(.keyInvalidated) { try await sdk.deviceToken(appID: Phone.app) }
        #expect(try error?.recovery == .register && phone.record().state == .keyInvalid)
        #expect(try await sdk.registerDevice(appID: Phone.app).deviceId != id)
        #expect(try await sdk.deviceToken(appID: Phone.app).token.isEmpty == false)
    }

    @Test func `a key store that recovers after its second false answer is believed`() async throws {
        let (phone, sdk, id) = try await Phone.registered()
        let before = try phone.record()
        for _ in 0..<2 {
            phone.keys.fail(KeyStoreError(.notFound))
            #expect(try await sdk.isRegistered(appID: Phone.app))
            phone.clock.advance(.seconds(2))
        }
        #expect(phone.keys.canaryChecks == 1)
        #expect(try await sdk.registerDevice(appID: Phone.app).deviceId == id)
        #expect(try phone.record().key == before.key)
    }

    @Test func `a device is registered also while a rotation replaces its key`() async throws {
        /// A key store that lets another process rotate the key just before the first load.
        struct Rotating: KeyStore {
            let base: MemoryKeyStore
            let rotate: @Sendable () -> Void
            let isRotated = Locked(false)
            var protection: KeyProtection { base.protection }

            func create(_ alias: KeyAlias, challenge: [UInt8]?) throws(KeyStoreError) -> DevicePublicKey {
                try base.create(alias, challenge: challenge)
            }
            func load(_ alias: KeyAlias) throws(KeyStoreError) -> DevicePublicKey? {
                let wasRotated = isRotated.withLock { isRotated in
                    defer { isRotated = true }
                    return isRotated
                }
                if !wasRotated { rotate() }
                return try base.load(alias)
            }
            func sign(_ message: [UInt8], with alias: KeyAlias) throws(KeyStoreError) -> RequestSignature {
                try base.sign(message, with: alias)
            }
            func delete(_ alias: KeyAlias) throws(KeyStoreError) { try base.delete(alias) }
        }
        let (phone, sdk, _) = try await Phone.registered()
        let before = try phone.record()
        try await sdk.rotateKey(appID: Phone.app)
        let after = try phone.record()
        phone.storage.put(before.bytes, RecordName(before.appID))
        let other = try phone.launch {
            $0.keyStore = Rotating(base: phone.keys) { phone.storage.put(after.bytes, RecordName(after.appID)) }
        }
        #expect(try await other.isRegistered(appID: Phone.app))
    }

    @Test func `a key that another process made after a reset is not taken for the lost one`() async throws {
        let (phone, other, id) = try await Phone.registered()
        let keys = Vanishing(base: phone.keys)
        let sdk = try phone.launch { $0.keyStore = keys }
        keys.signing.shut()
        let signing = Task { try await sdk.signRequest(appID: Phone.app, method: "GET", path: "/v1") }
        try await eventually { keys.signing.count == 1 }
        try await other.resetDeviceIdentity(appID: Phone.app, reason: .userRequested)
        let registration = try await other.registerDevice(appID: Phone.app)
        keys.signing.open()
        // The waiting call signs again with the new key, which has the same name as the lost one.
        #expect(try await signing.value.dictionary["X-Device-ID"] == registration.deviceId)
        #expect(try registration.deviceId != id && phone.record().state == .registered)
        #expect(try await phone.signAndVerify(sdk).status == 200)
    }

    /// A key store that loads its keys but does not sign.
    private struct FailingToSign: KeyStore {
        let base: MemoryKeyStore
        let failure: KeyStoreError
        var protection: KeyProtection { base.protection }

        func create(_ alias: KeyAlias, challenge: [UInt8]?) throws(KeyStoreError) -> DevicePublicKey {
            try base.create(alias, challenge: challenge)
        }
        func load(_ alias: KeyAlias) throws(KeyStoreError) -> DevicePublicKey? { try base.load(alias) }
        func sign(_ message: [UInt8], with alias: KeyAlias) throws(KeyStoreError) -> RequestSignature { throw failure }
        func delete(_ alias: KeyAlias) throws(KeyStoreError) { try base.delete(alias) }
    }

    /// A key store whose first signature waits at a gate, and then finds no key.
    private struct Vanishing: KeyStore {
        let base: MemoryKeyStore
        let signing = Gate()
        let isFirst = Locked(true)
        var protection: KeyProtection { base.protection }

        func create(_ alias: KeyAlias, challenge: [UInt8]?) throws(KeyStoreError) -> DevicePublicKey {
            try base.create(alias, challenge: challenge)
        }
        func load(_ alias: KeyAlias) throws(KeyStoreError) -> DevicePublicKey? { try base.load(alias) }
        func sign(_ message: [UInt8], with alias: KeyAlias) throws(KeyStoreError) -> RequestSignature {
            let isFirst = isFirst.withLock { isFirst in
                defer { isFirst = false }
                return isFirst
            }
            guard isFirst else { return try base.sign(message, with: alias) }
            signing.pass()
            throw KeyStoreError(.notFound)
        }
        func delete(_ alias: KeyAlias) throws(KeyStoreError) { try base.delete(alias) }
    }
}
