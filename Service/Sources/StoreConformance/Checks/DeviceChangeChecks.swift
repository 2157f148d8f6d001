internal import AuthContract
internal import AuthService

extension StoreConformance {
    /// Checks of device changes and their conflicts, of the stream of external changes, and of the list of devices that
    /// were admitted in mode `observe`.
    static var deviceChangeChecks: [ConformanceCheck] {
        [
            ConformanceCheck(
                "A change is saved only if the stored version is the one that was read, and no other field changes"
            ) {
                stores in
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
                // There are two listeners. Neither stream may end, and neither may replace the other.
                let ended = try await withThrowingTaskGroup(of: Bool.self) { group in
                    for _ in 0..<2 {
                        let changes = stores.devices.externalChanges()
                        group.addTask {
                            for await _ in changes {}
                            return !Task.isCancelled
                        }
                    }
                    group.addTask {
                        // If a stream wrongly ends at once, its task returns before these inserts are done, and the group gets its result
                        // first.
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
            ConformanceCheck("Each change in one call has its own outcome, in order") {
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
        ]
    }
}
