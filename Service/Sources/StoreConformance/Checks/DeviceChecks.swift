internal import AuthContract
internal import AuthService

extension StoreConformance {
    static var deviceChecks: [ConformanceCheck] { insertionChecks + changeChecks }

    private static var insertionChecks: [ConformanceCheck] {
        [
            ConformanceCheck("A device is read unchanged, and only under its own app") { stores in
                let samples = try Samples(stores)
                for device in [
                    samples.device(evidence: samples.evidence(counter: .max)), samples.device(platform: .android),
                    samples.device(
                        evidence: samples.evidence(
                            refresh: ReceiptRefresh(
                                dueAt: stores.now + 3600, askedAt: stores.now, outcome: "no_data", failures: 3))),
                ] {
                    try await stores.add(device, samples)
                    try expect(try await stores.stored(device), is: device, "the device")
                    let elsewhere = try await stores.devices.device(device.deviceID, of: Samples.appID())
                    try expect(elsewhere, is: nil, "the device under another app")
                    let binding = try await stores.devices.binding(of: device.key.thumbprint)
                    let wanted = KeyBinding(appID: device.appID, deviceID: device.deviceID, role: .current)
                    try expect(binding, is: wanted, "the key's binding")
                }
            },
            ConformanceCheck("Of 64 insertions of one key one succeeds, and the others learn its device") { stores in
                let samples = try Samples(stores)
                let key = samples.key()
                let devices = (0..<64).map { _ in samples.device(key: key) }
                try await stores.provide(samples.app, samples)
                let outcomes = try await concurrently(64) { number in
                    try await stores.insert(devices[number], samples)
                }
                let winner = try unwrap(outcomes.firstIndex(of: .inserted), "winner")
                let binding = KeyBinding(appID: samples.app, deviceID: devices[winner].deviceID, role: .current)
                for (number, outcome) in outcomes.enumerated() where number != winner {
                    try expect(outcome, is: .keyTaken(binding), "the outcome of task \(number)")
                }
                let events = try await stores.audit.events(app: samples.app, device: nil, before: nil, limit: 100)
                try expect(events.map(\.event.deviceID), is: [devices[winner].deviceID], "the devices in the log")
            },
            ConformanceCheck("A key belongs to one device across apps, also after that device deregistered") { stores in
                let samples = try Samples(stores)
                let device = samples.device(status: .deregistered)
                try await stores.add(device, samples)
                let other = samples.device(key: device.key, app: try Samples.appID())
                try await stores.provide(other.appID, samples)
                let outcome = try await stores.insert(other, samples)
                let binding = KeyBinding(appID: device.appID, deviceID: device.deviceID, role: .current)
                try expect(outcome, is: .keyTaken(binding), "the outcome")
            },
            ConformanceCheck(
                "An attested key belongs to one device of an app, and may also belong to one of another app"
            ) {
                stores in
                let samples = try Samples(stores)
                let evidence = samples.evidence()
                try await stores.add(samples.device(evidence: evidence), samples)
                let second = try await stores.insert(samples.device(evidence: evidence), samples)
                try expect(second, is: .attestedKeyTaken, "the outcome within the app")
                try await stores.add(samples.device(evidence: evidence, app: try Samples.appID()), samples)
            },
            ConformanceCheck("Pending devices are bounded, also when 64 arrive at once; other devices are not") {
                stores in
                let samples = try Samples(stores)
                try await stores.provide(samples.app, samples)
                let outcomes = try await concurrently(64) { _ in
                    try await stores.insert(
                        samples.device(status: .pending), maximumPending: 5, samples, .devicePending)
                }
                try expect(outcomes.count { $0 == .inserted }, is: 5, "the number of insertions")
                try expect(outcomes.count { $0 == .tooManyPending }, is: 59, "the number of refusals")
                let registered = try await stores.insert(samples.device(), maximumPending: 5, samples)
                try expect(registered, is: .inserted, "the outcome of a registered device")
            },
            ConformanceCheck("Devices of another app or with another status do not count as pending") { stores in
                let (samples, other) = (try Samples(stores), try Samples(stores))
                for _ in 0..<2 {
                    try await stores.add(other.device(status: .pending), other)
                    for status in DeviceStatus.allCases where status != .pending {
                        try await stores.add(samples.device(status: status), samples)
                    }
                }
                for expected in [InsertOutcome.inserted, .inserted, .tooManyPending] {
                    let outcome = try await stores.insert(
                        samples.device(status: .pending), maximumPending: 2, samples, .devicePending)
                    try expect(outcome, is: expected, "the outcome")
                }
            },
            ConformanceCheck("A device id exists once, across apps") { stores in
                let (samples, other) = (try Samples(stores), try Samples(stores))
                let device = samples.device()
                try await stores.add(device, samples)
                for twin in [samples.device(id: device.deviceID), other.device(id: device.deviceID)] {
                    try await stores.provide(twin.appID, samples)
                    do {
                        _ = try await stores.insert(twin, samples)
                        throw Unmet(found: "the second insertion did not throw")
                    } catch is StoreError {}
                    try expect(try await stores.devices.binding(of: twin.key.thumbprint), is: nil, "its key's binding")
                }
                try expect(try await stores.stored(device), is: device, "the device")
                try expect(try await stores.eventCount(of: device), is: 1, "the number of events")
            },
            ConformanceCheck("Unproven pending devices have a bound of their own") { stores in
                let samples = try Samples(stores)
                try await stores.provide(samples.app, samples)
                func insert(_ assurance: Assurance) async throws -> InsertOutcome {
                    var device = samples.device(status: .pending)
                    device.assurance = assurance
                    return try await stores.insert(device, maximumPending: 2, samples, .devicePending)
                }
                let proven = samples.device().assurance
                for assurance in [Assurance.unproven, proven] {
                    for expected in [InsertOutcome.inserted, .inserted, .tooManyPending] {
                        try expect(try await insert(assurance), is: expected, "the outcome for \(assurance)")
                    }
                }
            },
            ConformanceCheck("A device of an unknown app is refused and leaves nothing behind") { stores in
                let samples = try Samples(stores)
                let device = samples.device()
                let outcome = try await stores.insert(device, samples)
                try expect(outcome, is: .appChanged, "the outcome")
                try expect(try await stores.devices.device(device.deviceID, of: device.appID), is: nil, "the device")
                try expect(try await stores.devices.binding(of: device.key.thumbprint), is: nil, "the binding")
                try expect(try await stores.eventCount(of: device), is: 0, "the number of events")
            },
            ConformanceCheck("An insertion and the removal of its app never both succeed") {
                stores in
                for _ in 0..<64 {
                    let samples = try Samples(stores)
                    try await stores.provide(samples.app, samples)
                    async let outcome = stores.insert(samples.device(), samples)
                    async let removed = stores.apps.save(samples.removal(of: Samples.record(of: samples.app)))
                    let (inserted, gone) = (try await outcome == .inserted, try await removed == .saved)
                    try expect(inserted, is: !gone, "the insertion beside the removal")
                    let count = try await stores.devices.count(of: samples.app).values.reduce(0, +)
                    try expect(count, is: inserted ? 1 : 0, "the number of devices")
                }
            },
            ConformanceCheck("A device that was judged under another record of its app is refused") { stores in
                let samples = try Samples(stores)
                try await stores.provide(samples.app, samples)
                let device = samples.device()
                for sealedJSON in ["{ }", ""] {
                    let outcome = try await stores.devices.insert(
                        device, under: StoredApp(appID: samples.app, sealedJSON: sealedJSON), maximumPending: 1,
                        recording: samples.event(device: device.deviceID))
                    try expect(outcome, is: .appChanged, "the outcome")
                }
                try expect(try await stores.devices.binding(of: device.key.thumbprint), is: nil, "the binding")
                try expect(try await stores.eventCount(of: device), is: 0, "the number of events")
            },
            ConformanceCheck("An insertion and a change that needs an app without devices never both succeed") {
                stores in
                for round in 0..<64 {
                    let samples = try Samples(stores)
                    try await stores.provide(samples.app, samples)
                    let change = samples.change(Samples.record(of: samples.app), to: "{ }", needsNoDevices: true)
                    async let outcome = stores.insert(samples.device(), samples)
                    async let replaced = stores.apps.save(change)
                    let outcomes = (try await outcome, try await replaced)
                    guard outcomes == (.inserted, .hasDevices) || outcomes == (.appChanged, .saved) else {
                        throw Unmet(found: "round \(round): \(outcomes)")
                    }
                }
            },
        ]
    }

    private static var changeChecks: [ConformanceCheck] {
        [
            ConformanceCheck("A change is saved over the version that was read, and nothing else changes") { stores in
                let samples = try Samples(stores)
                let device = samples.device(evidence: samples.evidence())
                try await stores.add(device, samples)
                let changes: [(String, (inout DeviceRecord) -> Void)] = [
                    ("the status", { $0.status = .pending }),
                    ("the assurance", { $0.assurance = Assurance(app: .appAttestDevelopment, key: .tee) }),
                    ("a demand", { $0.mustRotate = RotationDemand(by: samples.now + 60, reason: .compromise) }),
                    ("another demand", { $0.mustRotate = RotationDemand(by: samples.now, reason: .scheduled) }),
                    ("no demand", { $0.mustRotate = nil }),
                    ("the mark of observation", { $0.admittedUnderObservation = true }),
                    ("no mark", { $0.admittedUnderObservation = false }),
                    ("the end of an overlap", { ($0.previousKeyUntil, $0.keyRotatedAt) = (samples.now, samples.now) }),
                    ("no end", { $0.previousKeyUntil = nil }),
                    ("another App Attest key", { $0.appAttest = samples.evidence(counter: 7) }),
                    ("no App Attest key", { $0.appAttest = nil }),
                ]
                var known = device
                for (what, body) in changes {
                    let change = samples.change(known, .deviceRevoked, body)
                    try expect(try await stores.devices.save(change), is: .saved, what)
                    try expect(try await stores.stored(device), is: change.saved, "the device after \(what)")
                    let again = samples.change(known) { $0.status = .revoked }
                    try expect(try await stores.devices.save(again), is: .conflict, "over the version before \(what)")
                    known = change.saved
                }
                try expect(try await stores.stored(device), is: known, "the device at last")
                try expect(try await stores.eventCount(of: device), is: changes.count + 1, "the number of events")
                let unknown = samples.change(samples.device()) { $0.status = .revoked }
                try expect(try await stores.devices.save(unknown), is: .conflict, "of an unknown device")
            },
            ConformanceCheck("A stream of external changes stays open while its listener reads") { stores in
                // Two listeners: none may end, nor take the other one's place.
                let ended = try await withThrowingTaskGroup(of: Bool.self) { group in
                    for _ in 0..<2 {
                        let changes = stores.devices.externalChanges()
                        group.addTask {
                            for await _ in changes {}
                            return !Task.isCancelled
                        }
                    }
                    group.addTask {
                        // A stream that ends at once has ended long before these are done.
                        let samples = try Samples(stores)
                        for _ in 0..<8 { try await stores.add(samples.device(), samples) }
                        for _ in 0..<1000 { await Task.yield() }
                        return false
                    }
                    let first = try await group.next() ?? false
                    group.cancelAll()
                    return first
                }
                try expect(!ended, "a stream ended")
            },
            ConformanceCheck("Of 64 changes that start from one row one succeeds") { stores in
                let samples = try Samples(stores)
                let device = samples.device(status: .pending)
                try await stores.add(device, samples)
                let outcomes = try await concurrently(64) { number in
                    try await stores.devices.save(
                        samples.change(device) { $0.status = number % 2 == 0 ? .registered : .rejected })
                }
                try expect(outcomes.count { $0 == .saved }, is: 1, "the number of changes")
                try expect(outcomes.count { $0 == .conflict }, is: 63, "the number of conflicts")
                try expect(try await stores.eventCount(of: device), is: 2, "the number of events")
            },
            ConformanceCheck("Of several changes in one call each succeeds by itself, in the order of the call") {
                stores in
                let samples = try Samples(stores)
                let devices = (0..<4).map { _ in samples.device(evidence: samples.evidence()) }
                for device in devices { try await stores.add(device, samples) }
                let outdated = samples.change(devices[1]) { $0.status = .pending }
                try expect(try await stores.devices.save(outdated), is: .saved, "the change before")
                let changes = [
                    samples.change(devices[3]) { $0.status = .pending },
                    samples.change(devices[1]) { $0.status = .revoked },
                    samples.rotation(of: devices[2], to: devices[0].key),
                    samples.change(devices[0]) { $0.status = .pending },
                ]
                let outcomes = try await stores.devices.save(changes)
                try expect(outcomes, is: [.saved, .conflict, .keyTaken, .saved], "the outcomes")
                for (device, status) in zip(devices, [DeviceStatus.pending, .pending, .registered, .pending]) {
                    try expect(try await stores.stored(device).status, is: status, "a device's status")
                }
                let events = try await stores.audit.events(app: samples.app, device: nil, before: nil, limit: 100)
                try expect(events.count { $0.event.code == .deviceRevoked }, is: 3, "the number of events")
            },
            ConformanceCheck("An App Attest key is never taken from another device") { stores in
                let samples = try Samples(stores)
                let (device, other) = (
                    samples.device(evidence: samples.evidence()), samples.device(evidence: samples.evidence())
                )
                for device in [device, other] { try await stores.add(device, samples) }
                let stolen = samples.change(device) { $0.appAttest = other.appAttest }
                try expect(try await stores.devices.save(stolen), is: .keyTaken, "the outcome")
                try expect(try await stores.stored(device), is: device, "the device after")
                try expect(try await stores.eventCount(of: device), is: 1, "the number of events")
            },
            ConformanceCheck("A counter only grows, and of 64 calls that raise it to one value one succeeds") {
                stores in
                let samples = try Samples(stores)
                let evidence = samples.evidence(counter: 5)
                let device = samples.device(evidence: evidence)
                try await stores.add(device, samples)
                @Sendable func raise(_ key: [UInt8], _ counter: UInt32) async throws -> Bool {
                    try await stores.devices.raise(
                        .counter(counter, ofAppAttestKey: key), of: device.deviceID, app: device.appID)
                }
                try expect(try await raise(evidence.keyID, 5), is: false, "to what it is")
                try expect(try await raise(samples.bytes(), 9), is: false, "of another key")
                let key = evidence.keyID
                let done = try await concurrently(64) { _ in try await raise(key, 6) }
                try expect(done.count { $0 }, is: 1, "the number that raised it")
                try expect(try await raise(evidence.keyID, .max), is: true, "to the largest")
                try expect(try await stores.stored(device).appAttest?.counter, is: .max, "the counter")
                try expect(try await stores.stored(device).version, is: device.version, "the version")
            },
            ConformanceCheck("The scheme is raised by requests and lowered by operators") { stores in
                let samples = try Samples(stores)
                let device = samples.device()
                try await stores.add(device, samples)
                func raise(_ scheme: SignatureScheme, of id: DeviceID) async throws -> Bool {
                    try await stores.devices.raise(.scheme(scheme), of: id, app: device.appID)
                }
                try expect(try await raise(.two, of: device.deviceID), is: true, "raising")
                try expect(try await raise(.two, of: device.deviceID), is: false, "raising again")
                try expect(try await raise(.one, of: device.deviceID), is: false, "raising to a lower one")
                try expect(try await raise(.two, of: samples.deviceID()), is: false, "of an unknown device")
                let raised = try await stores.stored(device)
                try expect(raised.highestScheme, is: .two, "the scheme after raising")
                try expect(raised.version, is: device.version, "the version")
                let lowered = samples.change(raised, .deviceSchemeLowered) { $0.highestScheme = .one }
                try expect(try await stores.devices.save(lowered), is: .saved, "lowering")
                try expect(try await stores.stored(device).highestScheme, is: .one, "the scheme after lowering")
            },
            ConformanceCheck("A change does not undo a fact that was raised since the row was read") { stores in
                let samples = try Samples(stores)
                let device = samples.device(evidence: samples.evidence(counter: 5))
                try await stores.add(device, samples)
                let (id, app, key) = (device.deviceID, device.appID, device.appAttest?.keyID ?? [])
                _ = try await stores.devices.raise(.counter(9, ofAppAttestKey: key), of: id, app: app)
                _ = try await stores.devices.raise(.scheme(.two), of: id, app: app)
                try await stores.devices.noteSeen([id: stores.now])
                let change = samples.rotation(of: device)
                try expect(try await stores.devices.save(change), is: .saved, "the change")
                let stored = try await stores.stored(device)
                try expect(stored.appAttest?.counter, is: 9, "the counter")
                try expect(stored.highestScheme, is: .two, "the scheme")
                try expect(stored.lastSeen, is: stores.now, "the last-seen time")
            },
            ConformanceCheck("An App Attest key that was used since the row was read is not replaced") { stores in
                let samples = try Samples(stores)
                let facts: [(AppAttestEvidence) -> DeviceFact] = [
                    { .counter(1, ofAppAttestKey: $0.keyID) }, { _ in .scheme(.two) },
                ]
                for fact in facts {
                    let evidence = samples.evidence()
                    let device = samples.device(evidence: evidence)
                    try await stores.add(device, samples)
                    let change = samples.change(device, .deviceEvidenceReplaced) { $0.appAttest = samples.evidence() }
                    _ = try await stores.devices.raise(fact(evidence), of: device.deviceID, app: device.appID)
                    try expect(try await stores.devices.save(change), is: .conflict, "the outcome")
                    try expect(try await stores.stored(device).appAttest?.keyID, is: evidence.keyID, "the key id")
                }
            },
            ConformanceCheck("Only registered devices admitted under observation are listed as such") { stores in
                let samples = try Samples(stores)
                let observed = (0..<3).map { _ in samples.device(observed: true) }
                let others = [samples.device(), samples.device(status: .revoked, observed: true)]
                for device in observed + others { try await stores.add(device, samples) }
                try await stores.add(samples.device(app: try Samples.appID(), observed: true), samples)
                let found = try await stores.devices.observedDevices(of: samples.app, limit: 10)
                let ids = Set(observed.map(\.deviceID))
                try expect(Set(found.map(\.deviceID)), is: ids, "the devices")
                let some = try await stores.devices.observedDevices(of: samples.app, limit: 2)
                try expect(some.count, is: 2, "the number of devices within a limit")
            },
            ConformanceCheck("A last-seen time changes by more than an hour or not at all") { stores in
                let samples = try Samples(stores)
                let (first, second) = (samples.device(), samples.device())
                for device in [first, second] { try await stores.add(device, samples) }
                let now = stores.now
                try await stores.devices.noteSeen([
                    first.deviceID: now + 5, second.deviceID: now + 6, samples.deviceID(): now,
                ])
                try await stores.devices.noteSeen([first.deviceID: now + 1, second.deviceID: now + 6 + 3600])
                try await stores.devices.noteSeen([:])
                try expect(try await stores.stored(first).lastSeen, is: now + 5, "the first device's time")
                try expect(try await stores.stored(second).lastSeen, is: now + 6, "the second device's time")
                try await stores.devices.noteSeen([second.deviceID: now + 7 + 3600])
                try expect(try await stores.stored(second).lastSeen, is: now + 7 + 3600, "an hour and a second later")
            },
            ConformanceCheck("A call with too many last-seen times is refused") { stores in
                let samples = try Samples(stores)
                let device = samples.device()
                try await stores.add(device, samples)
                var seen = [device.deviceID: stores.now]
                while seen.count < LastSeen.step { seen[samples.deviceID()] = stores.now }
                try await stores.devices.noteSeen(seen)
                try expect(try await stores.stored(device).lastSeen, is: stores.now, "the time after a full step")
                seen[device.deviceID] = stores.now + 7200
                seen[samples.deviceID()] = stores.now
                let isRefused = await {
                    do { try await stores.devices.noteSeen(seen); return false } catch { return true }
                }()
                try expect(isRefused, "more than a step was written at once")
                try expect(try await stores.stored(device).lastSeen, is: stores.now, "the time after the refusal")
            },
            ConformanceCheck("A last-seen time in the future is corrected") { stores in
                let samples = try Samples(stores)
                let device = samples.device()
                try await stores.add(device, samples)
                try await stores.devices.noteSeen([device.deviceID: stores.now + 31_536_000])
                try await stores.devices.noteSeen([device.deviceID: stores.now])
                try expect(try await stores.stored(device).lastSeen, is: stores.now, "the time")
            },
        ]
    }
}
