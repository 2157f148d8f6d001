internal import AuthContract
internal import AuthService

extension StoresUnderTest {
    fileprivate func role(of key: DevicePublicKey) async throws -> KeyBinding.Role? {
        try await devices.binding(of: key.thumbprint)?.role
    }
}

extension StoreConformance {
    static var rotationChecks: [ConformanceCheck] {
        [
            ConformanceCheck("A rotation replaces the key and changes nothing else") { stores in
                let samples = try Samples(stores)
                let device = samples.device(evidence: samples.evidence())
                try await stores.add(device, samples)
                for overlap in [60, nil] as [Int64?] {
                    let change = samples.rotation(of: try await stores.stored(device), overlap: overlap)
                    try expect(try await stores.devices.save(change), is: .saved, "the rotation")
                    try expect(try await stores.stored(device), is: change.saved, "the device after")
                }
            },
            ConformanceCheck("A key stays bound for good: current, previous, retired") { stores in
                let samples = try Samples(stores)
                let device = samples.device()
                try await stores.add(device, samples)
                let (second, third) = (samples.key(), samples.key())
                for key in [second, third] {
                    let known = try await stores.stored(device)
                    try expect(
                        try await stores.devices.save(samples.rotation(of: known, to: key)), is: .saved, "a rotation")
                }
                try expect(try await stores.role(of: device.key), is: .retired, "the first key's role")
                try expect(try await stores.role(of: second), is: .previous, "the second key's role")
                try expect(try await stores.role(of: third), is: .current, "the third key's role")
                for key in [device.key, second] {
                    let again = samples.rotation(of: try await stores.stored(device), to: key)
                    try expect(try await stores.devices.save(again), is: .keyTaken, "rotating to a key of its own")
                }
                for key in [device.key, second, third] {
                    let outcome = try await stores.insert(samples.device(key: key), samples)
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
                let outcomes = try await concurrently(64) { try await stores.devices.save(changes[$0]) }
                try expect(outcomes.count { $0 == .saved }, is: 1, "the number of winners")
                try expect(outcomes.count { $0 == .conflict }, is: 63, "the number of losers")
                let winner = try unwrap(outcomes.firstIndex(of: .saved), "winner")
                try expect(try await stores.stored(device).key, is: changes[winner].after.key, "the key")
                for (number, change) in changes.enumerated() where number != winner {
                    try expect(try await stores.role(of: change.after.key), is: nil, "the role of a loser's key")
                }
                try expect(try await stores.eventCount(of: device), is: 2, "the number of events")
            },
            ConformanceCheck("Of 64 devices that rotate to one key one succeeds") { stores in
                let samples = try Samples(stores)
                let devices = (0..<64).map { _ in samples.device() }
                for device in devices { try await stores.add(device, samples) }
                let key = samples.key()
                let outcomes = try await concurrently(64) { number in
                    try await stores.devices.save(samples.rotation(of: devices[number], to: key))
                }
                try expect(outcomes.count { $0 == .saved }, is: 1, "the number of winners")
                try expect(outcomes.count { $0 == .keyTaken }, is: 63, "the number of losers")
            },
            ConformanceCheck("A rotation at the same time does not undo a revocation") { stores in
                let samples = try Samples(stores)
                for _ in 0..<8 {
                    let device = samples.device()
                    try await stores.add(device, samples)
                    _ = try await concurrently(8) { number in
                        // Retries until the change is saved, because another change may be faster.
                        var isSaved = false
                        while !isSaved {
                            let known = try await stores.stored(device)
                            guard known.status == .registered else { return }
                            let change =
                                number == 4
                                ? samples.change(known) { $0.status = .revoked } : samples.rotation(of: known)
                            isSaved = try await stores.devices.save(change) == .saved
                        }
                    }
                    try expect(try await stores.stored(device).status, is: .revoked, "the status")
                }
            },
            ConformanceCheck("A rotation binds new evidence, unless another device has it") { stores in
                let samples = try Samples(stores)
                let (device, other) = (samples.device(), samples.device(evidence: samples.evidence()))
                for device in [device, other] { try await stores.add(device, samples) }
                let stolen = samples.rotation(of: device, evidence: other.appAttest)
                try expect(try await stores.devices.save(stolen), is: .keyTaken, "with another device's evidence")
                try expect(try await stores.stored(device), is: device, "the device in between")
                let change = samples.rotation(of: device, evidence: samples.evidence(counter: 3))
                try expect(try await stores.devices.save(change), is: .saved, "with evidence of its own")
                try expect(try await stores.stored(device).appAttest, is: change.after.appAttest, "the evidence")
            },
        ]
    }
}
