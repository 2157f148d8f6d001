import AuthContract
import Testing

@testable import SynheartAuth

/// The rotation flow and everything that can become of a copy on its way.
@Suite struct RotationTests {
    private func pendingRotation(_ phone: Phone) throws -> PendingRotation? {
        if case .rotation(let rotation) = try phone.record().journal { rotation } else { nil }
    }

    @Test("a new key, the same device id; the old key is deleted; signatures verify")
    func rotates() async throws {
        let (phone, sdk, id) = try await Phone.registered()
        let old = try phone.record().key
        let rotation = try await sdk.rotateKey(appId: Phone.app)
        let record = try phone.record()
        #expect(rotation.deviceId == id && record.deviceID?.text == id)
        #expect(record.key != old && record.keyRotatedAt == rotation.effectiveAt && record.journal == nil)
        #expect(phone.keys.aliases == ["synheart_auth_com.example.app_next"])
        phone.clock.advance(.seconds(120))
        #expect(try await phone.signAndVerify(sdk).status == 200)
    }

    @Test("rotations can follow one another, and only ever two names are used")
    func many() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        for _ in 0..<5 {
            try await sdk.rotateKey(appId: Phone.app)
            phone.clock.advance(.seconds(90))
            #expect(try await phone.signAndVerify(sdk).status == 200)
            #expect(phone.keys.aliases.count == 1)
        }
        #expect(await phone.service.devices.count == 1)
    }

    @Test("the reason reaches the service: with compromise the old key stops at once")
    func compromise() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        try await sdk.rotateKey(appId: Phone.app, reason: .compromise)
        let until = try #require(await phone.service.devices.first?.previousKey?.until)
        #expect(until * 1000 <= phone.clock.trueMilliseconds)
    }

    @Test("before registration: NOT_REGISTERED")
    func notRegistered() async throws {
        let phone = Phone()
        await expectError(.notRegistered) { try await phone.launch().rotateKey(appId: Phone.app) }
    }

    @Test("on failure the old key stays active, three attempts, then the next call with the same new key")
    func failure() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        await phone.network.setOffline(true)
        await expectError(.networkError) { try await sdk.rotateKey(appId: Phone.app) }
        #expect(phone.sleeper.retries == [.seconds(60), .seconds(120)])
        #expect(phone.logger.entries.last { $0.event == .rotationFailed }?.level == .warning)
        #expect(try phone.record().state == .registered)
        let pending = try #require(try pendingRotation(phone))
        await phone.network.setOffline(false)
        #expect(try await phone.signAndVerify(sdk).status == 200)
        try await phone.launch().rotateKey(appId: Phone.app)
        #expect(try phone.record().key?.thumbprint == pending.thumbprint)
        #expect(phone.keys.created == 2)
    }

    @Test("signing goes on, and isRegistered stays true, while a rotation is under way")
    func signingGoesOn() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        let ledger = try sdk.identity(Phone.app).context.ledger
        let lock = try await ledger.lock(.operation)
        try await ledger.apply(.rotationStarted(.next(AppID(Phone.app)), .scheduled))
        #expect(try await sdk.state(appId: Phone.app) == .registering)
        #expect(try await sdk.isRegistered(appId: Phone.app))
        #expect(try await phone.signAndVerify(sdk).status == 200)
        #expect(try await sdk.registerDevice(appId: Phone.app).status == .alreadyRegistered)
        lock.release()
    }

    @Test("the answer lost: the same key again, answered with the first effective_at")
    func answerLost() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        await phone.network.plan(.answerDropped, at: 0)
        let rotation = try await sdk.rotateKey(appId: Phone.app)
        #expect(await phone.service.count(.rotateKey) >= 2)
        #expect(await phone.service.devices.first?.keyRotatedAt == rotation.effectiveAt)
        #expect(try await phone.signAndVerify(sdk).status == 200)
    }

    @Test("the answer lost and the overlap over: the service knows the new key alone, and says so")
    func answerLostLongAgo() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        for index in 0..<3 { await phone.network.plan(index == 0 ? .answerDropped : .requestDropped, at: index) }
        await expectError(.networkError) { try await sdk.rotateKey(appId: Phone.app) }
        phone.clock.advance(.seconds(86_400))
        let next = try phone.launch()
        try await next.rotateKey(appId: Phone.app)
        #expect(try phone.record().key?.thumbprint == (await phone.service.devices.first?.key.thumbprint))
        #expect(try await phone.signAndVerify(next).status == 200)
        #expect(phone.keys.created == 2)
    }

    @Test("a delayed copy that arrives after the rotation changes nothing")
    func delayedCopy() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        await phone.network.plan(.requestDelayed, at: 0)
        try await sdk.rotateKey(appId: Phone.app)
        try await phone.network.deliverDelayed()
        #expect(try await phone.signAndVerify(sdk).status == 200)
        #expect(try phone.record().key?.thumbprint == (await phone.service.devices.first?.key.thumbprint))
    }

    @Test("a delayed copy that arrives after the client gave up: the pending key was kept, so the device still signs")
    func delayedCopyAfterGivingUp() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        await phone.network.plan(.requestDelayed, at: 0)
        await phone.network.plan(.requestDropped, at: 1)
        await phone.network.plan(.requestDropped, at: 2)
        await expectError(.networkError) { try await sdk.rotateKey(appId: Phone.app) }
        try await phone.network.deliverDelayed()
        phone.clock.advance(.seconds(90))
        try await phone.launch().rotateKey(appId: Phone.app)
        #expect(try await phone.signAndVerify(phone.launch()).status == 200)
    }

    @Test("a delayed copy that arrives after the pending key was given up is refused, and the device still signs")
    func delayedCopyAfterAbandoning() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        await phone.network.plan(.requestDelayed, at: 0)
        await phone.service.refuse(.rotateKey, .rotationFailed)
        await expectError(.rotationFailed) { try await sdk.rotateKey(appId: Phone.app) }
        phone.clock.advance(.seconds(16 * 60))
        try await sdk.rotateKey(appId: Phone.app)
        let late = try await phone.network.deliverDelayed()
        #expect(late.map(\.status) == [401])
        #expect(try phone.record().key?.thumbprint == (await phone.service.devices.first?.key.thumbprint))
        #expect(try await phone.signAndVerify(sdk).status == 200)
    }

    @Test("refused: the pending key is kept for 15 minutes of the service's time, then given up, then replaced")
    func refused() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        await phone.service.refuse(.rotateKey, .rotationFailed)
        let error = await expectError(.rotationFailed) { try await sdk.rotateKey(appId: Phone.app) }
        #expect(error?.isRetryable == true)
        #expect(error?.retryAfter ?? .zero > .seconds(14 * 60))
        let first = try #require(try pendingRotation(phone))
        #expect(first.isRefused)
        phone.clock.advance(.seconds(14 * 60))
        await expectError(.rotationFailed) { try await sdk.rotateKey(appId: Phone.app) }
        #expect(phone.keys.aliases.contains(first.alias.text))
        phone.clock.advance(.seconds(2 * 60))
        try await sdk.rotateKey(appId: Phone.app)
        #expect(try phone.record().key?.thumbprint != first.thumbprint)
        #expect(try await phone.signAndVerify(sdk).status == 200)
    }

    @Test("refused, but a copy had won: the status names the new key, and the rotation is finished")
    func refusedButDone() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        await phone.network.plan(.answerDropped, at: 0)
        let service = phone.service
        // The first copy is committed, its answer lost; the second copy is answered with ROTATION_FAILED.
        await service.refuseLater(.rotateKey, .rotationFailed)
        try await sdk.rotateKey(appId: Phone.app)
        #expect(await service.count(.status) >= 1)
        #expect(try phone.record().key?.thumbprint == (await service.devices.first?.key.thumbprint))
    }

    @Test("refused, and a delayed copy wins later: the next call finds the new key in force and finishes the rotation")
    func refusedThenDone() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        await phone.network.plan(.requestDelayed, at: 0)
        await phone.service.refuse(.rotateKey, .rotationFailed)
        await expectError(.rotationFailed) { try await sdk.rotateKey(appId: Phone.app) }
        let pending = try #require(try pendingRotation(phone))
        #expect(pending.isRefused)
        #expect(try phone.record().state == .registered)
        try await phone.network.deliverDelayed()
        let sent = await phone.service.count(.rotateKey)
        try await sdk.rotateKey(appId: Phone.app)
        #expect(await phone.service.count(.rotateKey) == sent)
        #expect(try phone.record().key?.thumbprint == pending.thumbprint)
        #expect(try phone.record().journal == nil && phone.record().state == .registered)
        #expect(try await phone.signAndVerify(sdk).status == 200)
    }

    @Test("the key lost before a copy was sent: KEY_INVALIDATED, keyInvalid, and nobody is asked")
    func lostBeforeSending() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        phone.keys.lose()
        await expectError(.keyInvalidated) { try await sdk.rotateKey(appId: Phone.app) }
        #expect(try phone.record().state == .keyInvalid)
        #expect(await phone.service.count(.status) == 0)
        #expect(await phone.service.count(.rotateKey) == 0)
    }

    @Test(
        "a pending key that is gone after its copy was sent: the service keeps the old key, and the pending one waits")
    func pendingKeyLost() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        await phone.network.setOffline(true)
        await expectError(.networkError) { try await sdk.rotateKey(appId: Phone.app) }
        await phone.network.setOffline(false)
        phone.keys.lose(.next(try AppID(Phone.app)))
        await expectError(.rotationFailed) { try await sdk.rotateKey(appId: Phone.app) }
        #expect(try phone.record().state == .registered)
        #expect(try await phone.signAndVerify(sdk).status == 200)
        phone.clock.advance(.seconds(16 * 60))
        try await sdk.rotateKey(appId: Phone.app)
        #expect(try await phone.signAndVerify(sdk).status == 200)
    }

    @Test("a thief who rotated first, within the overlap: ROTATION_FAILED, recovery reset, a security event")
    func thief() async throws {
        let (phone, sdk, id) = try await Phone.registered()
        await phone.service.steal(id)
        let error = await expectError(.rotationFailed) { try await sdk.rotateKey(appId: Phone.app) }
        #expect(error?.recovery == .reset && error?.isRetryable == false)
        #expect(phone.logger.entries.contains { $0.event == .foreignKey && $0.level == .error })
        #expect(try phone.record().state == .registered)
    }

    @Test("a thief who rotated first, after the overlap: the same")
    func thiefLater() async throws {
        let (phone, sdk, id) = try await Phone.registered()
        await phone.service.steal(id)
        phone.clock.advance(.seconds(61))
        let error = await expectError(.rotationFailed) { try await sdk.rotateKey(appId: Phone.app) }
        #expect(error?.recovery == .reset)
        #expect(phone.logger.entries.contains { $0.event == .foreignKey })
    }

    @Test("revoked meanwhile: DEVICE_REVOKED, nothing retried")
    func revoked() async throws {
        let (phone, sdk, id) = try await Phone.registered()
        await phone.service.edit(id) { $0.status = .revoked }
        let error = await expectError(.deviceRevoked) { try await sdk.rotateKey(appId: Phone.app) }
        #expect(error?.recovery == .reset)
        #expect(await phone.service.count(.rotateKey) == 1)
        #expect(try phone.record().state == .registered)
    }

    @Test("a key that is too old to rotate needs a reset")
    func keyTooOld() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        await phone.service.refuse(.rotateKey, .keyExpired)
        let error = await expectError(.server("KEY_EXPIRED")) { try await sdk.rotateKey(appId: Phone.app) }
        #expect(error?.recovery == .reset)
        #expect(await phone.service.count(.rotateKey) == 1)
    }

    @Test("concurrent calls are one rotation")
    func joins() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        let effective = try await withThrowingTaskGroup(of: UnixTime.self) { group in
            for _ in 0..<50 { group.addTask { try await sdk.rotateKey(appId: Phone.app).effectiveAt } }
            return try await group.reduce(into: Set<UnixTime>()) { $0.insert($1) }
        }
        #expect(effective.count == 1)
        #expect(await phone.service.count(.rotateKey) == 1)
    }

    @Test("two processes: the second sees the first one's rotation")
    func twoProcesses() async throws {
        let (phone, app, _) = try await Phone.registered()
        let widget = try phone.launch()
        async let first = app.rotateKey(appId: Phone.app)
        async let second = widget.rotateKey(appId: Phone.app)
        _ = try await [first, second]
        #expect(await phone.service.devices.count == 1)
        #expect(try await phone.signAndVerify(app).status == 200)
        #expect(try await phone.signAndVerify(widget).status == 200)
        #expect(phone.keys.aliases.count == 1)
    }

    @Test("the old key lost while the service already knows the new one: the rotation is finished")
    func oldKeyLost() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        for index in 0..<3 { await phone.network.plan(index == 0 ? .answerDropped : .requestDropped, at: index) }
        await expectError(.networkError) { try await sdk.rotateKey(appId: Phone.app) }
        phone.keys.lose(.primary(try AppID(Phone.app)))
        try await sdk.rotateKey(appId: Phone.app)
        #expect(try await phone.signAndVerify(sdk).status == 200)
    }

    @Test("the key lost during a rotation: registering, registered, keyInvalid")
    func keyLost() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        let ledger = try sdk.identity(Phone.app).context.ledger
        try await ledger.apply(.rotationStarted(.next(AppID(Phone.app)), .scheduled))
        phone.keys.lose()
        await expectError(.keyInvalidated) { try await sdk.signRequest(appId: Phone.app, method: "GET", path: "/") }
        #expect(try phone.record().state == .keyInvalid)
    }
}
