package import AuthContract

/// When devices were last seen, until it is written to the store.
package final class SeenDevices: Sendable {
    private let seen = Locked<[DeviceID: UnixTime]>([:])
    private static let maximum = 100_000

    package init() {}

    package func note(_ device: DeviceID, at: UnixTime) {
        seen.access { seen in
            if seen.count < Self.maximum || seen[device] != nil { seen[device] = at }
        }
    }

    /// Whether a device was seen since everything was taken.
    package func contains(_ device: DeviceID) -> Bool { seen.access { $0[device] != nil } }

    /// Takes everything, in batches of at most `LastSeen.step`.
    package func take() -> [[DeviceID: UnixTime]] {
        let taken = seen.access { seen in
            defer { seen = [:] }
            return seen
        }
        var batches: [[DeviceID: UnixTime]] = []
        var batch: [DeviceID: UnixTime] = [:]
        for (device, time) in taken {
            batch[device] = time
            guard batch.count == LastSeen.step else { continue }
            batches.append(batch)
            batch = [:]
        }
        return batch.isEmpty ? batches : batches + [batch]
    }
}
