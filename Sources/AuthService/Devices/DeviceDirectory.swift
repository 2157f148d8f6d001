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
        let until: UnixTime
    }

    private struct Memory: Sendable {
        var devices: RecentMemory<DeviceID, Remembered>
        /// Counts what made the memory forget, so that a row read before that is not remembered after it.
        var epoch = 0
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

    /// The device of this app, from memory or from the store. Absence is not remembered.
    func find(_ id: DeviceID, of app: AppID) async throws(Refusal) -> Found? {
        let now = clock.now
        let remembered = memory.access { memory in memory.devices[id] }
        if let remembered, remembered.device.appID == app, now < remembered.until {
            return Found(device: remembered.device, isFresh: false)
        }
        return try await read(id, of: app).map { Found(device: $0, isFresh: true) }
    }

    /// The device of this app, from the store.
    func read(_ id: DeviceID, of app: AppID) async throws(Refusal) -> DeviceRecord? {
        let epoch = memory.access { $0.epoch }
        let device = try await asking { () async throws(StoreError) in try await store.device(id, of: app) }
        if let device {
            let until = clock.now + Self.life
            memory.access { memory in
                if memory.epoch == epoch { memory.devices[id] = Remembered(device: device, until: until) }
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
