internal import AuthContract
internal import AuthService

extension StoreConformance {
    static var deviceCountChecks: [ConformanceCheck] {
        [
            ConformanceCheck("Device counts match a recount after each random change") {
                stores in
                let apps = [try Samples(stores), try Samples(stores)]
                var known: [DeviceRecord] = []
                for _ in 0..<60 {
                    let samples = apps.randomElement() ?? apps[0]
                    switch Int.random(in: 0..<5) {
                    case 0...1:
                        let device = samples.device(status: DeviceStatus.allCases.randomElement() ?? .pending)
                        try await stores.add(device, samples)
                        known.append(device)
                    case 2:
                        // This insertion must be refused, because the key belongs to another device.
                        guard let other = known.randomElement() else { continue }
                        let outcome = try await stores.insert(samples.device(key: other.key), samples)
                        try expect(outcome != .inserted, "a key was bound twice")
                    default:
                        // Save several changes in one call. A change from a version that is not stored is a conflict.
                        let chosen = known.indices.shuffled().prefix(Int.random(in: 1...4))
                        guard !chosen.isEmpty else { continue }
                        let changes = chosen.map { index in
                            var before = known[index]
                            if Int.random(in: 0..<4) == 0 { before.version += 1 }
                            return samples.change(before) {
                                $0.status = DeviceStatus.allCases.randomElement() ?? .revoked
                            }
                        }
                        let outcomes = try await stores.devices.save(changes)
                        for (index, (change, outcome)) in zip(chosen, zip(changes, outcomes)) where outcome == .saved {
                            known[index] = change.saved
                        }
                    }
                    for app in apps.map(\.app) {
                        let recount = known.filter { $0.appID == app }.reduce(into: [:]) { counts, device in
                            counts[device.status, default: 0] += 1
                        }
                        try expect(try await stores.devices.count(of: app), is: recount, "the counts")
                    }
                }
            },
            ConformanceCheck("A query by status lists the devices of all apps, newest first") { stores in
                let apps = [try Samples(stores), try Samples(stores)]
                // No other check uses devices registered at this time.
                let start = stores.now + Int64.random(in: 1_000_000...1_000_000_000)
                var devices: [DeviceRecord] = []
                for age in 0..<3 {
                    for status in DeviceStatus.allCases {
                        for samples in apps {
                            let device = samples.device(status: status, registeredAt: start + Int64(age))
                            try await stores.add(device, samples)
                            devices.append(device)
                        }
                    }
                }
                for status in DeviceStatus.allCases {
                    var query = DeviceQuery(limit: 4)
                    query.status = status
                    (query.registeredFrom, query.registeredBefore) = (start, start + 3)
                    var found = try await stores.devices.devices(query)
                    query.after = found.last.map { DeviceQuery.PageToken($0) }
                    found += try await stores.devices.devices(query)
                    let wanted = devices.filter { $0.status == status }.sorted { left, right in
                        left.registeredAt == right.registeredAt
                            ? left.deviceID.text < right.deviceID.text : left.registeredAt > right.registeredAt
                    }
                    try expect(found, is: wanted, "the devices with status \(status.rawValue)")
                }
            },
        ]
    }
}
