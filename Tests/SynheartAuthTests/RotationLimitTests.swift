import AuthContract
import Bytes
import Testing

@testable import SynheartAuth

/// The exact limits of a rotation, and what each failure leaves for the next call.
@Suite struct RotationLimitTests {
    private func pending(_ phone: Phone) throws -> PendingRotation? {
        if case .rotation(let rotation) = try phone.record().journal { rotation } else { nil }
    }

    /// A device whose rotation was refused, and the rotation as it stays in the journal.
    private func refused() async throws -> (Phone, SynheartAuth, PendingRotation) {
        let (phone, sdk, _) = try await Phone.registered()
        await phone.service.refuse(.rotateKey, .rotationFailed)
        await expectError(.rotationFailed) { try await sdk.rotateKey(appID: Phone.app) }
        return (phone, sdk, try #require(try pending(phone)))
    }

    @Test(arguments: [(0, 901), (899, 2), (900, 1), (901, nil)] as [(Int64, Int64?)])
    func `a refused key is kept until a copy is more than 15 minutes old`(age: Int64, retryAfter: Int64?) async throws {
        let (phone, sdk, pending) = try await refused()
        phone.clock.advance(.seconds(age))
        guard let retryAfter else {
            try await sdk.rotateKey(appID: Phone.app)
            #expect(try phone.record().key?.thumbprint != pending.thumbprint)
            return
        }
        let error = await expectError(.rotationFailed) { try await sdk.rotateKey(appID: Phone.app) }
        #expect(error?.retryAfter == .seconds(retryAfter))
        #expect(try self.pending(phone) == pending)
        #expect(phone.keys.aliases.contains(pending.alias.text))
    }

    @Test func `a copy with a timestamp far ahead delays the next rotation by 15 minutes at most`() async throws {
        let (phone, sdk, pending) = try await refused()
        var (record, later) = (try phone.record(), pending)
        later.lastCopy = pending.lastCopy.map { $0 + 365 * 86_400 }
        record.journal = .rotation(later)
        phone.storage.put(record.bytes, RecordName(record.appID))
        // The SDK sent the copy before the service's answer, so the copy is at least as old as that answer.
        let error = await expectError(.rotationFailed) { try await sdk.rotateKey(appID: Phone.app) }
        #expect(error?.retryAfter == .seconds(901))
        phone.clock.advance(.seconds(901))
        try await sdk.rotateKey(appID: Phone.app)
        #expect(try phone.record().key?.thumbprint != pending.thumbprint)
    }

    @Test func `a copy refused for a date far ahead is treated as sent at the service's time`() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        phone.clock.setError(.seconds(365 * 86_400))
        let sent = phone.clock.trueMilliseconds / 1000
        await expectError(.clockSkew) { try await sdk.rotateKey(appID: Phone.app) }
        #expect(try pending(phone)?.lastCopy == UnixTime(sent))
    }

    @Test func `a copy that is refused for a date some hours ahead delays the next rotation by 15 minutes at most`()
        async throws
    {
        let (phone, sdk, _) = try await Phone.registered()
        phone.clock.setError(.seconds(20 * 3600))
        await phone.service.refuse(.rotateKey, .clockSkew)
        await phone.service.refuse(.rotateKey, .rotationFailed)
        let error = await expectError(.rotationFailed) { try await sdk.rotateKey(appID: Phone.app) }
        #expect(await phone.service.count(.rotateKey) == 2 && error?.retryAfter == .seconds(901))
    }

    @Test func `a lost App Attest key is replaced after the clock was a year ahead`() async throws {
        let phone = Phone()
        let sdk = try phone.launch { $0.origins = SendTests.origins }
        try await sdk.registerDevice(appID: Phone.app)
        phone.clock.setError(.seconds(365 * 86_400))
        await expectError(.clockSkew) { try await sdk.rotateKey(appID: Phone.app) }
        phone.clock.setError(.zero)
        phone.clock.advance(.seconds(16 * 60))
        await phone.service.setPolicy { ($0.rebinds, $0.assertionPrefixes) = (true, ["/v1/pay"]) }
        phone.attestation.loseHandles()
        let request = TransportRequest(
            method: "GET", url: "\(SendTests.api)/v1/pay", headers: HeaderFields(), body: [])
        // The first attempt finds that the service kept the old key, and abandons the earlier rotation.
        await expectError(.rotationFailed) { try await sdk.send(request, appID: Phone.app) }
        #expect(try await sdk.send(request, appID: Phone.app).status == 200)
    }

    @Test func `if the status request fails, the rotation stays unchanged`() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        await phone.service.refuse(.rotateKey, .rotationFailed)
        await phone.service.refuse(.status, .unknownApp)
        await expectError(.server("UNKNOWN_APP")) { try await sdk.rotateKey(appID: Phone.app) }
        #expect(try phone.record().state == .registered)
        #expect(try pending(phone)?.isRefused == false)
        #expect(try await phone.signAndVerify(sdk).status == 200)
        let (other, app, _) = try await refused()
        await other.service.refuse(.status, .unknownApp)
        await expectError(.server("UNKNOWN_APP")) { try await app.rotateKey(appID: Phone.app) }
        #expect(try other.record().state == .registered)
        #expect(try pending(other)?.isRefused == true)
    }

    @Test func `a rotation that the status confirms has the time at which it took effect`() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        for index in 0..<3 { await phone.network.plan(index == 0 ? .answerDropped : .requestDropped, at: index) }
        await expectError(.networkError) { try await sdk.rotateKey(appID: Phone.app) }
        let time = await phone.service.devices.first?.keyRotatedAt
        phone.clock.advance(.seconds(86_400))
        #expect(try await sdk.rotateKey(appID: Phone.app).effectiveAt == time)
        #expect(try phone.record().keyRotatedAt == time)
    }

    @Test(arguments: [RotationReason.scheduled, .compromise])
    func `a failed attempt leaves the old key current, and the next call sends the same rotation`(
        reason: RotationReason
    ) async throws {
        let (phone, sdk, _) = try await Phone.registered()
        let key = try phone.record().key
        await phone.service.refuse(.rotateKey, .forbidden)
        let error = await expectError(.server("FORBIDDEN")) {
            try await sdk.rotateKey(appID: Phone.app, reason: reason)
        }
        #expect(error?.recovery == SynheartAuthError.Recovery.none && phone.sleeper.retries.isEmpty)
        let record = try phone.record()
        #expect(record.state == .registered && record.key == key && record.identity == .active)
        let kept = try #require(try pending(phone))
        #expect(!kept.isRefused && kept.reason == reason && kept.lastCopy != nil)
        try await sdk.maintain(appID: Phone.app)
        #expect(try phone.record().key?.thumbprint == kept.thumbprint)
        let reasons = await phone.service.requests.compactMap { try? RotateKeyRequest(parsing: $0.body).reason }
        #expect(reasons == [reason, reason])
    }

    @Test func `a failure is logged with its code and its device`() async throws {
        let (phone, sdk, id) = try await Phone.registered()
        await phone.service.refuse(.rotateKey, .keyExpired)
        await expectError(.server("KEY_EXPIRED")) { try await sdk.rotateKey(appID: Phone.app) }
        let events = phone.logger.entries.filter { [.rotationStarted, .rotationFailed].contains($0.event) }
        #expect(events.map(\.event) == [.rotationStarted, .rotationFailed])
        #expect(events.map(\.level) == [.info, .warning] && events.last?.code == .server("KEY_EXPIRED"))
        #expect(try events.allSatisfy { $0.device == HashedDeviceID(try DeviceID(id)) })
    }

    @Test func `a rotation that the status decides logs its failure`() async throws {
        let (phone, sdk, id) = try await Phone.registered()
        await phone.service.refuse(.rotateKey, .rotationFailed)
        let failures = { phone.logger.entries.filter { $0.event == .rotationFailed } }
        // The status first names the old key, and then fails while the refused rotation is settled.
        await expectError(.rotationFailed) { try await sdk.rotateKey(appID: Phone.app) }
        #expect(failures().map(\.code) == [.rotationFailed])
        await phone.service.refuse(.status, .unknownApp)
        await expectError(.server("UNKNOWN_APP")) { try await sdk.rotateKey(appID: Phone.app) }
        #expect(failures().map(\.code) == [.rotationFailed, .server("UNKNOWN_APP")])
        // The current key is lost.
        let (other, app, _) = try await Phone.registered()
        other.keys.lose()
        await expectError(.keyInvalidated) { try await app.rotateKey(appID: Phone.app) }
        let last = try #require(other.logger.entries.last { $0.event == .rotationFailed })
        #expect(last.code == .keyInvalidated && last.level == .warning)
        #expect(try failures().allSatisfy { $0.device == HashedDeviceID(try DeviceID(id)) && $0.level == .warning })
    }

    @Test func `a rotation of no device logs nothing`() async throws {
        let phone = Phone()
        await expectError(.notRegistered) { try await phone.launch().rotateKey(appID: Phone.app) }
        #expect(phone.logger.entries.isEmpty)
    }

    /// Records the order in which keys are made and deleted.
    private struct Journaling: KeyStore {
        let base: MemoryKeyStore
        let calls = Locked<[String]>([])
        var failure: KeyStoreError?
        var protection: KeyProtection { base.protection }

        func create(_ alias: KeyAlias, challenge: [UInt8]?) throws(KeyStoreError) -> DevicePublicKey {
            calls.withLock { $0.append("create \(alias)") }
            if let failure { throw failure }
            return try base.create(alias, challenge: challenge)
        }
        func load(_ alias: KeyAlias) throws(KeyStoreError) -> DevicePublicKey? { try base.load(alias) }
        func sign(_ message: [UInt8], with alias: KeyAlias) throws(KeyStoreError) -> RequestSignature {
            try base.sign(message, with: alias)
        }
        func delete(_ alias: KeyAlias) throws(KeyStoreError) {
            calls.withLock { $0.append("delete \(alias)") }
            try base.delete(alias)
        }
    }

    @Test func `a replaced key that is still there is deleted before a new one takes its name`() async throws {
        let (phone, _, _) = try await Phone.registered()
        let keys = Journaling(base: phone.keys)
        let sdk = try phone.launch { $0.keyStore = keys }
        var record = try phone.record()
        let leftover = KeyAlias.next(record.appID)
        _ = try phone.keys.create(leftover, challenge: nil)
        record.journal = .disposal(leftover)
        phone.storage.put(record.bytes, RecordName(record.appID))
        try await sdk.rotateKey(appID: Phone.app)
        let primary = KeyAlias.primary(record.appID)
        #expect(keys.calls.withLock { $0 } == ["delete \(leftover)", "create \(leftover)", "delete \(primary)"])
        #expect(phone.keys.aliases == [leftover.text])
    }

    @Test func `a key that was given up is deleted before a new one takes its name`() async throws {
        let (phone, _, pending) = try await refused()
        phone.clock.advance(.seconds(901))
        let keys = Journaling(base: phone.keys)
        let sdk = try phone.launch { $0.keyStore = keys }
        try await sdk.rotateKey(appID: Phone.app)
        let primary = KeyAlias.primary(try AppID(Phone.app))
        let calls = ["delete \(pending.alias)", "create \(pending.alias)", "delete \(primary)"]
        #expect(keys.calls.withLock { $0 } == calls)
    }

    @Test(arguments: KeyStoreError.Code.allCases)
    func `a key that cannot be made fails the rotation, and the old one signs`(code: KeyStoreError.Code) async throws {
        let (phone, _, _) = try await Phone.registered()
        let keys = Journaling(base: phone.keys, failure: KeyStoreError(code))
        let sdk = try phone.launch { $0.keyStore = keys }
        // A key that was never made is not treated as lost.
        let error = await expectError(code == .misconfigured ? .notConfigured : .keystoreError) {
            try await sdk.rotateKey(appID: Phone.app)
        }
        #expect(error?.isRetryable == (code == .unavailable))
        #expect(try phone.record().state == .registered)
        #expect(await phone.service.count(.rotateKey) == 0)
        #expect(try await phone.signAndVerify(sdk).status == 200)
        #expect(try await phone.launch().rotateKey(appID: Phone.app).deviceId == phone.record().deviceID?.text)
    }

    @Test func `a rotation holds no lock between its attempts, and takes over what another process finished`()
        async throws
    {
        struct Interrupted: Sleeper {
            let base: TestSleeper
            let meanwhile: @Sendable () async throws -> Void
            func sleep(for duration: Duration, _ purpose: SleepPurpose) async throws {
                if purpose == .retry { try await meanwhile() }
                try await base.sleep(for: duration, purpose)
            }
        }
        let (phone, other, _) = try await Phone.registered()
        await phone.network.plan(.requestDropped, at: 0)
        let done = Locked<KeyRotation?>(nil)
        let sleeper = Interrupted(base: phone.sleeper) {
            let rotation = try await other.rotateKey(appID: Phone.app)
            done.withLock { $0 = rotation }
        }
        let sdk = try phone.launch { $0.sleeper = sleeper }
        let rotation = try await sdk.rotateKey(appID: Phone.app)
        #expect(rotation == done.withLock { $0 })
        #expect(await phone.service.count(.rotateKey) == 1 && phone.keys.created == 2)
        #expect(phone.keys.aliases.count == 1)
    }

    @Test func `the old key of another process's rotation is deleted, if that process died before`() async throws {
        /// A key store whose process dies when a key is deleted.
        struct Dying: KeyStore {
            let base: MemoryKeyStore
            let death: Faults
            var protection: KeyProtection { base.protection }
            func create(_ alias: KeyAlias, challenge: [UInt8]?) throws(KeyStoreError) -> DevicePublicKey {
                try base.create(alias, challenge: challenge)
            }
            func load(_ alias: KeyAlias) throws(KeyStoreError) -> DevicePublicKey? { try base.load(alias) }
            func sign(_ message: [UInt8], with alias: KeyAlias) throws(KeyStoreError) -> RequestSignature {
                try base.sign(message, with: alias)
            }
            func delete(_ alias: KeyAlias) throws(KeyStoreError) {
                death.die(at: 0)
                if death.pass() { throw KeyStoreError(.unavailable) }
            }
        }
        struct Interrupted: Sleeper {
            let base: TestSleeper
            let meanwhile: @Sendable () async throws -> Void
            func sleep(for duration: Duration, _ purpose: SleepPurpose) async throws {
                if purpose == .retry { try await meanwhile() }
                try await base.sleep(for: duration, purpose)
            }
        }
        let (phone, _, _) = try await Phone.registered()
        let death = Faults()
        let other = try phone.launch {
            $0.keyStore = Dying(base: phone.keys, death: death)
            $0.storage = FaultyStorage(base: phone.storage, faults: death)
        }
        await phone.network.plan(.requestDropped, at: 0)
        let sdk = try phone.launch {
            $0.sleeper = Interrupted(base: phone.sleeper) {
                try await other.rotateKey(appID: Phone.app)
                #expect(phone.keys.aliases.count == 2)
            }
        }
        try await sdk.rotateKey(appID: Phone.app)
        #expect(phone.keys.aliases.count == 1)
    }

    @Test func `only an unreachable service is tried again, and Retry-After replaces the pause`() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        await phone.service.refuse(.rotateKey, .serviceUnavailable, times: 2, retryAfter: 17)
        try await sdk.rotateKey(appID: Phone.app)
        #expect(phone.sleeper.retries == [.seconds(17), .seconds(17)])
        #expect(await phone.service.count(.rotateKey) == 3)
    }

    @Test func `after a thief's rotation the pending key is not sent again`() async throws {
        let (phone, sdk, id) = try await Phone.registered()
        await phone.service.steal(id)
        await expectError(.rotationFailed) { try await sdk.rotateKey(appID: Phone.app) }
        #expect(try pending(phone)?.isRefused == true && phone.record().state == .registered)
        let sent = await phone.service.count(.rotateKey)
        let error = await expectError(.rotationFailed) { try await sdk.rotateKey(appID: Phone.app) }
        #expect(error?.recovery == .reset)
        #expect(await phone.service.count(.rotateKey) == sent)
    }
}
