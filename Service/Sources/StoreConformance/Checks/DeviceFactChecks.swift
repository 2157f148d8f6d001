internal import AuthContract
internal import AuthService

extension StoreConformance {
    /// Checks of the facts that are written without a new version of the device: counter, scheme and last-seen time.
    static var deviceFactChecks: [ConformanceCheck] {
        [
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
                try await stores.devices.writeLastSeen([id: stores.now])
                let change = samples.rotation(of: device)
                try expect(try await stores.devices.save(change), is: .saved, "the change")
                let stored = try await stores.stored(device)
                try expect(stored.appAttest?.counter, is: 9, "the counter")
                try expect(stored.highestScheme, is: .two, "the scheme")
                try expect(stored.lastSeen, is: stores.now, "the last-seen time")
            },
            ConformanceCheck("An App Attest key that was used since the row was read is not replaced") { stores in
                let samples = try Samples(stores)
                let facts: [(AppAttestKeyState) -> DeviceFact] = [
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
            ConformanceCheck("A last-seen time changes by more than an hour or not at all") { stores in
                let samples = try Samples(stores)
                let (first, second) = (samples.device(), samples.device())
                for device in [first, second] { try await stores.add(device, samples) }
                let now = stores.now
                try await stores.devices.writeLastSeen([
                    first.deviceID: now + 5, second.deviceID: now + 6, samples.deviceID(): now,
                ])
                try await stores.devices.writeLastSeen([first.deviceID: now + 1, second.deviceID: now + 6 + 3600])
                try await stores.devices.writeLastSeen([:])
                try expect(try await stores.stored(first).lastSeen, is: now + 5, "the first device's time")
                try expect(try await stores.stored(second).lastSeen, is: now + 6, "the second device's time")
                try await stores.devices.writeLastSeen([second.deviceID: now + 7 + 3600])
                try expect(try await stores.stored(second).lastSeen, is: now + 7 + 3600, "an hour and a second later")
            },
            ConformanceCheck("A call with too many last-seen times is refused") { stores in
                let samples = try Samples(stores)
                let device = samples.device()
                try await stores.add(device, samples)
                var seen = [device.deviceID: stores.now]
                while seen.count < LastSeen.step { seen[samples.deviceID()] = stores.now }
                try await stores.devices.writeLastSeen(seen)
                try expect(try await stores.stored(device).lastSeen, is: stores.now, "the time after a full step")
                seen[device.deviceID] = stores.now + 7200
                seen[samples.deviceID()] = stores.now
                let isRefused = await {
                    do { try await stores.devices.writeLastSeen(seen); return false } catch { return true }
                }()
                try expect(isRefused, "more than a step was written at once")
                try expect(try await stores.stored(device).lastSeen, is: stores.now, "the time after the refusal")
            },
            ConformanceCheck("A last-seen time in the future is corrected") { stores in
                let samples = try Samples(stores)
                let device = samples.device()
                try await stores.add(device, samples)
                try await stores.devices.writeLastSeen([device.deviceID: stores.now + 31_536_000])
                try await stores.devices.writeLastSeen([device.deviceID: stores.now])
                try expect(try await stores.stored(device).lastSeen, is: stores.now, "the time")
            },
        ]
    }
}
