package import AuthContract
internal import Bytes

/// The times at which devices were last seen, until they are written to the store.
package final class LastSeenBuffer: Sendable {
    private let seen = Locked<[DeviceID: UnixTime]>([:])
    private static let maximum = 100_000

    package init() {}

    /// Records that a device was seen.
    package func record(_ device: DeviceID, at: UnixTime) {
        seen.withLock { seen in
            if seen.count < Self.maximum || seen[device] != nil { seen[device] = at }
        }
    }

    /// Whether a device was seen since the last call of `take`.
    package func contains(_ device: DeviceID) -> Bool { seen.withLock { $0[device] != nil } }

    /// Removes and returns all times, in batches of at most `LastSeen.step`.
    package func take() -> [[DeviceID: UnixTime]] {
        let taken = seen.withLock { seen in
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
