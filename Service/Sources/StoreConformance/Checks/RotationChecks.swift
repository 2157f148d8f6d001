internal import AuthContract
internal import AuthService

extension StoresUnderTest {
    fileprivate func rotate(_ change: RotationChange, _ samples: Samples) async throws -> RotationOutcome {
        try await devices.rotate(change, recording: samples.event(.keyRotated, device: change.deviceID))
    }

    fileprivate func role(of key: DevicePublicKey) async throws -> KeyBinding.Role? {
        try await devices.binding(of: key.thumbprint)?.role
    }
}

extension StoreConformance {
    static var rotationChecks: [ConformanceCheck] {
        [
            ConformanceCheck("A rotation replaces the key and changes nothing else") { stores in
                let samples = try Samples(stores)
                var device = samples.device(evidence: samples.evidence())
                try await stores.add(device, samples)
                _ = try await stores.devices.setMustRotate(
                    device.deviceID, of: device.appID,
                    to: RotationDemand(by: stores.now + 100, reason: .scheduled),
                    recording: samples.event(.deviceMustRotate, device: device.deviceID))
                let change = samples.rotation(of: device)
                try expect(try await stores.rotate(change, samples), is: .rotated, "the rotation")
                device.previousKey = device.key
                device.previousKeyUntil = change.overlapUntil
                device.key = change.to
                device.keyRotatedAt = change.at
                device.assurance = change.assurance
                try expect(try await stores.stored(device), is: device, "the device after")
            },
            ConformanceCheck("An overlap ends once, only for the current key, and nothing else changes") { stores in
                let samples = try Samples(stores)
                var device = samples.device()
                try await stores.add(device, samples)
                let change = samples.rotation(of: device)
                func end(_ key: DevicePublicKey) async throws -> Bool {
                    try await stores.devices.endOverlap(
                        device.deviceID, of: device.appID, key: key,
                        recording: samples.event(.overlapEnded, device: device.deviceID))
                }
                try expect(try await end(device.key), is: false, "before any rotation")
                try expect(try await stores.rotate(change, samples), is: .rotated, "the rotation")
                try expect(try await end(change.from), is: false, "for the previous key")
                try expect(try await end(change.to), is: true, "for the current key")
                try expect(try await end(change.to), is: false, "again")
                (device.previousKey, device.previousKeyUntil) = (change.from, nil)
                (device.key, device.keyRotatedAt, device.assurance) = (change.to, change.at, change.assurance)
                try expect(try await stores.stored(device), is: device, "the device after")
                try expect(try await stores.eventCount(of: device), is: 3, "the number of events")
            },
            ConformanceCheck("A rotation without an overlap keeps the previous key without a time") { stores in
                let samples = try Samples(stores)
                let device = samples.device()
                try await stores.add(device, samples)
                _ = try await stores.rotate(samples.rotation(of: device, overlap: nil), samples)
                let stored = try await stores.stored(device)
                try expect(stored.previousKey, is: device.key, "the previous key")
                try expect(stored.previousKeyUntil, is: nil, "until when it verifies")
            },
            ConformanceCheck(
                "A key that must rotate because of a compromise gets no overlap and no new evidence"
            ) {
                stores in
                let samples = try Samples(stores)
                for reason in [RotationReason.scheduled, .compromise] {
                    let device = samples.device(evidence: samples.evidence())
                    try await stores.add(device, samples)
                    _ = try await stores.devices.setMustRotate(
                        device.deviceID, of: device.appID, to: RotationDemand(by: stores.now + 100, reason: reason),
                        recording: samples.event(.deviceMustRotate, device: device.deviceID))
                    let isCompromise = reason == .compromise
                    let rebind = samples.rotation(of: device, evidence: samples.evidence())
                    if isCompromise {
                        try expect(try await stores.rotate(rebind, samples), is: .conflict, "the rebind")
                        try expect(try await stores.stored(device).key, is: device.key, "the key after the rebind")
                    }
                    let change = samples.rotation(of: device)
                    try expect(try await stores.rotate(change, samples), is: .rotated, "the rotation")
                    try expect(
                        try await stores.stored(device).previousKeyUntil, is: isCompromise ? nil : change.overlapUntil,
                        "the overlap of a key whose demand is \(reason)")
                }
            },
            ConformanceCheck("A key stays bound for good: current, previous, retired") { stores in
                let samples = try Samples(stores)
                let device = samples.device()
                try await stores.add(device, samples)
                let (second, third) = (samples.key(), samples.key())
                _ = try await stores.rotate(samples.rotation(of: device, to: second), samples)
                _ = try await stores.rotate(samples.rotation(of: device, from: second, to: third), samples)
                try expect(try await stores.role(of: device.key), is: .retired, "the first key's role")
                try expect(try await stores.role(of: second), is: .previous, "the second key's role")
                try expect(try await stores.role(of: third), is: .current, "the third key's role")
                for key in [device.key, second, third] {
                    let again = samples.rotation(of: device, from: third, to: key)
                    try expect(try await stores.rotate(again, samples), is: .keyTaken, "rotating to a key of its own")
                    let outcome = try await stores.devices.insert(
                        samples.device(key: key), maximumPending: 1, recording: samples.event())
                    guard case .keyTaken(let binding) = outcome, binding.deviceID == device.deviceID else {
                        throw Unmet(found: "inserting a bound key gave \(outcome)")
                    }
                }
            },
            ConformanceCheck("Of 64 rotations from one key one succeeds") { stores in
                let samples = try Samples(stores)
                let device = samples.device()
                try await stores.add(device, samples)
                let changes = (0..<64).map { _ in samples.rotation(of: device) }
                let outcomes = try await concurrently(64) { try await stores.rotate(changes[$0], samples) }
                try expect(outcomes.count { $0 == .rotated }, is: 1, "the number of winners")
                try expect(outcomes.count { $0 == .conflict }, is: 63, "the number of losers")
                let winner = try unwrap(outcomes.firstIndex(of: .rotated), "winner")
                try expect(try await stores.stored(device).key, is: changes[winner].to, "the key")
                for (number, change) in changes.enumerated() where number != winner {
                    try expect(try await stores.role(of: change.to), is: nil, "the role of a loser's key")
                }
                try expect(try await stores.eventCount(of: device), is: 2, "the number of events")
            },
            ConformanceCheck("Of 64 devices that rotate to one key one succeeds") { stores in
                let samples = try Samples(stores)
                let devices = (0..<64).map { _ in samples.device() }
                for device in devices { try await stores.add(device, samples) }
                let key = samples.key()
                let outcomes = try await concurrently(64) { number in
                    try await stores.rotate(samples.rotation(of: devices[number], to: key), samples)
                }
                try expect(outcomes.count { $0 == .rotated }, is: 1, "the number of winners")
                try expect(outcomes.count { $0 == .keyTaken }, is: 63, "the number of losers")
            },
            ConformanceCheck("A device that is not registered does not rotate") { stores in
                let samples = try Samples(stores)
                for status in DeviceStatus.allCases where status != .registered {
                    let device = samples.device(status: status)
                    try await stores.add(device, samples)
                    let outcome = try await stores.rotate(samples.rotation(of: device), samples)
                    try expect(outcome, is: .conflict, "the rotation of a device that is \(status)")
                    try expect(try await stores.stored(device), is: device, "the device after")
                }
            },
            ConformanceCheck("A rotation at the same time does not undo a revocation") { stores in
                let samples = try Samples(stores)
                for _ in 0..<8 {
                    let device = samples.device()
                    try await stores.add(device, samples)
                    _ = try await concurrently(8) { number in
                        if number == 4 {
                            _ = try await stores.devices.setStatus(
                                device.deviceID, of: device.appID, from: [.registered], to: .revoked,
                                recording: samples.event(.deviceRevoked, device: device.deviceID))
                        } else {
                            _ = try await stores.rotate(samples.rotation(of: device), samples)
                        }
                    }
                    try expect(try await stores.stored(device).status, is: .revoked, "the status")
                }
            },
            ConformanceCheck("A rotation binds new evidence, unless another device has it") { stores in
                let samples = try Samples(stores)
                let (device, other) = (samples.device(), samples.device(evidence: samples.evidence()))
                try await stores.add(device, samples)
                try await stores.add(other, samples)
                let stolen = samples.rotation(of: device, evidence: other.appAttest)
                try expect(try await stores.rotate(stolen, samples), is: .keyTaken, "with another device's evidence")
                try expect(try await stores.stored(device), is: device, "the device in between")
                let change = samples.rotation(of: device, evidence: samples.evidence(counter: 3))
                try expect(try await stores.rotate(change, samples), is: .rotated, "with evidence of its own")
                try expect(try await stores.stored(device).appAttest, is: change.evidence, "the evidence")
            },
        ]
    }
}
