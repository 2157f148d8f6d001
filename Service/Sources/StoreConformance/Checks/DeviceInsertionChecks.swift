internal import AuthContract
internal import AuthService

extension StoreConformance {
    /// Checks of the uniqueness of devices and keys, of the limit of pending devices, and of the app record that a device was judged under.
    static var deviceInsertionChecks: [ConformanceCheck] {
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
                "An App Attest key is unique within an app, but not across apps"
            ) {
                stores in
                let samples = try Samples(stores)
                let evidence = samples.evidence()
                try await stores.add(samples.device(evidence: evidence), samples)
                let second = try await stores.insert(samples.device(evidence: evidence), samples)
                try expect(second, is: .attestedKeyTaken, "the outcome within the app")
                try await stores.add(samples.device(evidence: evidence, app: try Samples.appID()), samples)
            },
            ConformanceCheck("The number of pending devices is bounded, even if 64 are inserted concurrently") {
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
            ConformanceCheck("A device of an unknown app is refused, and nothing is stored") { stores in
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
}
