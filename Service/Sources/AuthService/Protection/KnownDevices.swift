internal import AuthContract
internal import Bytes

/// Which device ids exist, as this node knows it without reading the store: they pass at an address that named too many
/// strangers.
///
/// All ids are read once. From then on the audit log tells which ids were added, on any node: each registration and its event
/// are one transaction, and the events have an order without gaps. A node never refuses an id for what it does not know: while
/// the ids are read, and while the log was not read for `maximumAge`, every id may exist.
final class KnownDevices: Sendable {
    private struct State: Sendable {
        /// Nil until all ids were read.
        var ids: KnownIDs?
        /// The last event whose device is in `ids`; nil: the log was empty.
        var last: AuditLink?
        /// The time at which `ids` had every id of the store.
        var completeAt: UnixTime?
    }

    /// The seconds between two reads of the log.
    static let interval: Int64 = 2
    /// The largest age of what the node knows, in seconds.
    static let maximumAge: Int64 = 5
    private static let page = 1000

    private let devices: any DeviceStore
    private let audit: any AuditLog
    private let clock: any ServiceClock
    private let state = Locked(State())

    init(devices: any DeviceStore, audit: any AuditLog, clock: any ServiceClock) {
        (self.devices, self.audit, self.clock) = (devices, audit, clock)
    }

    /// Whether a device may have this id. False: the store had none with it in the last `maximumAge` seconds.
    func mayExist(_ id: DeviceID) -> Bool {
        let now = clock.now
        return state.withLock { state in
            guard let ids = state.ids, let time = state.completeAt, (0...Self.maximumAge).contains(now - time) else {
                return true
            }
            return ids.contains(id)
        }
    }

    /// Adds the id of a device that this node registered.
    func insert(_ id: DeviceID) { state.withLock { $0.ids?.insert(id) } }

    /// Reads what is new: all ids the first time, and the new events of the log. If a store fails, the next call continues.
    func update() async {
        let now = clock.now
        do throws(StoreError) {
            if state.withLock({ $0.ids == nil }) { try await readAll() }
            guard try await follow() else { return state.withLock { $0 = State() } }
            state.withLock { $0.completeAt = now }
        } catch { return }
    }

    private func readAll() async throws(StoreError) {
        // The link is read first, so that a device that registers meanwhile is found in the log.
        let last = try await audit.link(at: nil)
        var (ids, after) = (KnownIDs(), DeviceQuery.PageToken?.none)
        repeat {
            let page = try await devices.knownIDs(after: after, limit: Self.page)
            for device in page { ids.insert(device.deviceID) }
            after = page.last
        } while after != nil
        state.withLock { if $0.ids == nil { $0 = State(ids: ids, last: last) } }
    }

    /// Adds the devices of new events.
    ///
    /// - Returns: false if the log no longer continues what was read of it, because another database was restored or promoted.
    private func follow() async throws(StoreError) -> Bool {
        let last = state.withLock { $0.last }
        let newest = try await audit.link(at: nil)
        guard newest != last else { return true }
        if let last, try await audit.link(at: last.sequence) != last { return false }
        guard let newest else { return true }
        let (start, end) = (last?.sequence ?? 0, newest.sequence)
        var before = end + 1
        while before > start + 1 {
            let events = try await audit.events(app: nil, device: nil, before: before, limit: Self.page)
            guard let oldest = events.last, oldest.sequence < before else { return false }
            before = oldest.sequence
            for recorded in events where Self.adding.contains(recorded.event.code) {
                if let id = recorded.event.deviceID { insert(id) }
            }
        }
        state.withLock { if $0.last == last { $0.last = newest } }
        return true
    }

    /// The events of new devices.
    private static let adding: Set<AuditEvent.Code> = [.deviceRegistered, .devicePending]
}
