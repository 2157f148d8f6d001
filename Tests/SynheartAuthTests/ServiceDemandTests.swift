import AuthContract
import Bytes
import Foundation
import Testing

@testable import SynheartAuth

/// The demands of an app's record besides a signature: assertions, rotations that attest again, a higher scheme.
@Suite struct ServiceDemandTests {
    private func registered() async throws -> (Phone, SynheartAuth, String) {
        let phone = Phone()
        let sdk = try phone.launch { $0.origins = SendTests.origins }
        return (phone, sdk, try await sdk.registerDevice(appID: Phone.app).deviceId)
    }

    private func request(_ path: String) -> TransportRequest {
        TransportRequest(method: "GET", url: SendTests.api + path, headers: HeaderFields(), body: [])
    }

    private func rotations(_ phone: Phone) async throws -> [RotateKeyRequest] {
        try await phone.service.requests.filter { $0.url.hasSuffix(Route.rotateKey.rawValue) }
            .map { try RotateKeyRequest(parsing: $0.body) }
    }

    /// The service demands a rotation for a compromise within an hour, and the phone learns it.
    private func demandCompromise(_ phone: Phone, _ sdk: SynheartAuth, _ id: String) async throws {
        await phone.service.edit(id) {
            $0.mustRotateBy = UnixTime(TestClock.start / 1000 + 3600)
            $0.mustRotateReason = .compromise
        }
        _ = try await sdk.deviceToken(appID: Phone.app)
    }

    /// Leaves an unfinished rotation whose request could not be sent.
    private func leaveRotation(_ phone: Phone, _ sdk: SynheartAuth) async {
        await phone.network.setOffline(true)
        await expectError(.networkError) { try await sdk.rotateKey(appID: Phone.app) }
        await phone.network.setOffline(false)
    }

    // MARK: Assertions

    @Test("the SDK's own calls carry an assertion where the service demands one")
    func ownCalls() async throws {
        let (phone, sdk, id) = try await registered()
        await phone.service.setPolicy { $0.assertionPrefixes = ["/auth/v1"] }
        _ = try await sdk.deviceToken(appID: Phone.app)
        #expect(await phone.service.count(.token) == 2)
        _ = try await sdk.deviceToken(appID: Phone.app, audience: "other")
        #expect(await phone.service.count(.token) == 3, "the demand is remembered")
        try await sdk.rotateKey(appID: Phone.app)
        try await sdk.resetDeviceIdentity(appID: Phone.app, reason: .userRequested)
        #expect(await phone.service.devices.first { $0.id.text == id }?.status == .deregistered)
    }

    @Test("protected paths cost one request each", arguments: [true, false])
    func remembered(namesPrefix: Bool) async throws {
        let (phone, sdk, _) = try await registered()
        await phone.service.setPolicy {
            $0.assertionPrefixes = ["/v1/pay"]
            $0.namesPrefix = namesPrefix
        }
        func requests(_ path: String) async throws -> Int {
            let before = await phone.service.requests.count
            #expect(try await sdk.send(request(path), appID: Phone.app).status == 200)
            return await phone.service.requests.count - before
        }
        #expect(try await requests("/v1/pay/a") == 2)
        #expect(try await requests("/v1/pay/a") == 1)
        #expect(try await requests("/v1/pay/b") == (namesPrefix ? 1 : 2))
        #expect(try await requests("/v1/payments") == 1)
        #expect(await phone.service.requests.last?.headers.contains(HeaderName.assertion) == false)
    }

    @Test("a request that asserts from the start costs one request")
    func asserting() async throws {
        let (phone, sdk, _) = try await registered()
        await phone.service.setPolicy { $0.assertionPrefixes = ["/v1/pay"] }
        let before = await phone.service.requests.count
        #expect(try await sdk.send(request("/v1/pay"), appID: Phone.app, asserting: true).status == 200)
        #expect(await phone.service.requests.count - before == 1)
        let signed = try await sdk.sign(
            appID: Phone.app, method: "GET", url: SendTests.api + "/v1/pay", asserting: true)
        #expect(signed.fields.contains { $0.name == HeaderName.assertion })
    }

    // MARK: Rotations that attest again

    @Test("a rotation attests again by an assertion")
    func reattests() async throws {
        let (phone, sdk, _) = try await registered()
        await phone.service.setPolicy { $0.reattests = true }
        try await sdk.rotateKey(appID: Phone.app)
        let rotations = try await rotations(phone)
        #expect(rotations.map { $0.assertion != nil } == [false, true])
        #expect(Set(rotations.map(\.newPublicKeyText)).count == 1)
        #expect(try await phone.signAndVerify(sdk).status == 200)
    }

    @Test("a rotation's assertion waits for the requests that assert already: their counters must arrive in order")
    func assertionsInOrder() async throws {
        let phone = Phone()
        let transport = CallDeadlineTests.HeldTransport(phone.network, holding: "/v1/pay")
        let sdk = try phone.launch {
            $0.origins = SendTests.origins
            $0.transport = transport
        }
        try await sdk.registerDevice(appID: Phone.app)
        await phone.service.setPolicy { $0.reattests = true }
        let send = Task { try await sdk.send(request("/v1/pay"), appID: Phone.app, asserting: true) }
        try await eventually { await transport.waiting == 1 }
        let rotation = Task { try await sdk.rotateKey(appID: Phone.app) }
        // One challenge is for the registration, the other for the rotation.
        try await eventually { await phone.service.count(.challenge) == 2 }
        // A copy that wrongly does not wait would be sent within milliseconds.
        for _ in 0..<50 where await phone.service.count(.rotateKey) == 1 { try await Task.sleep(for: .milliseconds(2)) }
        #expect(await phone.service.count(.rotateKey) == 1, "the copy with evidence left before its turn")
        await transport.letGo()
        #expect(try await send.value.status == 200)
        _ = try await rotation.value
        #expect(await phone.service.count(.rotateKey) == 2)
    }

    @Test("a rotation waits 30 seconds for a long upload that asserts, and is tried again without it")
    func longUpload() async throws {
        let phone = Phone()
        let transport = CallDeadlineTests.HeldTransport(phone.network, holding: "/v1/upload")
        let sdk = try phone.launch {
            $0.origins = SendTests.origins
            $0.transport = transport
        }
        try await sdk.registerDevice(appID: Phone.app)
        await phone.service.setPolicy { $0.reattests = true }
        let upload = TransportRequest(
            method: "PUT", url: "\(SendTests.api)/v1/upload", headers: HeaderFields(), body: [],
            deadline: .seconds(3600))
        let send = Task { try await sdk.send(upload, appID: Phone.app, asserting: true) }
        try await eventually { await transport.waiting == 1 }
        let rotation = Task { try await sdk.rotateKey(appID: Phone.app) }
        // One challenge is for the registration, the other for the rotation.
        try await eventually { await phone.service.count(.challenge) == 2 }
        phone.sleeper.expire(.seconds(30))
        // The next attempt has its own challenge.
        try await eventually { await phone.service.count(.challenge) == 3 }
        #expect(phone.sleeper.retries.contains { $0 >= .seconds(60) })
        await transport.letGo()
        #expect(try await send.value.status == 200)
        _ = try await rotation.value
        #expect(try await rotations(phone).count { $0.assertion != nil } == 1, "the first attempt's copy left later")
    }

    @Test("a body that waited too long for its turn never runs, and the line goes on")
    func turnsGivenUp() async throws {
        let line = SerialTaskQueue()
        let sleeper = TestSleeper(TestClock())
        let (held, ran) = (OnceValue<Void>(), Locked<[Int]>([]))
        let first = Task {
            try await line.run {
                ran.withLock { $0.append(1) }
                await held.value
            }
        }
        try await eventually { ran.withLock { $0 } == [1] }
        let impatient = Task {
            try await line.run(.forAssertions(.seconds(30), sleeper)) { ran.withLock { $0.append(2) } }
        }
        sleeper.expire(.seconds(30))
        await expectError(.networkError) { try await impatient.value }
        let patient = Task {
            try await line.run(.forAssertions(.seconds(30), sleeper)) { ran.withLock { $0.append(3) } }
        }
        held.give(())
        try await first.value
        try await patient.value
        #expect(ran.withLock { $0 } == [1, 3])
    }

    @Test("a lost App Attest key is replaced by a rotation", arguments: ["rotate", "send", "token"])
    func rebinds(operation: String) async throws {
        let (phone, sdk, id) = try await registered()
        await phone.service.setPolicy {
            $0.rebinds = true
            $0.reattests = operation == "rotate"
            $0.assertionPrefixes = ["/v1/pay", Route.token.rawValue]
        }
        let old = try #require(try phone.record().attestationKey)
        phone.attestation.loseHandles()
        switch operation {
        case "rotate": try await sdk.rotateKey(appID: Phone.app)
        case "send": #expect(try await sdk.send(request("/v1/pay"), appID: Phone.app).status == 200)
        default: _ = try await sdk.deviceToken(appID: Phone.app)
        }
        let new = try #require(try phone.record().attestationKey)
        #expect(new.id != old.id && new.isUsed)
        #expect(await phone.service.devices.first?.handle == new.id)
        #expect(try await sdk.send(request("/v1/pay"), appID: Phone.app).status == 200)
        #expect(try await sdk.getDeviceId(appID: Phone.app) == id)
    }

    @Test("a lost App Attest key that cannot be replaced calls for a reset, which works")
    func cannotRebind() async throws {
        let (phone, sdk, id) = try await registered()
        await phone.service.setPolicy { $0.assertionPrefixes = ["/v1/pay"] }
        phone.attestation.loseHandles()
        for _ in 0..<2 {
            let error = await expectError(.attestationFailed) {
                try await sdk.send(request("/v1/pay"), appID: Phone.app)
            }
            #expect(error?.recovery == .reset)
        }
        #expect(try await rotations(phone).count == 1, "a refused replacement is not tried again")
        #expect(try await phone.signAndVerify(sdk).status == 200, "other paths are not affected")
        try await sdk.rotateKey(appID: Phone.app)
        try await sdk.resetDeviceIdentity(appID: Phone.app, reason: .keyLost)
        #expect(try await sdk.registerDevice(appID: Phone.app).deviceId != id)
        #expect(try await sdk.send(request("/v1/pay"), appID: Phone.app).status == 200)
    }

    @Test("after a compromise no new App Attest key is offered")
    func noRebindAfterCompromise() async throws {
        let (phone, sdk, _) = try await registered()
        await phone.service.setPolicy { ($0.reattests, $0.rebinds) = (true, true) }
        phone.attestation.loseHandles()
        let error = await expectError(.attestationFailed) {
            try await sdk.rotateKey(appID: Phone.app, reason: .compromise)
        }
        #expect(error?.recovery == .reset)
        #expect(try await rotations(phone).allSatisfy { $0.proof == nil })
    }

    @Test(
        "a rotation for a compromise takes the place of one that replaces an App Attest key, and of its callers each gets its own",
        arguments: [true, false])
    func compromiseDuringRebind(arrivesFirst: Bool) async throws {
        let (phone, _, _) = try await registered()
        let sleeper = HeldSleeper()
        let sdk = try phone.launch { ($0.sleeper, $0.origins) = (sleeper, SendTests.origins) }
        await phone.service.setPolicy { ($0.rebinds, $0.assertionPrefixes) = (true, ["/v1/pay"]) }
        phone.attestation.loseHandles()
        let (compromise, sending, scheduled):
            (Task<KeyRotation, any Error>, Task<Int, any Error>, Task<KeyRotation, any Error>)
        let send = { Task { try await sdk.send(request("/v1/pay"), appID: Phone.app).status } }
        let rotate = { (reason: RotationReason) in Task { try await sdk.rotateKey(appID: Phone.app, reason: reason) } }
        if arrivesFirst {
            await phone.service.refuse(.rotateKey, .serviceUnavailable)
            compromise = rotate(.compromise)
            try await eventually { sleeper.waiting == 1 }
            (sending, scheduled) = (send(), rotate(.scheduled))
            try await eventually { await phone.service.requests.contains { $0.url.hasSuffix("/v1/pay") } }
            sleeper.letGo()
        } else {
            await phone.service.refuse(.challenge, .serviceUnavailable)
            sending = send()
            try await eventually { sleeper.waiting == 1 }
            scheduled = rotate(.scheduled)
            compromise = rotate(.compromise)
        }
        let rotation = try await compromise.value
        #expect(try await sending.value == 200)
        _ = try await scheduled.value
        let sent = try await rotations(phone)
        #expect(sent.filter { $0.reason == .compromise }.allSatisfy { $0.proof == nil })
        #expect(sent.last?.reason == .scheduled && sent.last?.proof != nil)
        #expect(try phone.record().attestationKey?.id == (await phone.service.devices.first?.handle))
        #expect(try phone.record().keyRotatedAt.map { $0 >= rotation.effectiveAt } == true)
    }

    @Test func `a rotation for a compromise that was left over ends before an App Attest key is replaced`() async throws
    {
        let (phone, sdk, id) = try await registered()
        await phone.network.setOffline(true)
        await expectError(.networkError) { try await sdk.rotateKey(appID: Phone.app, reason: .compromise) }
        await phone.network.setOffline(false)
        await phone.service.setPolicy { ($0.rebinds, $0.assertionPrefixes) = (true, ["/v1/pay"]) }
        phone.attestation.loseHandles()
        #expect(try await sdk.send(request("/v1/pay"), appID: Phone.app).status == 200)
        #expect(try await rotations(phone).map(\.reason) == [.compromise, .scheduled])
        #expect(try await sdk.getDeviceId(appID: Phone.app) == id)
    }

    @Test func `a demanded rotation for a compromise comes before the replacement of an App Attest key`() async throws {
        let (phone, _, id) = try await registered()
        let sdk = try phone.launch { ($0.rotatesAutomatically, $0.origins) = (false, SendTests.origins) }
        try await demandCompromise(phone, sdk, id)
        await phone.service.setPolicy { ($0.rebinds, $0.assertionPrefixes) = (true, ["/v1/pay"]) }
        phone.attestation.loseHandles()
        #expect(try await sdk.send(request("/v1/pay"), appID: Phone.app).status == 200)
        #expect(try await rotations(phone).map(\.reason) == [.compromise, .scheduled])
    }

    @Test func `the app's rotation for a compromise does not end with the service's demand`() async throws {
        let (phone, _, id) = try await registered()
        let sleeper = HeldSleeper()
        let sdk = try phone.launch { ($0.rotatesAutomatically, $0.sleeper) = (false, sleeper) }
        try await demandCompromise(phone, sdk, id)
        await phone.service.refuse(.rotateKey, .serviceUnavailable)
        let demanded = Task { try await sdk.maintain(appID: Phone.app) }
        try await eventually { sleeper.waiting == 1 }
        let compromise = Task { try await sdk.rotateKey(appID: Phone.app, reason: .compromise) }
        for _ in 0..<100 { await Task.yield() }
        await phone.service.edit(id) { ($0.mustRotateBy, $0.mustRotateReason) = (nil, .scheduled) }
        _ = try await sdk.deviceToken(appID: Phone.app, audience: "other")
        sleeper.letGo()
        try await demanded.value
        _ = try await compromise.value
        #expect(try await rotations(phone).last?.reason == .compromise)
    }

    @Test func `a lost App Attest key is replaced once the service demands no rotation for a compromise any more`()
        async throws
    {
        let (phone, _, id) = try await registered()
        let sdk = try phone.launch { ($0.rotatesAutomatically, $0.origins) = (false, SendTests.origins) }
        try await demandCompromise(phone, sdk, id)
        await phone.service.setPolicy {
            ($0.rebinds, $0.reattests, $0.assertionPrefixes) = (true, true, ["/v1/pay"])
        }
        phone.attestation.loseHandles()
        await expectError(.attestationFailed) { try await sdk.send(request("/v1/pay"), appID: Phone.app) }
        #expect(try phone.record().rotationDemand?.reason == .compromise)
        await phone.service.edit(id) { ($0.mustRotateBy, $0.mustRotateReason) = (nil, .scheduled) }
        #expect(try await sdk.send(request("/v1/pay"), appID: Phone.app).status == 200)
        let sent = try await rotations(phone)
        #expect(sent.count { $0.proof != nil } == 1 && sent.last?.reason == .scheduled)
        #expect(try await sdk.getDeviceId(appID: Phone.app) == id)
        #expect(try phone.record().rotationDemand == nil)
    }

    @Test func `a reset ends the calls that wait for a rotation, and none rotates the next identity`() async throws {
        let (phone, _, _) = try await registered()
        let sleeper = HeldSleeper()
        let sdk = try phone.launch { ($0.sleeper, $0.origins) = (sleeper, SendTests.origins) }
        await phone.service.setPolicy { ($0.rebinds, $0.assertionPrefixes) = (true, ["/v1/pay"]) }
        phone.attestation.loseHandles()
        await phone.service.refuse(.rotateKey, .serviceUnavailable)
        let compromise = Task { try await sdk.rotateKey(appID: Phone.app, reason: .compromise) }
        try await eventually { sleeper.waiting == 1 }
        let sending = Task { try await sdk.send(request("/v1/pay"), appID: Phone.app).status }
        try await eventually { await phone.service.requests.contains { $0.url.hasSuffix("/v1/pay") } }
        for _ in 0..<100 { await Task.yield() }
        try await sdk.resetDeviceIdentity(appID: Phone.app, reason: .userRequested)
        await expectError(nil) { try await sending.value }
        await expectError(.networkError) { try await compromise.value }
        try await sdk.registerDevice(appID: Phone.app)
        #expect(try await rotations(phone).map(\.reason) == [.compromise])
    }

    @Test func `a refused replacement of an App Attest key fails no rotation that joined it`() async throws {
        let (phone, _, _) = try await registered()
        let sleeper = HeldSleeper()
        let sdk = try phone.launch { ($0.sleeper, $0.origins) = (sleeper, SendTests.origins) }
        await phone.service.setPolicy { $0.assertionPrefixes = ["/v1/pay"] }
        phone.attestation.loseHandles()
        await phone.service.refuse(.challenge, .serviceUnavailable)
        let sending = Task { try await sdk.send(request("/v1/pay"), appID: Phone.app).status }
        try await eventually { sleeper.waiting == 1 }
        let scheduled = Task { try await sdk.rotateKey(appID: Phone.app) }
        for _ in 0..<100 { await Task.yield() }
        sleeper.letGo()
        let error = await expectError(.attestationFailed) { try await sending.value }
        #expect(error?.recovery == .reset)
        _ = try await scheduled.value
        #expect(try await phone.signAndVerify(sdk).status == 200)
    }

    @Test("a lost answer to a replacement is settled by the status, and the new key asserts")
    func lostRebind() async throws {
        let (phone, sdk, _) = try await registered()
        await phone.service.setPolicy { ($0.reattests, $0.rebinds) = (true, true) }
        phone.attestation.loseHandles()
        // Message 0 is the refused copy, message 1 the challenge, and message 2 the copy whose answer is lost.
        await phone.network.plan(.answerDropped, at: 2)
        try await sdk.rotateKey(appID: Phone.app)
        #expect(try await rotations(phone).count == 2)
        let new = try #require(try phone.record().attestationKey)
        #expect(await phone.service.devices.first?.handle == new.id)
    }

    @Test(
        "a lost answer to a replacement is settled by a status that asserts with the new key, or by the accepted signature",
        arguments: [nil, AttestationError.Code.refused, .handleInvalid, .unavailable])
    func lostRebindWithAssertions(failure: AttestationError.Code?) async throws {
        let (phone, sdk, _) = try await registered()
        await phone.service.setPolicy { ($0.rebinds, $0.assertionPrefixes) = (true, ["/auth/v1"]) }
        phone.attestation.loseHandles()
        // Message 0 is the refused copy, message 1 the challenge, message 2 the copy whose answer is lost. Further attempts follow.
        for index in 2...4 { await phone.network.plan(index == 2 ? .answerDropped : .requestDropped, at: index) }
        await expectError(.networkError) { try await sdk.rotateKey(appID: Phone.app) }
        phone.clock.advance(.seconds(3600))
        if let failure { phone.attestation.fail([AttestationError.Code](repeating: failure, count: 10)) }
        try await phone.launch().rotateKey(appID: Phone.app)
        phone.attestation.fail()
        let record = try phone.record()
        let device = try #require(await phone.service.devices.first)
        #expect(record.journal == nil && record.key?.thumbprint == device.key.thumbprint)
        #expect(record.attestationKey?.id == device.handle && record.attestationKey?.isUsed == true)
        _ = try await sdk.deviceToken(appID: Phone.app)
    }

    @Test(
        "a rebind whose request never arrived is abandoned after the longest overlap, and the next rotation binds another key"
    )
    func droppedRebindWithAssertions() async throws {
        let (phone, sdk, _) = try await registered()
        await phone.service.setPolicy { ($0.rebinds, $0.assertionPrefixes) = (true, ["/auth/v1"]) }
        phone.attestation.loseHandles()
        await phone.network.plan(.requestDropped, at: 2)
        // The service refuses the status request, because the assertion is by the new App Attest key, which the service does not
        // know. So the SDK waits for the longest overlap, one hour.
        let error = await expectError(.rotationFailed) { try await sdk.rotateKey(appID: Phone.app) }
        #expect(error?.recovery == .retry && error?.retryAfter ?? .zero > .seconds(50 * 60))
        phone.clock.advance(.seconds(76 * 60))
        try await sdk.rotateKey(appID: Phone.app)
        #expect(try phone.record().attestationKey?.id == (await phone.service.devices.first?.handle))
        _ = try await sdk.deviceToken(appID: Phone.app)
    }

    @Test("where no key can assert, the key whose signature the service accepts is current", arguments: [true, false])
    func lostRotationWithoutAssertions(isCommitted: Bool) async throws {
        let (phone, sdk, _) = try await registered()
        for index in 0..<3 {
            await phone.network.plan(isCommitted && index == 0 ? .answerDropped : .requestDropped, at: index)
        }
        await expectError(.networkError) { try await sdk.rotateKey(appID: Phone.app) }
        await phone.service.setPolicy { ($0.rebinds, $0.assertionPrefixes) = (true, ["/auth/v1"]) }
        phone.attestation.loseHandles()
        if isCommitted {
            phone.clock.advance(.seconds(3600))
        } else {
            // The service accepts the old key's signature, but it would also do so during the overlap after a completed rotation. The
            // overlap lasts an hour at most.
            for minutes in [0, 16, 58] {
                phone.clock.advance(.seconds(minutes * 60))
                let error = await expectError(.rotationFailed) { try await sdk.rotateKey(appID: Phone.app) }
                #expect(error?.recovery == .retry)
            }
            phone.clock.advance(.seconds(2 * 60))
        }
        try await sdk.rotateKey(appID: Phone.app)
        #expect(try phone.record().key?.thumbprint == (await phone.service.devices.first?.key.thumbprint))
        _ = try await sdk.deviceToken(appID: Phone.app)
        #expect(try phone.record().attestationKey?.id == (await phone.service.devices.first?.handle))
    }

    @Test("a refused rotation without an open copy is given up, and another one begins")
    func refusedWithoutCopies() async throws {
        let (phone, sdk, _) = try await registered()
        await leaveRotation(phone, sdk)
        var record = try phone.record()
        guard case .rotation(var pending) = record.journal else {
            Issue.record("no rotation is left over")
            return
        }
        (pending.isRefused, pending.lastCopy) = (true, nil)
        record.journal = .rotation(pending)
        phone.storage.put(record.bytes, RecordName(record.appID))
        let next = try phone.launch()
        try await next.rotateKey(appID: Phone.app)
        #expect(try phone.record().journal == nil)
        #expect(try await phone.signAndVerify(next).status == 200)
    }

    // MARK: Reasons

    @Test("a demand for a compromise is answered by a rotation for a compromise")
    func demandedCompromise() async throws {
        let (phone, sdk, id) = try await registered()
        await phone.service.edit(id) {
            $0.mustRotateBy = UnixTime(TestClock.start / 1000 + 3600)
            $0.mustRotateReason = .compromise
        }
        // The SDK accepts the demand only in an answer of the auth service, such as this one.
        _ = try await sdk.deviceToken(appID: Phone.app)
        #expect(try phone.record().rotationDemand?.reason == .compromise)
        let next = try phone.launch()
        try await next.maintain(appID: Phone.app)
        #expect(try await rotations(phone).map(\.reason) == [.compromise])
        #expect(try phone.record().rotationDemand == nil)
    }

    @Test("a rotation for a compromise does not join or await a scheduled one, whose caller joins it")
    func compromiseIsNotDowngraded() async throws {
        let (phone, _, _) = try await registered()
        let sleeper = HeldSleeper()
        let sdk = try phone.launch { $0.sleeper = sleeper }
        await phone.service.refuse(.rotateKey, .serviceUnavailable)
        let scheduled = Task { try await sdk.rotateKey(appID: Phone.app) }
        try await eventually { sleeper.waiting == 1 }
        let rotation = try await sdk.rotateKey(appID: Phone.app, reason: .compromise)
        #expect(try await scheduled.value == rotation)
        #expect(try await rotations(phone).map(\.reason) == [.scheduled, .compromise])
        #expect(await phone.service.devices.first?.previousKey?.until == phone.clock.trueMilliseconds / 1000)
    }

    @Test("a rotation left over as scheduled goes on as one for a compromise")
    func strongerReasonInTheJournal() async throws {
        let (phone, sdk, _) = try await registered()
        await leaveRotation(phone, sdk)
        let next = try phone.launch()
        try await next.rotateKey(appID: Phone.app, reason: .compromise)
        #expect(try await rotations(phone).map(\.reason) == [.compromise])
        #expect(try await phone.signAndVerify(next).status == 200)
    }

    // MARK: Scheme floor

    @Test("after a scheme 2 request the device signs under scheme 2, also if the app is configured for scheme 1 again")
    func schemeFloor() async throws {
        let (phone, _, _) = try await registered()
        let sdk = try phone.launch {
            $0.origins = SendTests.origins
            $0.scheme = .two
        }
        _ = try await sdk.sign(appID: Phone.app, method: "GET", url: SendTests.api + "/v1/a")
        #expect(try phone.record().schemeFloor == .two)
        let next = try phone.launch { $0.origins = SendTests.origins }
        for scheme in [nil, SignatureScheme.one, .two] {
            let error = await expectError(.signingFailed) {
                try await next.signRequest(appID: Phone.app, method: "GET", path: "/v1/a", scheme: scheme).fields.count
            }
            #expect(error?.message.contains("scheme 2") == true)
        }
        let signed = try await next.sign(appID: Phone.app, method: "GET", url: SendTests.api + "/v1/a")
        #expect(signed.fields.contains { $0.name == HeaderName.signatureInput })
        _ = try await next.send(request("/v1/a"), appID: Phone.app)
        #expect(await phone.service.requests.last?.headers.contains(HeaderName.signatureInput) == true)
    }

    @Test(
        "a call that asks for another scheme is refused, and the others sign as before",
        arguments: SignatureScheme.allCases)
    func otherScheme(configured: SignatureScheme) async throws {
        let (phone, _, _) = try await registered()
        let sdk = try phone.launch {
            $0.origins = SendTests.origins
            $0.scheme = configured
        }
        let asked = configured == .one ? SignatureScheme.two : .one
        let messages = await phone.network.messages
        await expectError(.signingFailed) {
            try await sdk.send(request("/v1/a"), appID: Phone.app, scheme: asked)
        }
        await expectError(.signingFailed) {
            try await sdk.sign(appID: Phone.app, scheme: asked, method: "GET", url: SendTests.api + "/v1/a").fields
                .count
        }
        #expect(await phone.network.messages == messages)
        #expect(try phone.record().schemeFloor == .one)
        if configured == .one { #expect(try await phone.signAndVerify(sdk).status == 200) }
    }

    @Test("the SDK's own calls are signed under the configured scheme")
    func schemeOfOwnCalls() async throws {
        let (phone, _, _) = try await registered()
        let sdk = try phone.launch { $0.scheme = .two }
        await phone.service.answer(
            path: Route.token.rawValue,
            with: TransportResponse(status: 200, body: TokenResponse(token: "t", expiresIn: 60).bytes))
        _ = try await sdk.deviceToken(appID: Phone.app)
        #expect(await phone.service.requests.last?.headers.contains(HeaderName.signatureInput) == true)
    }

    @Test("signRequest remembers the floor also while its signer is cached")
    func floorOfCachedSigner() async throws {
        let (phone, sdk, _) = try await registered()
        _ = try await sdk.signRequest(appID: Phone.app, method: "GET", path: "/v1/a")
        let other = try phone.launch {
            $0.origins = SendTests.origins
            $0.scheme = .two
        }
        _ = try await other.sign(appID: Phone.app, method: "GET", url: SendTests.api + "/v1/a")
        await expectError(.signingFailed) {
            try await sdk.signRequest(appID: Phone.app, method: "GET", path: "/v1/a").fields.count
        }
    }

    // MARK: Moving, gateways, large answers

    @Test("a record of an alias origin is moved to the new origin once")
    func aliases() async throws {
        let (phone, _, id) = try await registered()
        let old = try RequestOrigin(FakeService.origin)
        var moved = try SynheartAuth.Configuration(baseUrl: "https://new.test")
        moved.storage = phone.storage
        moved.keyStore = phone.keys
        moved.transport = phone.network
        await expectError(.storageError) { try await SynheartAuth(moved).getDeviceId(appID: Phone.app) }
        var knowing = moved
        knowing.aliases = [old]
        #expect(try await SynheartAuth(knowing).getDeviceId(appID: Phone.app) == id)
        #expect(try await SynheartAuth(moved).getDeviceId(appID: Phone.app) == id, "the record moved")
        let after = await phone.service.requests.count
        try await SynheartAuth(knowing).resetDeviceIdentity(appID: Phone.app, reason: .userRequested)
        let sent = await phone.service.requests.dropFirst(after)
        #expect(sent.allSatisfy { $0.url.hasPrefix("https://new.test") }, "nothing is sent to an alias")
    }

    @Test("an answer larger than allowed is an error that calls for no retry")
    func tooLarge() async throws {
        struct Large: HTTPTransport {
            func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse { throw .tooLarge }
        }
        let (phone, _, _) = try await registered()
        let sdk = try phone.launch {
            $0.origins = SendTests.origins
            $0.transport = Large()
        }
        let error = await expectError(.answerTooLarge) { try await sdk.send(request("/v1/a"), appID: Phone.app) }
        #expect(error?.code.text == "ANSWER_TOO_LARGE" && error?.isRetryable == false)
    }

    @Test("a request that the transport cannot send as it is calls for no retry")
    func unsendable() async throws {
        let (phone, _, _) = try await registered()
        let sdk = try phone.launch {
            $0.origins = SendTests.origins
            $0.transport = DefaultTransport()
        }
        let error = await expectError(.signingFailed) { try await sdk.send(request("/v1/a|b"), appID: Phone.app) }
        #expect(error?.isRetryable == false)
    }

    @Test("behind a gateway that replaces the body the headers say what was refused")
    func gateway() async throws {
        let (phone, sdk, _) = try await registered()
        await phone.service.answer(
            path: "/v1/a",
            with: TransportResponse(
                status: 403,
                headers: HeaderFields([
                    (HeaderName.error, "ASSERTION_REQUIRED"), (HeaderName.assertion, "required; prefix=\"/v1\""),
                ]), body: Array("<html>".utf8)))
        #expect(try await sdk.send(request("/v1/a"), appID: Phone.app).status == 200)
        #expect(await phone.service.requests.last?.headers.contains(HeaderName.assertion) == true)
    }
}

/// The SDK holds no lock while a registration waits before a retry.
@Suite struct WaitingTests {
    @Test("a registration that waits for its provider holds no lock: a reset goes through and ends it")
    func reset() async throws {
        let phone = Phone()
        let sleeper = HeldSleeper()
        let sdk = try phone.launch { $0.sleeper = sleeper }
        phone.attestation.fail(.unavailable)
        let registration = Task { try await sdk.registerDevice(appID: Phone.app) }
        try await eventually { sleeper.waiting == 1 }
        #expect(try phone.record().state == .keyReady)
        try await sdk.resetDeviceIdentity(appID: Phone.app, reason: .userRequested)
        await expectError(.networkError) { try await registration.value }
        #expect(try await sdk.state(appID: Phone.app) == .unregistered)
        #expect(await phone.service.devices.isEmpty)
        #expect(try await sdk.registerDevice(appID: Phone.app).status == .registered)
    }

    @Test("a registration goes on with its challenge after the wait, unless another process used the identity")
    func goesOn() async throws {
        for isAlone in [true, false] {
            let phone = Phone()
            let sleeper = HeldSleeper()
            let sdk = try phone.launch { $0.sleeper = sleeper }
            phone.attestation.fail(.unavailable)
            let registration = Task { try await sdk.registerDevice(appID: Phone.app) }
            try await eventually { sleeper.waiting == 1 }
            if !isAlone { #expect(try await phone.launch().registerDevice(appID: Phone.app).status == .registered) }
            sleeper.letGo()
            let status = try await registration.value.status
            #expect(status == (isAlone ? .registered : .alreadyRegistered))
            #expect(await phone.service.count(.challenge) == (isAlone ? 1 : 2))
            #expect(await phone.service.devices.count == 1)
        }
    }

    @Test("a registration that backs off ends at once when the identity is reset")
    func backOff() async throws {
        let phone = Phone()
        let sleeper = HeldSleeper()
        let sdk = try phone.launch { $0.sleeper = sleeper }
        await phone.service.refuse(.challenge, .serviceUnavailable, retryAfter: 300)
        let registration = Task { try await sdk.registerDevice(appID: Phone.app) }
        try await eventually { sleeper.waiting == 1 }
        try await sdk.resetDeviceIdentity(appID: Phone.app, reason: .userRequested)
        await expectError(.networkError) { try await registration.value }
        #expect(try await sdk.registerDevice(appID: Phone.app, joins: false).status == .registered)
    }
}

/// Holds every wait before a retry until the test releases or cancels it. No call hangs, so no deadline passes.
final class HeldSleeper: Sleeper {
    private let held = Locked<[UInt64: CheckedContinuation<Bool, Never>]>([:])
    private let last = Locked<UInt64>(0)

    /// The number of current waits.
    var waiting: Int { held.withLock { $0.count } }

    func letGo() {
        let all = held.withLock { held in
            defer { held = [:] }
            return Array(held.values)
        }
        for wait in all { wait.resume(returning: true) }
    }

    func sleep(for duration: Duration, _ purpose: SleepPurpose) async throws {
        if purpose == .turn { return try await Task.sleep(for: .milliseconds(2)) }
        if purpose == .deadline { return try await Task.sleep(for: .seconds(600)) }
        let id = last.withLock { last in
            last += 1
            return last
        }
        let isOver = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                held.withLock { $0[id] = continuation }
                if Task.isCancelled { end(id) }
            }
        } onCancel: {
            end(id)
        }
        if !isOver { throw CancellationError() }
    }

    private func end(_ id: UInt64) { held.withLock { $0.removeValue(forKey: id) }?.resume(returning: false) }
}
