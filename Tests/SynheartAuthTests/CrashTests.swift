import AuthContract
import Testing

@testable import SynheartAuth

/// The process dies before or after any external call; the next process always ends with one device that can sign.
@Suite struct CrashTests {
    /// The number of points at which `operation` can die.
    private func points(
        _ prepare: (SynheartAuth) async throws -> Void, _ operation: (SynheartAuth) async throws -> Void
    ) async throws -> Int {
        let phone = Phone()
        let sdk = try phone.launch()
        try await prepare(sdk)
        phone.faults.die(at: nil)
        try await operation(sdk)
        return phone.faults.points
    }

    private func crash(
        at point: Int, _ prepare: (SynheartAuth) async throws -> Void,
        _ operation: (SynheartAuth) async throws -> Void
    ) async throws -> Phone {
        let phone = Phone()
        let sdk = try phone.launch()
        try await prepare(sdk)
        phone.faults.die(at: point)
        _ = try? await operation(sdk)
        #expect(phone.faults.isDead)
        phone.faults.revive()
        return phone
    }

    @Test("a kill during a registration leaves one device that signs")
    func registration() async throws {
        let count = try await points({ _ in }, { try await $0.registerDevice(appID: Phone.app) })
        #expect(count > 20)
        for point in sample(0..<count) {
            let phone = try await crash(at: point, { _ in }, { try await $0.registerDevice(appID: Phone.app) })
            let next = try phone.launch()
            let id = try await next.registerDevice(appID: Phone.app).deviceId
            #expect(await phone.service.devices.map(\.id.text) == [id], "died at \(point)")
            #expect(try await phone.signAndVerify(next).status == 200, "died at \(point)")
        }
    }

    @Test("two kills during a registration leave one device that signs")
    func registrationTwice() async throws {
        let count = try await points({ _ in }, { try await $0.registerDevice(appID: Phone.app) })
        for first in stride(from: 0, to: count, by: 3) {
            let phone = try await crash(at: first, { _ in }, { try await $0.registerDevice(appID: Phone.app) })
            phone.faults.die(at: (first * 7 + 5) % count)
            _ = try? await phone.launch().registerDevice(appID: Phone.app)
            phone.faults.revive()
            let next = try phone.launch()
            let id = try await next.registerDevice(appID: Phone.app).deviceId
            #expect(await phone.service.devices.map(\.id.text) == [id], "died at \(first)")
            #expect(try await phone.signAndVerify(next).status == 200, "died at \(first)")
        }
    }

    @Test("a kill during a rotation is repaired by the next rotation", arguments: [1, 61, 3600])
    func rotation(pause: Int) async throws {
        let prepare: (SynheartAuth) async throws -> Void = { try await $0.registerDevice(appID: Phone.app) }
        let count = try await points(prepare, { try await $0.rotateKey(appID: Phone.app) })
        #expect(count > 10)
        for point in sample(0..<count) {
            let phone = try await crash(at: point, prepare, { try await $0.rotateKey(appID: Phone.app) })
            let id = try #require(await phone.service.devices.first?.id.text)
            phone.clock.advance(.seconds(pause))
            let next = try phone.launch()
            #expect(try await next.isRegistered(appID: Phone.app), "died at \(point)")
            #expect(try await next.registerDevice(appID: Phone.app).deviceId == id, "died at \(point)")
            #expect(try await next.rotateKey(appID: Phone.app).deviceId == id, "died at \(point)")
            phone.clock.advance(.seconds(120))
            #expect(try await phone.signAndVerify(next).status == 200, "died at \(point)")
            #expect(await phone.service.devices.count == 1)
            #expect(try phone.record().journal == nil, "died at \(point)")
            #expect(phone.keys.aliases.count == 1, "died at \(point)")
        }
    }

    /// The evidence that a rotation sends with its key.
    enum Evidence: CaseIterable {
        case assertion, newHandle
        /// A new App Attest key, as in `newHandle`, while the service demands assertions for the SDK's own calls.
        case newHandleForOwnCalls
    }

    @Test(
        "a kill during a rotation that attests again is repaired, and the device can assert",
        arguments: Evidence.allCases)
    func rotationWithEvidence(evidence: Evidence) async throws {
        func phone() async throws -> (Phone, SynheartAuth) {
            let (phone, sdk, _) = try await Phone.registered()
            await phone.service.setPolicy { ($0.reattests, $0.rebinds) = (true, true) }
            if evidence == .newHandleForOwnCalls {
                await phone.service.setPolicy { $0.assertionPrefixes = ["/auth/v1"] }
            }
            if evidence != .assertion { phone.attestation.loseHandles() }
            return (phone, sdk)
        }
        let (whole, sdk) = try await phone()
        whole.faults.die(at: nil)
        try await sdk.rotateKey(appID: Phone.app)
        let count = whole.faults.points
        #expect(count > 20)
        for point in sample(0..<count) {
            let (phone, sdk) = try await phone()
            phone.faults.die(at: point)
            _ = try? await sdk.rotateKey(appID: Phone.app)
            #expect(phone.faults.isDead)
            phone.faults.revive()
            let next = try phone.launch()
            // If a rotation that binds a new App Attest key was sent, the SDK waits a quarter of an hour for its outcome.
            if (try? await next.rotateKey(appID: Phone.app)) == nil {
                // If no key can make the assertion that the status request needs, the SDK cannot ask which key is current. Then it
                // also waits for the longest overlap, an hour.
                phone.clock.advance(.seconds(evidence == .newHandleForOwnCalls ? 76 * 60 : 16 * 60))
                try await next.rotateKey(appID: Phone.app)
            }
            phone.clock.advance(.seconds(120))
            #expect(try await phone.signAndVerify(next).status == 200, "died at \(point)")
            await phone.service.setPolicy { $0.assertionPrefixes = [Route.token.rawValue] }
            _ = try await next.deviceToken(appID: Phone.app)
            #expect(await phone.service.devices.count == 1)
            #expect(try phone.record().journal == nil, "died at \(point)")
            #expect(phone.keys.aliases.count == 1, "died at \(point)")
        }
    }

    @Test("after a kill during a rotation the device signs within the overlap")
    func rotationThenSign() async throws {
        let prepare: (SynheartAuth) async throws -> Void = { try await $0.registerDevice(appID: Phone.app) }
        let count = try await points(prepare, { try await $0.rotateKey(appID: Phone.app) })
        for point in sample(0..<count) {
            let phone = try await crash(at: point, prepare, { try await $0.rotateKey(appID: Phone.app) })
            #expect(try await phone.signAndVerify(phone.launch()).status == 200, "died at \(point)")
        }
    }

    @Test("a kill during a reset leaves the new device alone")
    func reset() async throws {
        let prepare: (SynheartAuth) async throws -> Void = { try await $0.registerDevice(appID: Phone.app) }
        let operation: (SynheartAuth) async throws -> Void = {
            try await $0.resetDeviceIdentity(appID: Phone.app, reason: .userRequested)
        }
        let count = try await points(prepare, operation)
        for point in sample(0..<count) {
            let phone = try await crash(at: point, prepare, operation)
            let old = try #require(await phone.service.devices.first?.id)
            let next = try phone.launch()
            try await operation(next)
            let id = try await next.registerDevice(appID: Phone.app).deviceId
            #expect(id != old.text, "died at \(point)")
            let live = await phone.service.devices.filter { $0.status == .registered }
            #expect(live.map(\.id.text) == [id], "died at \(point)")
            #expect(try await phone.signAndVerify(next).status == 200, "died at \(point)")
        }
    }

    @Test("registerDevice finishes a reset that was killed")
    func resetThenRegister() async throws {
        let prepare: (SynheartAuth) async throws -> Void = { try await $0.registerDevice(appID: Phone.app) }
        let operation: (SynheartAuth) async throws -> Void = {
            try await $0.resetDeviceIdentity(appID: Phone.app, reason: .userRequested)
        }
        let count = try await points(prepare, operation)
        for point in sample(0..<count) {
            let phone = try await crash(at: point, prepare, operation)
            let next = try phone.launch()
            let id = try await next.registerDevice(appID: Phone.app).deviceId
            let live = await phone.service.devices.filter { $0.status == .registered }
            #expect(live.map(\.id.text) == [id], "died at \(point)")
            #expect(try await phone.signAndVerify(next).status == 200, "died at \(point)")
        }
    }

    @Test("a kill while a pending or lost identity is settled leaves one device")
    func others() async throws {
        let pend: (Phone, SynheartAuth) async throws -> Void = { phone, sdk in
            await phone.service.set { $0.decision = .pending }
            let id = try await sdk.registerDevice(appID: Phone.app).deviceId
            await phone.service.edit(id) { $0.status = .registered }
            await phone.service.set { $0.decision = .registered }
        }
        for point in sample(0..<200) {
            let phone = Phone()
            let sdk = try phone.launch()
            try await pend(phone, sdk)
            phone.faults.die(at: point)
            _ = try? await sdk.registerDevice(appID: Phone.app)
            let isOver = !phone.faults.isDead
            phone.faults.revive()
            let next = try phone.launch()
            try await next.registerDevice(appID: Phone.app)
            #expect(await phone.service.devices.count == 1)
            #expect(try await phone.signAndVerify(next).status == 200, "died at \(point)")
            if isOver { break }
        }
        for point in sample(0..<200) {
            let (phone, sdk, _) = try await Phone.registered()
            phone.keys.lose()
            phone.faults.die(at: point)
            _ = try? await sdk.registerDevice(appID: Phone.app)
            let isOver = !phone.faults.isDead
            phone.faults.revive()
            let next = try phone.launch()
            try await next.registerDevice(appID: Phone.app)
            #expect(await phone.service.devices.count == 2, "died at \(point)")
            #expect(try await phone.signAndVerify(next).status == 200, "died at \(point)")
            if isOver { break }
        }
    }
}

/// The faults of the network for each message.
@Suite struct NetworkFaultTests {
    @Test("after any network fault in a registration there is one device", arguments: TestNetwork.Fault.allCases)
    func registration(fault: TestNetwork.Fault) async throws {
        for index in 0..<4 {
            let phone = Phone()
            await phone.network.plan(fault, at: index)
            let sdk = try phone.launch()
            _ = try? await sdk.registerDevice(appID: Phone.app)
            _ = try? await phone.network.deliverDelayed()
            try await sdk.registerDevice(appID: Phone.app)
            #expect(await phone.service.devices.count == 1, "\(fault) at \(index)")
            #expect(try await phone.signAndVerify(sdk).status == 200, "\(fault) at \(index)")
        }
    }

    @Test(
        "after any network fault in a rotation the device signs", arguments: TestNetwork.Fault.allCases)
    func rotation(fault: TestNetwork.Fault) async throws {
        for index in 0..<3 {
            let (phone, sdk, id) = try await Phone.registered()
            await phone.network.plan(fault, at: index)
            _ = try? await sdk.rotateKey(appID: Phone.app)
            _ = try? await phone.network.deliverDelayed()
            #expect(try await sdk.rotateKey(appID: Phone.app).deviceId == id)
            phone.clock.advance(.seconds(120))
            #expect(try await phone.signAndVerify(sdk).status == 200, "\(fault) at \(index)")
            #expect(phone.keys.aliases.count == 1)
        }
    }

    @Test("after any network fault a reset is complete", arguments: TestNetwork.Fault.allCases)
    func reset(fault: TestNetwork.Fault) async throws {
        let (phone, sdk, _) = try await Phone.registered()
        await phone.network.plan(fault, at: 0)
        try await sdk.resetDeviceIdentity(appID: Phone.app, reason: .userRequested)
        #expect(phone.storage.isEmpty && phone.keys.aliases.isEmpty)
    }

    @Test("after any network fault a pending device keeps its id and learns the decision")
    func decision() async throws {
        for fault in TestNetwork.Fault.allCases {
            let phone = Phone()
            await phone.service.set { $0.decision = .pending }
            let sdk = try phone.launch()
            let id = try await sdk.registerDevice(appID: Phone.app).deviceId
            await phone.service.edit(id) { $0.status = .registered }
            await phone.network.plan(fault, at: 0)
            _ = try? await sdk.registerDevice(appID: Phone.app)
            _ = try? await phone.network.deliverDelayed()
            #expect(try await sdk.registerDevice(appID: Phone.app).deviceId == id, "\(fault)")
            #expect(await phone.service.devices.count == 1, "\(fault)")
            #expect(try await phone.signAndVerify(sdk).status == 200, "\(fault)")
        }
    }

    @Test("after any network fault the next call gets a token")
    func token() async throws {
        for fault in TestNetwork.Fault.allCases {
            let (phone, sdk, _) = try await Phone.registered()
            await phone.network.plan(fault, at: 0)
            do {
                _ = try await sdk.deviceToken(appID: Phone.app)
            } catch {
                #expect((error as? SynheartAuthError)?.code == .networkError, "\(fault)")
            }
            _ = try? await phone.network.deliverDelayed()
            #expect(try await sdk.deviceToken(appID: Phone.app).token.hasPrefix("token-"), "\(fault)")
            #expect(try phone.record().state == .registered, "\(fault)")
        }
    }

    @Test(
        "any network fault in send gives the answer, NETWORK_ERROR or a replay, makes one effect, and keeps the identity"
    )
    func send() async throws {
        for fault in TestNetwork.Fault.allCases {
            let phone = Phone()
            let sdk = try phone.launch { $0.origins = SendTests.origins }
            try await sdk.registerDevice(appID: Phone.app)
            let before = try phone.record()
            await phone.network.plan(fault, at: 0)
            let request = TransportRequest(
                method: "POST", url: "\(SendTests.api)/v1/readings", headers: HeaderFields(), body: Array("{}".utf8))
            do {
                _ = try await sdk.send(request, appID: Phone.app)
            } catch let error as SynheartAuthError {
                #expect(error.code == (fault == .answeredTwice ? .nonceReplay : .networkError), "\(fault)")
                #expect(error.mayHaveHappened, "\(fault)")
            }
            _ = try? await phone.network.deliverDelayed()
            #expect(await phone.service.accepted.count <= 1, "\(fault)")
            #expect(try phone.record() == before, "\(fault)")
            #expect(try await sdk.send(request, appID: Phone.app).status == 200, "\(fault)")
        }
    }

    @Test("after any two network faults in a registration there is one device")
    func pairs() async throws {
        for first in TestNetwork.Fault.allCases {
            for second in TestNetwork.Fault.allCases {
                let phone = Phone()
                await phone.network.plan(first, at: 1)
                await phone.network.plan(second, at: 3)
                let sdk = try phone.launch()
                _ = try? await sdk.registerDevice(appID: Phone.app)
                try await sdk.registerDevice(appID: Phone.app)
                #expect(await phone.service.devices.count == 1, "\(first), \(second)")
                #expect(try await phone.signAndVerify(sdk).status == 200, "\(first), \(second)")
            }
        }
    }
}
