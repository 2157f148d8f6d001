import AuthContract
import Testing

@testable import SynheartAuth

/// The table of states and transitions, row by row (specification, *State machine*).
@Suite struct StateMachineTests {
    @Test(
        "the persisted strings are the states' names",
        arguments: zip(
            IdentityState.allCases,
            ["unregistered", "challengeReceived", "keyReady", "registering", "registered", "keyInvalid"]))
    func wireStrings(state: IdentityState, text: String) {
        #expect(state.rawValue == text)
    }

    @Test(
        "each allowed transition is accepted",
        arguments: [
            (IdentityState.unregistered, StateTable.Cause.challenge, IdentityState.challengeReceived),
            (.challengeReceived, .key, .keyReady),
            (.keyReady, .attempt, .registering),
            (.registering, .success, .registered),
            (.registering, .failure, .unregistered),
            (.registered, .rotation, .registering),
            (.registering, .rotationEnd, .registered),
            (.registered, .keyLoss, .keyInvalid),
            (.keyInvalid, .wipe, .unregistered),
            (.challengeReceived, .failure, .unregistered),
            (.keyReady, .failure, .unregistered),
        ])
    func allowed(from: IdentityState, cause: StateTable.Cause, to: IdentityState) throws {
        #expect(try StateTable.next(from, cause) == to)
    }

    @Test("a reset leads from any state to unregistered", arguments: IdentityState.allCases)
    func reset(from: IdentityState) throws {
        #expect(try StateTable.next(from, .reset) == .unregistered)
    }

    @Test("every other transition is refused with both states")
    func refused() {
        let pairs: Set<StateTransition> = Set(StateTable.rows.map { StateTransition(from: $0.from, to: $0.to) })
        let expected: Set<StateTransition> = [
            .init(from: .unregistered, to: .challengeReceived), .init(from: .challengeReceived, to: .keyReady),
            .init(from: .keyReady, to: .registering), .init(from: .registering, to: .registered),
            .init(from: .registering, to: .unregistered), .init(from: .registered, to: .registering),
            .init(from: .registered, to: .keyInvalid), .init(from: .keyInvalid, to: .unregistered),
            .init(from: .challengeReceived, to: .unregistered), .init(from: .keyReady, to: .unregistered),
            .init(from: .registered, to: .unregistered), .init(from: .unregistered, to: .unregistered),
        ]
        #expect(pairs == expected)
        for state in IdentityState.allCases {
            for cause in StateTable.Cause.allCases
            where !StateTable.rows.contains(where: { $0.from == state && $0.cause == cause }) {
                let error = #expect(throws: SynheartAuthError.self) { try StateTable.next(state, cause) }
                #expect(error?.code == .invalidStateTransition)
                #expect(error?.transition?.from == state)
            }
        }
    }

    @Test("an invalid transition is logged at error level")
    func logged() async throws {
        let phone = Phone()
        let sdk = try phone.launch()
        let ledger = try sdk.identity(Phone.app).context.ledger
        await expectError(.invalidStateTransition) { try await ledger.apply(.rotationConfirmed(at: UnixTime(0))) }
        #expect(phone.logger.entries.contains { $0.level == .error && $0.code == .invalidStateTransition })
    }
}

/// The transitions that each call triggers.
@Suite struct APIMappingTests {
    private func transitions(_ phone: Phone) -> [String] {
        phone.logger.entries.compactMap { entry in
            entry.event == .stateChanged ? entry.transition.map { "\($0.from.rawValue)>\($0.to.rawValue)" } : nil
        }
    }

    @Test("configure, isRegistered, getDeviceId and signRequest change no state")
    func noChange() async throws {
        let (phone, sdk, id) = try await Phone.registered()
        let before = try phone.record()
        try sdk.configure(try phone.configuration)
        #expect(try await sdk.isRegistered(appID: Phone.app))
        #expect(try await sdk.getDeviceId(appID: Phone.app) == id)
        _ = try await sdk.signRequest(appID: Phone.app, method: "GET", path: "/")
        #expect(try phone.record() == before)
    }

    @Test("registerDevice passes through challengeReceived, keyReady and registering")
    func registration() async throws {
        let (phone, _, _) = try await Phone.registered()
        #expect(
            transitions(phone) == [
                "unregistered>challengeReceived", "challengeReceived>keyReady", "keyReady>registering",
                "registering>registered",
            ])
    }

    @Test("a failed registration leads back to unregistered")
    func failure() async throws {
        let phone = Phone()
        await phone.service.refuse(.register, .invalidAttestation)
        await expectError(.attestationFailed) { try await phone.launch().registerDevice(appID: Phone.app) }
        #expect(transitions(phone).last == "registering>unregistered")
    }

    @Test("rotateKey passes through registering")
    func rotation() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        try await sdk.rotateKey(appID: Phone.app)
        #expect(transitions(phone).suffix(2) == ["registered>registering", "registering>registered"])
    }

    @Test("a lost key leads to keyInvalid, and the next registerDevice starts over")
    func keyLoss() async throws {
        let (phone, sdk, id) = try await Phone.registered()
        phone.keys.lose()
        await expectError(.keyInvalidated) {
            try await sdk.signRequest(appID: Phone.app, method: "GET", path: "/")
        }
        #expect(try await sdk.state(appID: Phone.app) == .keyInvalid)
        #expect(try await sdk.isRegistered(appID: Phone.app) == false)
        let again = try await sdk.registerDevice(appID: Phone.app)
        #expect(again.status == .registered && again.deviceId != id)
        #expect(
            transitions(phone).dropFirst(4) == [
                "registered>keyInvalid", "keyInvalid>unregistered", "unregistered>challengeReceived",
                "challengeReceived>keyReady", "keyReady>registering", "registering>registered",
            ])
    }

    @Test("resetDeviceIdentity tells the service and leaves nothing")
    func reset() async throws {
        let (phone, sdk, id) = try await Phone.registered()
        try await sdk.resetDeviceIdentity(appID: Phone.app, reason: .userRequested)
        #expect(transitions(phone).last == "registered>unregistered")
        #expect(phone.keys.aliases.isEmpty && phone.storage.isEmpty)
        #expect(try await sdk.getDeviceId(appID: Phone.app) == nil)
        #expect(await phone.service.devices.first { $0.id.text == id }?.status == .deregistered)
        await expectError(.notRegistered) { try await sdk.signRequest(appID: Phone.app, method: "GET", path: "/") }
    }

    @Test("state changes are a sequence that a host can follow")
    func sequence() async throws {
        let phone = Phone()
        let sdk = try phone.launch()
        var changes = sdk.stateChanges.makeAsyncIterator()
        try await sdk.registerDevice(appID: Phone.app)
        #expect(await changes.next()?.transition == StateTransition(from: .unregistered, to: .challengeReceived))
        #expect(await changes.next()?.transition == StateTransition(from: .challengeReceived, to: .keyReady))
    }

    @Test("a slow listener gets the latest 64 changes")
    func slowListener() async {
        let changes = StateChanges()
        let transition = StateTransition(from: .registered, to: .registering)
        var listener = changes.stream().makeAsyncIterator()
        for number in 1...70 { changes.send(StateChange(appID: "\(number)", transition: transition)) }
        for number in 7...70 { #expect(await listener.next()?.appID == "\(number)") }
    }

    @Test("an event that changes nothing is neither written nor announced")
    func nothingToWrite() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        let ledger = try sdk.identity(Phone.app).context.ledger
        let before = phone.logger.entries.count
        phone.storage.refuseWrites(true)
        try await ledger.apply(.keyDisposed)
        let demand = RotationDemand(by: UnixTime(1), reason: .scheduled)
        let key = try #require(await ledger.load().key)
        await expectError(.storageError) { try await ledger.apply(.rotationDemanded(demand, of: key)).state }
        #expect(phone.logger.entries.count == before)
        phone.storage.refuseWrites(false)
        try await ledger.apply(.rotationDemanded(demand, of: key))
        #expect(phone.logger.entries.count == before)
    }
}
