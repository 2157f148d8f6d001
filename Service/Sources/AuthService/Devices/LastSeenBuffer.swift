package import AuthContract
internal import Bytes

/// The times at which devices were last seen. A time that was written to the store is kept until the next flush.
package final class LastSeenBuffer: Sendable {
    private struct Entry {
        var at: UnixTime
        var isWritten = false
    }

    private let seen = Locked<[DeviceID: Entry]>([:])
    private static let maximum = 200_000

    package init() {}

    /// Records that a device was seen. A full buffer ignores further devices.
    package func record(_ device: DeviceID, at: UnixTime) {
        seen.withLock { seen in
            if seen.count < Self.maximum || seen[device] != nil { seen[device] = Entry(at: at) }
        }
    }

    /// Whether a device may have been seen since the flush before the last one. A full buffer cannot exclude any device.
    ///
    /// If this returns false, a row of the device that was read at most one flush interval ago has the last-seen time.
    package func mayContain(_ device: DeviceID) -> Bool {
        seen.withLock { $0[device] != nil || $0.count >= Self.maximum }
    }

    /// Begins a flush: removes the written times, and returns the others in batches of at most `LastSeen.step`.
    package func flush() -> [[DeviceID: UnixTime]] {
        let waiting = seen.withLock { seen in
            seen = seen.filter { !$0.value.isWritten }
            return seen
        }
        var batches: [[DeviceID: UnixTime]] = []
        var batch: [DeviceID: UnixTime] = [:]
        for (device, entry) in waiting {
            batch[device] = entry.at
            guard batch.count == LastSeen.step else { continue }
            batches.append(batch)
            batch = [:]
        }
        return batch.isEmpty ? batches : batches + [batch]
    }

    /// Marks the times of a batch as written, except those of devices that were seen again since.
    package func markWritten(_ batch: [DeviceID: UnixTime]) {
        seen.withLock { seen in
            for (device, time) in batch where seen[device]?.at == time { seen[device]?.isWritten = true }
        }
    }
}
