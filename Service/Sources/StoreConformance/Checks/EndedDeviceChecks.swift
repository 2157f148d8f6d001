internal import AuthContract
internal import AuthService

extension StoreConformance {
    static var endedDeviceChecks: [ConformanceCheck] {
        [
            ConformanceCheck("A forgotten device's keys stay bound") {
                stores in
                guard let store = stores.endedDevices else { return }
                let samples = try Samples(stores)
                let device = samples.device(evidence: samples.evidence())
                try await stores.add(device, samples)
                let rotated = try await stores.devices.save([samples.rotation(of: device)])
                try expect(rotated, is: [.saved], "the outcome of the rotation")
                let current = try await stores.stored(device)
                let end = samples.change(current, .deviceDeregistered) { $0.status = .deregistered }
                try expect(try await stores.devices.save([end]), is: [.saved], "the outcome of the end")
                func forget(endedBefore time: UnixTime) async throws -> Int {
                    var all = 0
                    while case let count = try await store.forgetDevices(
                        endedBefore: time, now: stores.now, limit: 1, recording: samples.event(.devicesForgotten)),
                        count > 0
                    { all += count }
                    return all
                }
                // This call must keep the device, because the device ended in this second, and not before it.
                _ = try await forget(endedBefore: samples.now)
                try expect(try await stores.stored(device).key, is: current.key, "the key of what was not forgotten")
                let count = try await forget(endedBefore: samples.now + 1)
                try expect(count >= 1, "nothing was forgotten")
                let found = try await stores.devices.device(device.deviceID, of: device.appID)
                try expect(found, is: nil, "the forgotten device")
                var query = DeviceQuery(limit: 1000)
                query.appID = samples.app
                try expect(try await stores.devices.devices(query), is: [], "the listed devices")
                query.deviceHash = DeviceHash(of: device.deviceID)
                try expect(try await stores.devices.devices(query), is: [], "the devices that the hash finds")
                for key in [device.key, current.key] {
                    let binding = try await stores.devices.binding(of: key.thumbprint)
                    try expect(binding?.deviceID, is: device.deviceID, "the device of a key")
                    let outcome = try await stores.insert(samples.device(key: key), samples)
                    try expect(outcome, is: .keyTaken(try unwrap(binding, "binding")), "the outcome of its key again")
                }
                let other = samples.device(evidence: samples.evidence(keyID: device.appAttest?.keyID))
                try expect(
                    try await stores.insert(other, samples), is: .attestedKeyTaken, "the outcome of its App Attest key")
                try expect(
                    try await stores.devices.save([end]), is: [.conflict], "the outcome of a change of what is gone")
                try expect(try await forget(endedBefore: samples.now + 1), is: 0, "what was forgotten twice")
                let codes = try await stores.codes(samples)
                try expect(codes.first, is: .devicesForgotten, "the last code")
            },
            ConformanceCheck("Registered, pending and revoked devices are never forgotten") { stores in
                guard let store = stores.endedDevices else { return }
                let samples = try Samples(stores)
                let statuses: [DeviceStatus] = [.registered, .pending, .revoked]
                let devices = statuses.map { _ in samples.device() }
                for (device, status) in zip(devices, statuses) {
                    try await stores.add(device, samples)
                    guard status != .registered else { continue }
                    let saved = try await stores.devices.save([samples.change(device) { $0.status = status }])
                    try expect(saved, is: [.saved], "the outcome of a change")
                }
                // Reject the registered device briefly, and then admit it again.
                let rejected = samples.change(devices[0], .deviceRejected) { $0.status = .rejected }
                _ = try await stores.devices.save([rejected])
                let admitted = samples.change(rejected.saved, .deviceApproved) { $0.status = .registered }
                _ = try await stores.devices.save([admitted])
                while try await store.forgetDevices(
                    endedBefore: samples.now + 1, now: stores.now, limit: 1000,
                    recording: samples.event(.devicesForgotten)) > 0
                {}
                for device in devices { _ = try await stores.stored(device) }
            },
        ]
    }
}
