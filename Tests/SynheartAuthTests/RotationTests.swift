import AuthContract
import Testing

@testable import SynheartAuth

/// The rotation flow, and everything that can happen to a sent copy of the rotation request.
@Suite struct RotationTests {
    private func pendingRotation(_ phone: Phone) throws -> PendingRotation? {
        if case .rotation(let rotation) = try phone.record().journal { rotation } else { nil }
    }

    @Test("a rotation makes a new key, keeps the device id and deletes the old key")
    func rotates() async throws {
        let (phone, sdk, id) = try await Phone.registered()
        let old = try phone.record().key
        let rotation = try await sdk.rotateKey(appID: Phone.app)
        let record = try phone.record()
        #expect(rotation.deviceId == id && record.deviceID?.text == id)
        #expect(record.key != old && record.keyRotatedAt == rotation.effectiveAt && record.journal == nil)
        #expect(phone.keys.aliases == ["synheart_auth_com.example.app_next"])
        phone.clock.advance(.seconds(120))
        #expect(try await phone.signAndVerify(sdk).status == 200)
    }

    @Test("successive rotations use two aliases")
    func many() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        for _ in 0..<5 {
            try await sdk.rotateKey(appID: Phone.app)
            phone.clock.advance(.seconds(90))
            #expect(try await phone.signAndVerify(sdk).status == 200)
            #expect(phone.keys.aliases.count == 1)
        }
        #expect(await phone.service.devices.count == 1)
    }

    @Test("after a compromise the old key is invalid at once")
    func compromise() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        try await sdk.rotateKey(appID: Phone.app, reason: .compromise)
        let until = try #require(await phone.service.devices.first?.previousKey?.until)
        #expect(until * 1000 <= phone.clock.trueMilliseconds)
    }

    @Test("an unregistered device gets NOT_REGISTERED")
    func notRegistered() async throws {
        let phone = Phone()
        await expectError(.notRegistered) { try await phone.launch().rotateKey(appID: Phone.app) }
    }

    @Test("a rotation is tried three times, and the next call uses the same new key")
    func failure() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        await phone.network.setOffline(true)
        await expectError(.networkError) { try await sdk.rotateKey(appID: Phone.app) }
        #expect(phone.sleeper.retries == [.seconds(60), .seconds(120)])
        #expect(phone.logger.entries.last { $0.event == .rotationFailed }?.level == .warning)
        #expect(try phone.record().state == .registered)
        let pending = try #require(try pendingRotation(phone))
        await phone.network.setOffline(false)
        #expect(try await phone.signAndVerify(sdk).status == 200)
        try await phone.launch().rotateKey(appID: Phone.app)
        #expect(try phone.record().key?.thumbprint == pending.thumbprint)
        #expect(phone.keys.created == 2)
    }

    @Test("the device signs and is registered while a rotation is running")
    func signingGoesOn() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        let ledger = try sdk.identity(Phone.app).context.ledger
        let lock = try await ledger.lock(.operation)
        try await ledger.apply(.rotationStarted(.next(AppID(Phone.app)), .scheduled))
        #expect(try await sdk.state(appID: Phone.app) == .registering)
        #expect(try await sdk.isRegistered(appID: Phone.app))
        #expect(try await phone.signAndVerify(sdk).status == 200)
        #expect(try await sdk.registerDevice(appID: Phone.app).status == .alreadyRegistered)
        lock.release()
    }

    @Test("after a lost answer the same key is sent again and gets the first effective_at")
    func answerLost() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        await phone.network.plan(.answerDropped, at: 0)
        let rotation = try await sdk.rotateKey(appID: Phone.app)
        #expect(await phone.service.count(.rotateKey) >= 2)
        #expect(await phone.service.devices.first?.keyRotatedAt == rotation.effectiveAt)
        #expect(try await phone.signAndVerify(sdk).status == 200)
    }

    @Test("after a lost answer and the overlap the status names the new key")
    func answerLostLongAgo() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        for index in 0..<3 { await phone.network.plan(index == 0 ? .answerDropped : .requestDropped, at: index) }
        await expectError(.networkError) { try await sdk.rotateKey(appID: Phone.app) }
        phone.clock.advance(.seconds(86_400))
        let next = try phone.launch()
        try await next.rotateKey(appID: Phone.app)
        #expect(try phone.record().key?.thumbprint == (await phone.service.devices.first?.key.thumbprint))
        #expect(try await phone.signAndVerify(next).status == 200)
        #expect(phone.keys.created == 2)
    }

    @Test("a demand to rotate the new key is known after the status has settled the rotation")
    func demandAfterLostAnswer() async throws {
        let (phone, sdk, id) = try await Phone.registered()
        for index in 0..<3 { await phone.network.plan(index == 0 ? .answerDropped : .requestDropped, at: index) }
        await expectError(.networkError) { try await sdk.rotateKey(appID: Phone.app) }
        phone.clock.advance(.seconds(86_400))
        await phone.service.edit(id) {
            $0.mustRotateBy = UnixTime(phone.clock.trueMilliseconds / 1000 + 3600)
            $0.mustRotateReason = .compromise
        }
        let next = try phone.launch()
        try await next.rotateKey(appID: Phone.app)
        #expect(try phone.record().rotationDemand?.reason == .compromise)
        try await next.maintain(appID: Phone.app)
        #expect(try phone.record().rotationDemand == nil)
        #expect(phone.keys.created == 3)
        #expect(try await phone.signAndVerify(next).status == 200)
    }

    @Test("a delayed copy that arrives after the rotation changes nothing")
    func delayedCopy() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        await phone.network.plan(.requestDelayed, at: 0)
        try await sdk.rotateKey(appID: Phone.app)
        try await phone.network.deliverDelayed()
        #expect(try await phone.signAndVerify(sdk).status == 200)
        #expect(try phone.record().key?.thumbprint == (await phone.service.devices.first?.key.thumbprint))
    }

    @Test("the device signs after a delayed copy takes effect, because it kept the pending key")
    func delayedCopyAfterGivingUp() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        await phone.network.plan(.requestDelayed, at: 0)
        await phone.network.plan(.requestDropped, at: 1)
        await phone.network.plan(.requestDropped, at: 2)
        await expectError(.networkError) { try await sdk.rotateKey(appID: Phone.app) }
        try await phone.network.deliverDelayed()
        phone.clock.advance(.seconds(90))
        try await phone.launch().rotateKey(appID: Phone.app)
        #expect(try await phone.signAndVerify(phone.launch()).status == 200)
    }

    @Test("a delayed copy is refused once the pending key was given up, and the device signs")
    func delayedCopyAfterAbandoning() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        await phone.network.plan(.requestDelayed, at: 0)
        await phone.service.refuse(.rotateKey, .rotationFailed)
        await expectError(.rotationFailed) { try await sdk.rotateKey(appID: Phone.app) }
        phone.clock.advance(.seconds(16 * 60))
        try await sdk.rotateKey(appID: Phone.app)
        let late = try await phone.network.deliverDelayed()
        #expect(late.map(\.status) == [401])
        #expect(try phone.record().key?.thumbprint == (await phone.service.devices.first?.key.thumbprint))
        #expect(try await phone.signAndVerify(sdk).status == 200)
    }

    @Test("a refused pending key is kept for 15 minutes of the service's time, then replaced")
    func refused() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        await phone.service.refuse(.rotateKey, .rotationFailed)
        let error = await expectError(.rotationFailed) { try await sdk.rotateKey(appID: Phone.app) }
        #expect(error?.isRetryable == true)
        #expect(error?.retryAfter ?? .zero > .seconds(14 * 60))
        let first = try #require(try pendingRotation(phone))
        #expect(first.isRefused)
        phone.clock.advance(.seconds(14 * 60))
        await expectError(.rotationFailed) { try await sdk.rotateKey(appID: Phone.app) }
        #expect(phone.keys.aliases.contains(first.alias.text))
        phone.clock.advance(.seconds(2 * 60))
        try await sdk.rotateKey(appID: Phone.app)
        #expect(try phone.record().key?.thumbprint != first.thumbprint)
        #expect(try await phone.signAndVerify(sdk).status == 200)
    }

    @Test("a refused rotation of which a copy took effect is finished")
    func refusedButDone() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        await phone.network.plan(.answerDropped, at: 0)
        let service = phone.service
        // The first copy is committed, and its answer is lost. The second copy is answered with ROTATION_FAILED.
        await service.refuseLater(.rotateKey, .rotationFailed)
        try await sdk.rotateKey(appID: Phone.app)
        #expect(await service.count(.status) >= 1)
        #expect(try phone.record().key?.thumbprint == (await service.devices.first?.key.thumbprint))
    }

    @Test("a refused rotation of which a delayed copy takes effect is finished by the next call")
    func refusedThenDone() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        await phone.network.plan(.requestDelayed, at: 0)
        await phone.service.refuse(.rotateKey, .rotationFailed)
        await expectError(.rotationFailed) { try await sdk.rotateKey(appID: Phone.app) }
        let pending = try #require(try pendingRotation(phone))
        #expect(pending.isRefused)
        #expect(try phone.record().state == .registered)
        try await phone.network.deliverDelayed()
        let sent = await phone.service.count(.rotateKey)
        try await sdk.rotateKey(appID: Phone.app)
        #expect(await phone.service.count(.rotateKey) == sent)
        #expect(try phone.record().key?.thumbprint == pending.thumbprint)
        #expect(try phone.record().journal == nil && phone.record().state == .registered)
        #expect(try await phone.signAndVerify(sdk).status == 200)
    }

    @Test("a key lost before a copy was sent is KEY_INVALIDATED, without network")
    func lostBeforeSending() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        phone.keys.lose()
        await expectError(.keyInvalidated) { try await sdk.rotateKey(appID: Phone.app) }
        #expect(try phone.record().state == .keyInvalid)
        #expect(await phone.service.count(.status) == 0)
        #expect(await phone.service.count(.rotateKey) == 0)
    }

    @Test(
        "a rotation whose pending key is gone fails while the service has the old key")
    func pendingKeyLost() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        await phone.network.setOffline(true)
        await expectError(.networkError) { try await sdk.rotateKey(appID: Phone.app) }
        await phone.network.setOffline(false)
        phone.keys.lose(.next(try AppID(Phone.app)))
        await expectError(.rotationFailed) { try await sdk.rotateKey(appID: Phone.app) }
        #expect(try phone.record().state == .registered)
        #expect(try await phone.signAndVerify(sdk).status == 200)
        phone.clock.advance(.seconds(16 * 60))
        try await sdk.rotateKey(appID: Phone.app)
        #expect(try await phone.signAndVerify(sdk).status == 200)
    }

    @Test("a thief's rotation within the overlap is ROTATION_FAILED with recovery reset, and a security event")
    func thief() async throws {
        let (phone, sdk, id) = try await Phone.registered()
        await phone.service.steal(id)
        let error = await expectError(.rotationFailed) { try await sdk.rotateKey(appID: Phone.app) }
        #expect(error?.recovery == .reset && error?.isRetryable == false)
        #expect(phone.logger.entries.contains { $0.event == .foreignKey && $0.level == .error })
        #expect(try phone.record().state == .registered)
    }

    @Test("a thief's rotation after the overlap is ROTATION_FAILED with recovery reset")
    func thiefLater() async throws {
        let (phone, sdk, id) = try await Phone.registered()
        await phone.service.steal(id)
        phone.clock.advance(.seconds(61))
        let error = await expectError(.rotationFailed) { try await sdk.rotateKey(appID: Phone.app) }
        #expect(error?.recovery == .reset)
        #expect(phone.logger.entries.contains { $0.event == .foreignKey })
    }

    @Test("a revoked device gets DEVICE_REVOKED without a retry")
    func revoked() async throws {
        let (phone, sdk, id) = try await Phone.registered()
        await phone.service.edit(id) { $0.status = .revoked }
        let error = await expectError(.deviceRevoked) { try await sdk.rotateKey(appID: Phone.app) }
        #expect(error?.recovery == .reset)
        #expect(await phone.service.count(.rotateKey) == 1)
        #expect(try phone.record().state == .registered)
    }

    @Test("a key that is too old to rotate needs a reset")
    func keyTooOld() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        await phone.service.refuse(.rotateKey, .keyExpired)
        let error = await expectError(.server("KEY_EXPIRED")) { try await sdk.rotateKey(appID: Phone.app) }
        #expect(error?.recovery == .reset)
        #expect(await phone.service.count(.rotateKey) == 1)
    }

    @Test("concurrent calls are one rotation")
    func joins() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        let effective = try await withThrowingTaskGroup(of: UnixTime.self) { group in
            for _ in 0..<50 { group.addTask { try await sdk.rotateKey(appID: Phone.app).effectiveAt } }
            return try await group.reduce(into: Set<UnixTime>()) { $0.insert($1) }
        }
        #expect(effective.count == 1)
        #expect(await phone.service.count(.rotateKey) == 1)
    }

    @Test("a second process takes over the first one's rotation")
    func twoProcesses() async throws {
        let (phone, app, _) = try await Phone.registered()
        let widget = try phone.launch()
        async let first = app.rotateKey(appID: Phone.app)
        async let second = widget.rotateKey(appID: Phone.app)
        _ = try await [first, second]
        #expect(await phone.service.devices.count == 1)
        #expect(try await phone.signAndVerify(app).status == 200)
        #expect(try await phone.signAndVerify(widget).status == 200)
        #expect(phone.keys.aliases.count == 1)
    }

    @Test("a rotation is finished if the old key is lost and the service has the new one")
    func oldKeyLost() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        for index in 0..<3 { await phone.network.plan(index == 0 ? .answerDropped : .requestDropped, at: index) }
        await expectError(.networkError) { try await sdk.rotateKey(appID: Phone.app) }
        phone.keys.lose(.primary(try AppID(Phone.app)))
        try await sdk.rotateKey(appID: Phone.app)
        #expect(try await phone.signAndVerify(sdk).status == 200)
    }

    @Test("a key lost during a rotation passes through registered to keyInvalid")
    func keyLost() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        let ledger = try sdk.identity(Phone.app).context.ledger
        try await ledger.apply(.rotationStarted(.next(AppID(Phone.app)), .scheduled))
        phone.keys.lose()
        await expectError(.keyInvalidated) { try await sdk.signRequest(appID: Phone.app, method: "GET", path: "/") }
        #expect(try phone.record().state == .keyInvalid)
    }
}
