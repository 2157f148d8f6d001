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
                    try await stores.devices.insert(
                        devices[number], maximumPending: 1,
                        recording: samples.event(device: devices[number].deviceID))
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
                let outcome = try await stores.devices.insert(
                    other, maximumPending: 1, recording: samples.event(app: other.appID))
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
                let second = try await stores.devices.insert(
                    samples.device(evidence: evidence), maximumPending: 1, recording: samples.event())
                try expect(second, is: .attestedKeyTaken, "the outcome within the app")
                try await stores.add(samples.device(evidence: evidence, app: try Samples.appID()), samples)
            },
            ConformanceCheck("Pending devices are bounded, also when 64 arrive at once; other devices are not") {
                stores in
                let samples = try Samples(stores)
                try await stores.provide(samples.app, samples)
                let outcomes = try await concurrently(64) { _ in
                    try await stores.devices.insert(
                        samples.device(status: .pending), maximumPending: 5, recording: samples.event(.devicePending))
                }
                try expect(outcomes.count { $0 == .inserted }, is: 5, "the number of insertions")
                try expect(outcomes.count { $0 == .tooManyPending }, is: 59, "the number of refusals")
                let registered = try await stores.devices.insert(
                    samples.device(), maximumPending: 5, recording: samples.event())
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
                    let outcome = try await stores.devices.insert(
                        samples.device(status: .pending), maximumPending: 2, recording: samples.event(.devicePending))
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
                        _ = try await stores.devices.insert(
                            twin, maximumPending: 1, recording: samples.event(device: twin.deviceID))
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
                    return try await stores.devices.insert(
                        device, maximumPending: 2, recording: samples.event(.devicePending))
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
                let outcome = try await stores.devices.insert(
                    device, maximumPending: 1, recording: samples.event(device: device.deviceID))
                try expect(outcome, is: .appMissing, "the outcome")
                try expect(try await stores.devices.device(device.deviceID, of: device.appID), is: nil, "the device")
                try expect(try await stores.devices.binding(of: device.key.thumbprint), is: nil, "the binding")
                try expect(try await stores.eventCount(of: device), is: 0, "the number of events")
            },
            ConformanceCheck("An insertion and the removal of its app never both succeed") {
                stores in
                for _ in 0..<64 {
                    let samples = try Samples(stores)
                    try await stores.provide(samples.app, samples)
                    async let outcome = stores.devices.insert(
                        samples.device(), maximumPending: 1, recording: samples.event())
                    async let removed = stores.apps.remove(samples.app, recording: samples.event(.appRemoved))
                    let (inserted, gone) = (try await outcome == .inserted, try await removed)
                    try expect(inserted, is: !gone, "the insertion beside the removal")
                    let count = try await stores.devices.count(of: samples.app).values.reduce(0, +)
                    try expect(count, is: inserted ? 1 : 0, "the number of devices")
                }
            },
        ]
    }

    private static var changeChecks: [ConformanceCheck] {
        [
            ConformanceCheck("A status changes only from an expected one, and nothing else changes") { stores in
                let samples = try Samples(stores)
                var device = samples.device(evidence: samples.evidence())
                try await stores.add(device, samples)
                func set(_ from: Set<DeviceStatus>, _ to: DeviceStatus) async throws -> Bool {
                    try await stores.devices.setStatus(
                        device.deviceID, of: device.appID, from: from, to: to,
                        recording: samples.event(.deviceRevoked, device: device.deviceID))
                }
                try expect(try await set([.pending, .rejected], .registered), is: false, "from another status")
                try expect(try await set([], .registered), is: false, "from no status")
                try expect(try await set([.registered, .pending], .revoked), is: true, "from the status it has")
                device.status = .revoked
                try expect(try await stores.stored(device), is: device, "the device after")
                try expect(try await stores.eventCount(of: device), is: 2, "the number of events")
                let unknown = try await stores.devices.setStatus(
                    samples.deviceID(), of: samples.app, from: [.registered], to: .revoked, recording: samples.event())
                try expect(unknown, is: false, "of an unknown device")
            },
            ConformanceCheck("A pending device is admitted once, and only with its known assurance") { stores in
                let samples = try Samples(stores)
                let device = samples.device(status: .pending)
                try await stores.add(device, samples)
                let assurance = Assurance(app: .none, key: .unattested, labels: ["unproven"])
                @Sendable func admit(_ known: Assurance) async throws -> Bool {
                    try await stores.devices.admit(
                        device.deviceID, of: device.appID, known: known, as: assurance,
                        recording: samples.event(.deviceApproved, device: device.deviceID))
                }
                try expect(try await admit(.unproven), is: false, "with another assurance")
                let known = device.assurance
                let done = try await concurrently(64) { _ in try await admit(known) }
                try expect(done.count { $0 }, is: 1, "the number of admissions")
                var admitted = device
                (admitted.status, admitted.assurance) = (.registered, assurance)
                try expect(try await stores.stored(device), is: admitted, "the device after")
                try expect(try await admit(assurance), is: false, "a device that is not pending")
                try expect(try await stores.eventCount(of: device), is: 2, "the number of events")
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
            ConformanceCheck("Of 64 changes of one status one succeeds") { stores in
                let samples = try Samples(stores)
                let device = samples.device(status: .pending)
                try await stores.add(device, samples)
                let done = try await concurrently(64) { number in
                    try await stores.devices.setStatus(
                        device.deviceID, of: device.appID, from: [.pending],
                        to: number % 2 == 0 ? .registered : .rejected,
                        recording: samples.event(.deviceApproved, device: device.deviceID))
                }
                try expect(done.count { $0 }, is: 1, "the number of changes")
                try expect(try await stores.eventCount(of: device), is: 2, "the number of events")
            },
            ConformanceCheck(
                "Evidence is replaced only while the known row holds, and never by another device's evidence"
            ) {
                stores in
                let samples = try Samples(stores)
                var (device, other) = (
                    samples.device(evidence: samples.evidence()), samples.device(evidence: samples.evidence())
                )
                try await stores.add(device, samples)
                try await stores.add(other, samples)
                let assurance = Assurance(app: .appAttestDevelopment, key: .tee)
                func replace(
                    _ evidence: AppAttestEvidence?, knowing change: (inout DeviceRecord) -> Void = { _ in }
                ) async throws -> Bool {
                    var known = device
                    change(&known)
                    return try await stores.devices.replaceEvidence(
                        of: known, with: evidence, assurance: assurance,
                        recording: samples.event(.deviceEvidenceReplaced, device: device.deviceID))
                }
                let new = samples.evidence(counter: 7)
                try expect(try await replace(other.appAttest), is: false, "by another device's")
                let outdated: [(String, (inout DeviceRecord) -> Void)] = [
                    ("of another key", { $0.key = samples.key() }),
                    ("of another assurance", { $0.assurance = assurance }),
                    ("of another attested key", { $0.appAttest = samples.evidence() }),
                    ("of no attested key", { $0.appAttest = nil }),
                    ("of another counter", { $0.appAttest?.counter = 1 }),
                    ("of a demand to rotate", { $0.mustRotate = RotationDemand(by: stores.now, reason: .scheduled) }),
                ]
                for (what, change) in outdated {
                    try expect(try await replace(new, knowing: change), is: false, what)
                }
                try expect(try await stores.stored(device), is: device, "the device in between")
                try expect(try await replace(new), is: true, "of what is known")
                let before = device
                device.appAttest = new
                device.assurance = assurance
                try expect(try await stores.stored(device), is: device, "the device after")
                try expect(try await replace(nil, knowing: { $0 = before }), is: false, "of what was known before")
                for reason in [RotationReason.scheduled, .compromise] {
                    let demand = RotationDemand(by: stores.now + 60, reason: reason)
                    _ = try await stores.devices.setMustRotate(
                        device.deviceID, of: device.appID, to: demand, recording: samples.event())
                    try expect(try await replace(nil), is: false, "without the demand to rotate")
                    device.mustRotate = demand
                }
                try expect(try await replace(nil), is: true, "by none")
                other.appAttest = nil
                try expect(try await stores.stored(device).appAttest, is: nil, "the evidence at last")
            },
            ConformanceCheck("A counter only grows, and of 64 calls that advance it to one value one succeeds") {
                stores in
                let samples = try Samples(stores)
                let evidence = samples.evidence(counter: 5)
                let device = samples.device(evidence: evidence)
                try await stores.add(device, samples)
                func advance(_ key: [UInt8], _ counter: UInt32) async throws -> Bool {
                    try await stores.devices.advanceCounter(
                        device.deviceID, of: device.appID, attestedKey: key, to: counter)
                }
                try expect(try await advance(evidence.keyID, 5), is: false, "to what it is")
                try expect(try await advance(samples.bytes(), 9), is: false, "of another key")
                let key = evidence.keyID
                let done = try await concurrently(64) { _ in
                    try await stores.devices.advanceCounter(
                        device.deviceID, of: device.appID, attestedKey: key, to: 6)
                }
                try expect(done.count { $0 }, is: 1, "the number that advanced it")
                try expect(try await advance(evidence.keyID, .max), is: true, "to the largest")
                try expect(try await stores.stored(device).appAttest?.counter, is: .max, "the counter")
            },
            ConformanceCheck("The scheme is raised by requests and lowered by operators") { stores in
                let samples = try Samples(stores)
                let device = samples.device()
                try await stores.add(device, samples)
                try await stores.devices.raiseScheme(device.deviceID, of: device.appID, to: .two)
                try await stores.devices.raiseScheme(device.deviceID, of: device.appID, to: .one)
                try expect(try await stores.stored(device).highestScheme, is: .two, "the scheme after raising")
                let event = samples.event(.deviceSchemeLowered, device: device.deviceID)
                let lowered = try await stores.devices.lowerScheme(
                    device.deviceID, of: device.appID, to: .one, recording: event)
                try expect(lowered, is: true, "lowering")
                try expect(try await stores.stored(device).highestScheme, is: .one, "the scheme after lowering")
                try expect(try await stores.eventCount(of: device), is: 2, "the number of events")
                let unknown = try await stores.devices.lowerScheme(
                    samples.deviceID(), of: device.appID, to: .one, recording: samples.event())
                try expect(unknown, is: false, "lowering an unknown device's")
            },
            ConformanceCheck("A demand to rotate is inserted, set and cleared, with its reason") { stores in
                let samples = try Samples(stores)
                var device = samples.device()
                device.mustRotate = RotationDemand(by: stores.now, reason: .compromise)
                try await stores.add(device, samples)
                try expect(try await stores.stored(device), is: device, "the device as inserted")
                let time = stores.now + 3600
                for demand in [
                    RotationDemand(by: time, reason: .scheduled), RotationDemand(by: time, reason: .compromise), nil,
                ] {
                    let done = try await stores.devices.setMustRotate(
                        device.deviceID, of: device.appID, to: demand,
                        recording: samples.event(.deviceMustRotate, device: device.deviceID))
                    try expect(done, is: true, "setting")
                    try expect(try await stores.stored(device).mustRotate, is: demand, "the demand")
                }
            },
            ConformanceCheck("Only devices admitted under observation are held, once each, in steps") { stores in
                let samples = try Samples(stores)
                let observed = (0..<3).map { _ in samples.device(observed: true) }
                let others = [samples.device(), samples.device(status: .revoked, observed: true)]
                for device in observed + others { try await stores.add(device, samples) }
                let elsewhere = samples.device(app: try Samples.appID(), observed: true)
                try await stores.add(elsewhere, samples)
                let event = samples.event(.devicePending)
                func hold() async throws -> Int {
                    try await stores.devices.holdObserved(of: samples.app, limit: 2, recording: event)
                }
                try expect(try await hold(), is: 2, "held in the first step")
                var left = 0
                for device in observed where try await stores.stored(device).admittedUnderObservation { left += 1 }
                try expect(left, is: 1, "still marked after the first step")
                try expect(try await hold(), is: 1, "held in the second step")
                for device in observed {
                    let stored = try await stores.stored(device)
                    try expect(stored.status, is: .pending, "the status of an observed device")
                    try expect(stored.admittedUnderObservation, is: false, "its mark")
                }
                for device in others + [elsewhere] {
                    try expect(try await stores.stored(device), is: device, "another device")
                }
                try expect(try await hold(), is: 0, "held again")
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
