internal import AuthContract
internal import AuthService

extension StoreConformance {
    static var listingChecks: [ConformanceCheck] {
        [
            ConformanceCheck("Pages list every device once, newest or oldest first, and by id within a second") {
                stores in
                let samples = try Samples(stores)
                let devices = (0..<25).map { samples.device(registeredAt: stores.now + Int64($0 / 4)) }
                for device in devices { try await stores.add(device, samples) }
                let wanted = devices.sorted { left, right in
                    left.registeredAt == right.registeredAt
                        ? left.deviceID.text < right.deviceID.text : left.registeredAt > right.registeredAt
                }
                var (query, pages) = (DeviceQuery(limit: 4), [[DeviceRecord]]())
                query.appID = samples.app
                while pages.count < 10 {
                    let page = try await stores.devices.devices(query)
                    pages.append(page)
                    guard let last = page.last else { break }
                    query.after = DeviceQuery.PageToken(last)
                }
                try expect(pages.map(\.count), is: [4, 4, 4, 4, 4, 4, 1, 0], "the sizes of the pages")
                try expect(pages.flatMap { $0 }, is: wanted, "the devices")
                (query.order, query.after) = (.oldest, nil)
                var reversed: [DeviceRecord] = []
                while reversed.count < 100 {
                    let page = try await stores.devices.devices(query)
                    reversed += page
                    guard let last = page.last else { break }
                    query.after = DeviceQuery.PageToken(last)
                }
                try expect(reversed, is: wanted.reversed(), "the devices, oldest first")
            },
            ConformanceCheck("Pages of known ids list every device once that is not deregistered, of all apps") {
                stores in
                let (samples, other) = (try Samples(stores), try Samples(stores))
                var (wanted, hidden) = (Set<DeviceID>(), Set<DeviceID>())
                for number in 0..<9 {
                    let status = DeviceStatus.allCases[number % DeviceStatus.allCases.count]
                    let owner = number < 5 ? samples : other
                    let device = owner.device(status: status, registeredAt: stores.now + Int64(number / 3))
                    try await stores.add(device, owner)
                    if status == .deregistered {
                        hidden.insert(device.deviceID)
                    } else {
                        wanted.insert(device.deviceID)
                    }
                }
                var (ids, after) = ([DeviceQuery.PageToken](), DeviceQuery.PageToken?.none)
                repeat {
                    let page = try await stores.devices.knownIDs(after: after, limit: 2)
                    try expect(page.count <= 2, is: true, "a page within its limit")
                    ids += page
                    after = page.last
                } while after != nil
                let sorted = ids.sorted { left, right in
                    left.registeredAt == right.registeredAt
                        ? left.deviceID.text < right.deviceID.text : left.registeredAt > right.registeredAt
                }
                try expect(ids, is: sorted, "the order")
                let found = Set(ids.map(\.deviceID))
                try expect(found.count, is: ids.count, "the number of different ids")
                try expect(found.intersection(wanted), is: wanted, "what was found of the devices")
                try expect(found.intersection(hidden), is: [], "what was found of the deregistered devices")
            },
            ConformanceCheck("A query applies status, platform and time together") { stores in
                let samples = try Samples(stores)
                let now = stores.now
                var devices: [DeviceRecord] = []
                for status in [DeviceStatus.registered, .pending, .revoked] {
                    for platform in Platform.allCases {
                        for age in 0..<3 {
                            devices.append(
                                samples.device(status: status, registeredAt: now - Int64(age), platform: platform))
                        }
                    }
                }
                for device in devices { try await stores.add(device, samples) }
                var query = DeviceQuery(limit: 1000)
                query.appID = samples.app
                try expect(try await stores.devices.devices(query).count, is: 18, "the number without conditions")
                query.status = .pending
                try expect(try await stores.devices.devices(query).count, is: 6, "the number by status")
                query.platform = .android
                try expect(try await stores.devices.devices(query).count, is: 3, "the number by platform too")
                query.registeredFrom = now - 1
                query.registeredBefore = now
                let found = try await stores.devices.devices(query)
                let wanted = devices.filter {
                    $0.status == .pending && $0.platform == .android && $0.registeredAt == now - 1
                }
                try expect(found, is: wanted, "the devices found by time too")
            },
            ConformanceCheck("A device is found by its id and by the hash of its id, in the apps of the query alone") {
                stores in
                let (samples, other) = (try Samples(stores), try Samples(stores))
                let (device, neighbour, foreign) = (samples.device(), samples.device(), other.device(status: .pending))
                try await stores.add(device, samples)
                try await stores.add(neighbour, samples)
                try await stores.add(foreign, other)
                func found(
                    _ sought: DeviceRecord, _ change: (inout DeviceQuery) -> Void = { _ in }
                ) async throws
                    -> [DeviceID]
                {
                    var byID = DeviceQuery()
                    byID.deviceID = sought.deviceID
                    change(&byID)
                    var byHash = byID
                    (byHash.deviceID, byHash.deviceHash) = (nil, DeviceHash(of: sought.deviceID))
                    let devices = try await stores.devices.devices(byID)
                    try expect(try await stores.devices.devices(byHash), is: devices, "what the hash finds")
                    return devices.map(\.deviceID)
                }
                for each in [device, neighbour, foreign] {
                    try expect(try await found(each), is: [each.deviceID], "the device in all apps")
                }
                try expect(try await found(samples.device()), is: [], "the device that does not exist")
                let apps = CredentialScope.apps([samples.app])
                try expect(try await found(device) { $0.scope = apps }, is: [device.deviceID], "the device in its app")
                try expect(try await found(foreign) { $0.scope = apps }, is: [], "the device of another app")
                let both = CredentialScope.apps([samples.app, other.app])
                try expect(
                    try await found(foreign) { $0.scope = both }, is: [foreign.deviceID], "the device in two apps")
                try expect(try await found(foreign) { $0.scope = .apps([]) }, is: [], "the device in no app")
                try expect(
                    try await found(device) { $0.appID = samples.app }, is: [device.deviceID], "the device of one app")
                try expect(try await found(foreign) { $0.appID = samples.app }, is: [], "the device of one other app")
                try expect(
                    try await found(foreign) { $0.status = .pending }, is: [foreign.deviceID], "the pending device")
                try expect(try await found(device) { $0.status = .pending }, is: [], "the device with another status")
            },
            ConformanceCheck("Risk metrics are counted over an app's registered devices") { stores in
                let (samples, other) = (try Samples(stores), try Samples(stores))
                func device(_ metric: Int?, _ samples: Samples, _ status: DeviceStatus = .registered) -> DeviceRecord {
                    var evidence = samples.evidence()
                    evidence.riskMetric = metric
                    return samples.device(status: status, evidence: evidence)
                }
                for metric in [1, 3, 3, nil] { try await stores.add(device(metric, samples), samples) }
                try await stores.add(device(3, samples, .revoked), samples)
                try await stores.add(samples.device(platform: .android), samples)
                try await stores.add(device(9, other), other)
                try expect(try await stores.devices.riskMetrics(of: samples.app), is: [1: 1, 3: 2], "the counts")
            },
            ConformanceCheck("The devices of one app are counted by status") { stores in
                let samples = try Samples(stores)
                try expect(try await stores.devices.count(of: samples.app), is: [:], "the counts of no devices")
                for status in [DeviceStatus.registered, .registered, .revoked] {
                    try await stores.add(samples.device(status: status), samples)
                }
                let counts = try await stores.devices.count(of: samples.app)
                try expect(counts, is: [.registered: 2, .revoked: 1], "the counts")
            },
        ]
    }
}
