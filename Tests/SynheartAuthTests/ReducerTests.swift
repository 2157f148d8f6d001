import AuthContract
import Testing

@testable import SynheartAuth

/// The effect of each event on a record, and when an event is refused.
@Suite struct ReducerTests {
    private let appID: AppID
    private let device = DeviceID(from: SeededRandom(1))
    private let old: IdentityRecord.KeyReference
    private let new: IdentityRecord.KeyReference

    init() throws {
        appID = try AppID(Phone.app)
        old = IdentityRecord.KeyReference(alias: .primary(appID), thumbprint: "old")
        new = IdentityRecord.KeyReference(alias: .next(appID), thumbprint: "new")
    }

    private func record(_ events: IdentityEvent...) throws -> IdentityRecord {
        try events.reduce(IdentityRecord(appID: appID)) { try IdentityReducer.reduce($0, $1) }
    }

    private var registering: IdentityRecord {
        get throws {
            try record(
                .challengeReceived(authOrigin: FakeService.origin), .keyReady(old, isReused: false),
                .attestationKeyMade(id: "handle"), .registrationSending(.ios))
        }
    }

    private var registered: IdentityRecord {
        get throws { try apply(.registered(device, at: UnixTime(10)), to: registering) }
    }

    /// A rotation whose request was sent once, with the timestamp 100.
    private var rotating: IdentityRecord {
        get throws {
            let started = try apply(.rotationStarted(new.alias, .compromise), to: registered)
            return try apply(.rotationSending(thumbprint: new.thumbprint, timestamp: UnixTime(100)), to: started)
        }
    }

    @Test(arguments: [RotationReason.scheduled, .compromise], [nil, .scheduled, RotationReason.compromise])
    func `a rotation is for a compromise if the app says so, or as long as the service demands that`(
        app: RotationReason, demanded: RotationReason?
    ) throws {
        let demand = demanded.map { RotationDemand(by: UnixTime(7), reason: $0) }
        let record = try apply(.rotationDemanded(demand, of: old), to: registered)
        let started = try apply(.rotationStarted(new.alias, .scheduled), to: record)
        let rotating = try apply(.rotationStarted(new.alias, app), to: started)
        let withdrawn = try apply(.rotationDemanded(nil, of: old), to: rotating)
        func reason(_ record: IdentityRecord) throws -> RotationReason {
            guard case .rotation(let pending) = record.journal else { throw record.refusal(of: .registering) }
            return record.reason(of: pending)
        }
        #expect(try reason(rotating) == ([app, demanded].contains(.compromise) ? .compromise : .scheduled))
        #expect(try reason(withdrawn) == app && withdrawn.rotationDemand == nil)
    }

    private func apply(_ event: IdentityEvent, to record: IdentityRecord) throws -> IdentityRecord {
        try IdentityReducer.reduce(record, event)
    }

    private func expectRefused(
        _ event: IdentityEvent, in record: IdentityRecord, to target: IdentityState? = nil,
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let error = #expect(throws: SynheartAuthError.self, sourceLocation: sourceLocation) {
            try IdentityReducer.reduce(record, event)
        }
        #expect(error?.code == .invalidStateTransition, sourceLocation: sourceLocation)
        #expect(error?.transition?.from == record.state, sourceLocation: sourceLocation)
        if let target { #expect(error?.transition?.to == target, sourceLocation: sourceLocation) }
    }

    @Test func `a registration goes through its steps`() throws {
        let before = try record(
            .challengeReceived(authOrigin: FakeService.origin), .keyReady(old, isReused: false),
            .attestationKeyMade(id: "handle"))
        #expect(before.state == .keyReady && before.authOrigin == FakeService.origin && before.key == nil)
        #expect(before.journal == .registration(old, isSent: false))
        #expect(before.attestationKey == .init(id: "handle", isUsed: false))
        let sent = try apply(.registrationSending(.ios), to: before)
        #expect(sent.state == .registering && sent.identity == .none && sent.platform == .ios)
        #expect(sent.journal == .registration(old, isSent: true))
        #expect(sent.attestationKey == .init(id: "handle", isUsed: true))
        let done = try apply(.registered(device, at: UnixTime(10)), to: sent)
        #expect(done.state == .registered && done.identity == .active && done.deviceID == device)
        #expect(done.key == old && done.registeredAt == UnixTime(10) && done.journal == nil)
    }

    @Test func `a pending registration becomes active later, with its key and its first time`() throws {
        let pending = try apply(.pending(device, at: UnixTime(10)), to: registering)
        #expect(pending.state == .registering && pending.identity == .pending && pending.key == old)
        #expect(pending.journal == nil)
        let active = try apply(.registered(device, at: UnixTime(99)), to: pending)
        #expect(active.state == .registered && active.identity == .active && active.key == old)
        #expect(active.registeredAt == UnixTime(10))
    }

    @Test func `a new key replaces the one of an earlier attempt, and a reused one stays as it was`() throws {
        var earlier = try record(.challengeReceived(authOrigin: FakeService.origin))
        earlier.journal = .registration(old, isSent: true)
        let fresh = try apply(.keyReady(new, isReused: false), to: earlier)
        #expect(fresh.journal == .registration(new, isSent: false))
        let reused = try apply(.keyReady(old, isReused: true), to: earlier)
        #expect(reused.journal == .registration(old, isSent: true))
        earlier.journal = nil
        #expect(try apply(.keyReady(old, isReused: true), to: earlier).journal == .registration(old, isSent: false))
    }

    @Test func `a registration is decided only while it runs, and only once`() throws {
        for (event, target) in [
            (IdentityEvent.registered(device, at: UnixTime(0)), IdentityState.registered),
            (.pending(device, at: UnixTime(0)), .registering),
        ] {
            let keyReady = try record(
                .challengeReceived(authOrigin: FakeService.origin), .keyReady(old, isReused: false))
            for record in [keyReady, try registered, try rotating] { expectRefused(event, in: record, to: target) }
            var keyless = try registering
            keyless.journal = nil
            #expect(throws: SynheartAuthError(.invalidStateTransition, "")) { try apply(event, to: keyless) }
        }
        expectRefused(.registrationSending(.ios), in: try registered)
        var unwritten = try record(
            .challengeReceived(authOrigin: FakeService.origin), .keyReady(old, isReused: false))
        unwritten.journal = nil
        expectRefused(.registrationSending(.ios), in: unwritten)
    }

    @Test func `a failed registration keeps key and handle for the next one, unless it forgets them`() throws {
        let kept = try apply(.registrationFailed(forgetsKey: false), to: registering)
        var expected = IdentityRecord(appID: appID)
        expected.journal = .registration(old, isSent: true)
        expected.attestationKey = .init(id: "handle", isUsed: true)
        #expect(kept == expected)
        #expect(try apply(.registrationFailed(forgetsKey: true), to: registering) == IdentityRecord(appID: appID))
        // The service decided about the device, so the service knows the key, and the record keeps the key.
        let rejected = try apply(
            .registrationFailed(forgetsKey: false), to: apply(.pending(device, at: UnixTime(1)), to: registering))
        #expect(rejected.journal == .registration(old, isSent: true) && rejected.deviceID == nil)
    }

    @Test func `registrationFailed is refused for a registered or rotating device, and without an attempt`() throws {
        for record in [try registered, try rotating, IdentityRecord(appID: appID)] {
            expectRefused(.registrationFailed(forgetsKey: true), in: record)
        }
    }

    @Test func `a rotation makes the pending key the current one`() throws {
        let running = try rotating
        #expect(running.state == .registering && running.identity == .active && running.key == old)
        #expect(
            running.journal
                == .rotation(
                    PendingRotation(
                        alias: new.alias, reason: .compromise, thumbprint: "new", lastCopy: UnixTime(100))))
        var demanded = running
        demanded.rotationDemand = RotationDemand(by: UnixTime(7), reason: .compromise)
        let done = try apply(.rotationConfirmed(at: UnixTime(200)), to: demanded)
        #expect(done.state == .registered && done.key == new && done.keyRotatedAt == UnixTime(200))
        #expect(done.rotationDemand == nil && done.journal == .disposal(old.alias) && done.deviceID == device)
        #expect(try apply(.keyDisposed, to: done).journal == nil)
    }

    @Test func `a rotation that starts again keeps its key, its reason and its last copy`() throws {
        let journal = try rotating.journal
        #expect(try apply(.rotationStarted(new.alias, .scheduled), to: rotating).journal == journal)
        let suspended = try apply(.rotationSuspended(isRefused: false), to: rotating)
        #expect(suspended.state == .registered && suspended.journal == journal)
        let again = try apply(.rotationStarted(new.alias, .scheduled), to: suspended)
        #expect(again.state == .registering && again.journal == journal)
    }

    @Test(arguments: [(50, 100), (100, 100), (150, 150)])
    func `the last copy is the one with the latest timestamp`(timestamp: Int64, last: Int64) throws {
        let refused = try apply(.rotationSuspended(isRefused: true), to: rotating)
        guard case .rotation(let before) = refused.journal else { throw StorageError("no rotation") }
        #expect(before.isRefused)
        let sent = try apply(
            .rotationSending(thumbprint: "new", timestamp: UnixTime(timestamp)),
            to: apply(.rotationStarted(new.alias, .scheduled), to: refused))
        guard case .rotation(let after) = sent.journal else { throw StorageError("no rotation") }
        #expect(after.lastCopy == UnixTime(last) && !after.isRefused)
    }

    @Test func `an abandoned rotation leaves the old key current, and the pending one to delete`() throws {
        let done = try apply(.rotationAbandoned, to: rotating)
        #expect(done.state == .registered && done.key == old && done.journal == .disposal(new.alias))
        expectRefused(.rotationAbandoned, in: try registered)
        // A rotation that is not running cannot be abandoned.
        expectRefused(.rotationAbandoned, in: try apply(.rotationSuspended(isRefused: true), to: rotating))
    }

    @Test func `only a registered identity rotates, and never to its current key`() throws {
        for record in [
            IdentityRecord(appID: appID), try registering,
            try apply(.pending(device, at: UnixTime(1)), to: registering),
            try apply(.keyLost(old), to: registered),
        ] {
            expectRefused(.rotationStarted(new.alias, .scheduled), in: record)
        }
        expectRefused(.rotationStarted(old.alias, .scheduled), in: try registered)
        expectRefused(.rotationStarted(old.alias, .scheduled), in: try rotating)
    }

    @Test func `only a running rotation is sent, suspended or confirmed`() throws {
        let suspended = try apply(.rotationSuspended(isRefused: false), to: rotating)
        for event in [
            IdentityEvent.rotationSending(thumbprint: "new", timestamp: UnixTime(1)),
            .rotationSuspended(isRefused: true),
            .rotationConfirmed(at: UnixTime(1)),
        ] {
            for record in [try registering, try registered, suspended] { expectRefused(event, in: record) }
        }
        let unsent = try apply(.rotationStarted(new.alias, .scheduled), to: registered)
        expectRefused(.rotationConfirmed(at: UnixTime(1)), in: unsent)
    }

    @Test func `a lost key ends the identity and keeps the device id`() throws {
        for before in [try registered, try rotating] {
            let lost = try apply(.keyLost(old), to: before)
            #expect(lost.state == .keyInvalid && lost.identity == .none && lost.deviceID == device)
        }
    }

    @Test func `the loss of a key that is not the current one changes nothing`() throws {
        let pending = try apply(.pending(device, at: UnixTime(1)), to: registering)
        let earlier = IdentityRecord.KeyReference(alias: old.alias, thumbprint: "earlier")
        for (record, key) in [
            (try registered, new), (try registered, earlier), (try rotating, new), (try rotating, earlier),
            (pending, old), (try registering, old), (IdentityRecord(appID: appID), old),
        ] {
            #expect(try apply(.keyLost(key), to: record) == record)
        }
    }

    @Test func `a wipe and a failed registration keep the clock offset alone`() throws {
        let offset = try #require(ClockOffset(milliseconds: 5000))
        var expected = IdentityRecord(appID: appID)
        expected.clockOffset = offset
        var lost = try apply(.keyLost(old), to: registered)
        lost = try apply(.clockLearned(offset), to: lost)
        #expect(try apply(.wiped, to: lost) == expected)
        #expect(
            try apply(.registrationFailed(forgetsKey: true), to: apply(.clockLearned(offset), to: registering))
                == expected)
        expectRefused(.wiped, in: try registered)
    }

    @Test func `a reset keeps what it needs to tell the service`() throws {
        let reset = try apply(.resetStarted(.keyLost), to: rotating)
        #expect(reset.state == .unregistered && reset.identity == .none && reset.journal == .reset(.keyLost))
        #expect(reset.deviceID == device && reset.key == old && reset.authOrigin == FakeService.origin)
    }

    @Test func `a deleted key ends a disposal and nothing else`() throws {
        for record in [try rotating, try registering, try registered] {
            #expect(try apply(.keyDisposed, to: record) == record)
        }
    }

    @Test func `a handle is kept until it is forgotten, and a demand until the key is new`() throws {
        #expect(try apply(.attestationKeyForgotten, to: registering).attestationKey == nil)
        let demand = RotationDemand(by: UnixTime(5), reason: .scheduled)
        let key = try #require(registered.key)
        let demanded = try apply(.rotationDemanded(demand, of: key), to: registered)
        #expect(demanded.rotationDemand == demand && demanded.state == .registered)
        let replaced = IdentityRecord.KeyReference(alias: key.alias, thumbprint: "replaced")
        #expect(try apply(.rotationDemanded(demand, of: replaced), to: registered) == registered)
    }
}
