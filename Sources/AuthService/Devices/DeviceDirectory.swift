internal import AuthContract

/// Devices by id, with a short memory. A remembered row may accept; before it refuses it is read again.
final class DeviceDirectory: Sendable {
    /// A row and whether it was read just now.
    struct Found: Sendable {
        let device: DeviceRecord
        let isFresh: Bool
    }

    private struct Remembered: Sendable {
        let device: DeviceRecord
        /// A clock that is set back ends it as well: it must not lengthen what a revocation waits for.
        let life: Range<UnixTime>
    }

    private struct Memory: Sendable {
        var devices: RecentMemory<DeviceID, Remembered>
        /// Counts what made the memory forget, so that a row read before that is not remembered after it.
        var epoch = 0
        var use = CacheUse()
    }

    /// Seconds that a row is used where the announcement of a change was lost.
    private static let life: Int64 = 5

    private let store: any DeviceStore
    private let clock: any ServiceClock
    private let memory: Locked<Memory>

    init(store: any DeviceStore, clock: any ServiceClock, capacity: Int) {
        self.store = store
        self.clock = clock
        memory = Locked(Memory(devices: RecentMemory(capacity: capacity)))
    }

    /// How often a device was remembered.
    var use: CacheUse { memory.access { $0.use } }

    /// The device of this app, from memory or from the store. Absence is not remembered.
    func find(_ id: DeviceID, of app: AppID) async throws(Refusal) -> Found? {
        let now = clock.now
        let remembered = memory.access { memory in
            let remembered = memory.devices[id].flatMap {
                $0.device.appID == app && $0.life.contains(now) ? $0.device : nil
            }
            memory.use.note(hit: remembered != nil)
            return remembered
        }
        if let remembered { return Found(device: remembered, isFresh: false) }
        return try await read(id, of: app).map { Found(device: $0, isFresh: true) }
    }

    /// The device of this app, from the store.
    func read(_ id: DeviceID, of app: AppID) async throws(Refusal) -> DeviceRecord? {
        let epoch = memory.access { $0.epoch }
        let device = try await asking { () async throws(StoreError) in try await store.device(id, of: app) }
        if let device {
            let now = clock.now
            memory.access { memory in
                guard memory.epoch == epoch else { return }
                memory.devices[id] = Remembered(device: device, life: now..<(now + Self.life))
            }
        }
        return device
    }

    /// Forgets a device, because it changed.
    func forget(_ id: DeviceID) {
        memory.access { memory in
            memory.epoch += 1
            memory.devices[id] = nil
        }
    }

    /// Forgets everything, because somebody else changed the store.
    func forgetAll() {
        memory.access { memory in
            memory.epoch += 1
            memory.devices.removeAll()
        }
    }
}
