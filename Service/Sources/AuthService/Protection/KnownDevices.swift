internal import AuthContract
internal import Bytes

/// The ids of devices that are not deregistered, kept in this node's memory. Requests with these ids are judged even
/// if their address sent too many unknown ids.
///
/// This node first reads all ids from the store. After that it follows the audit log, which has the ids that any node
/// adds: each registration and its event are one transaction, and the events are numbered without gaps. Until all ids
/// are read, no id is refused. If this node could not read the log for `maximumAge`, it looks up unknown ids in the
/// store, at a bounded rate, so that these reads do not keep the store overloaded.
final class KnownDevices: Sendable {
    private struct State: Sendable {
        /// The known ids; nil until the first read of all ids begins.
        var ids: KnownIDs?
        /// The last event of the audit log that `ids` takes into account. Devices that later events add may be missing. Nil: the log was
        /// empty.
        var last: AuditLink?
        /// The last device of the last page read; nil: no page was read, or the last one was empty.
        var after: DeviceQuery.PageToken?
        /// Whether all ids were read.
        var isRead = false
        /// The last time at which `ids` had every existing id; nil: not yet.
        var completeAt: UnixTime?
        /// The time until the next retry, if a store fails.
        var retry = KnownDevices.firstRetry

        /// The place where the next page continues; nil: all pages were read, or the first read has not begun.
        var place: Place? { ids == nil || isRead ? nil : Place(last: last, after: after) }
    }

    private struct Place: Equatable {
        let last: AuditLink?
        let after: DeviceQuery.PageToken?
    }

    private enum Bucket { case node }

    /// The time between two reads of the log.
    private static let interval = Duration.seconds(2)
    /// The time until the first retry of a failed read. Each further retry waits twice as long, at most `interval`.
    private static let firstRetry = Duration.milliseconds(200)
    /// The age in seconds beyond which the known ids are too old to refuse an id that is not among them.
    static let maximumAge: Int64 = 5
    private static let page = 1000

    private let devices: any DeviceStore
    private let audit: any AuditLog
    private let clock: any ServiceClock
    private let state = Locked(State())
    /// The limit of reads of the store for unknown ids while the known ids are too old.
    private let unchecked = TokenBuckets<Bucket>(Rate(burst: 100, perMinute: 6000), capacity: 1)

    init(devices: any DeviceStore, audit: any AuditLog, clock: any ServiceClock) {
        (self.devices, self.audit, self.clock) = (devices, audit, clock)
    }

    /// Whether the store may be read for this id. False if the known ids do not include it and are at most `maximumAge` seconds old. If
    /// they are older, only a limited number of unknown ids may be read in a second; false for the ids beyond that number.
    func mayExist(_ id: DeviceID) -> Bool {
        let now = clock.now
        let isCurrent: Bool? = state.withLock { state in
            guard let ids = state.ids, let time = state.completeAt, !ids.contains(id) else { return nil }
            return (0...Self.maximumAge).contains(now - time)
        }
        guard let isCurrent else { return true }
        return !isCurrent && unchecked.take(.node, now: now) == nil
    }

    /// Adds the id of a device that this node or another one registered.
    func insert(_ id: DeviceID) { state.withLock { $0.ids?.insert(id) } }

    /// Reads all ids if this was not done yet, and then the new events of the log. If a store fails, the next call
    /// continues.
    ///
    /// - Returns: the time until the next call is due.
    @discardableResult
    func update() async -> Duration {
        let now = clock.now
        do throws(StoreError) {
            try await readAll()
            let continues = try await follow()
            state.withLock { state in
                state.retry = Self.firstRetry
                if !continues { state = State() } else if state.isRead { state.completeAt = now }
            }
            return Self.interval
        } catch {
            return state.withLock { state in
                defer { state.retry = min(state.retry * 2, Self.interval) }
                return state.retry
            }
        }
    }

    /// Reads all ids if this was not done yet. If the store fails, the next call continues after the last page.
    private func readAll() async throws(StoreError) {
        if state.withLock({ $0.ids == nil }) {
            // Read the link first, so that a device that registers meanwhile is found in the log.
            let last = try await audit.link(at: nil)
            state.withLock { if $0.ids == nil { ($0.ids, $0.last) = (KnownIDs(), last) } }
        }
        while let place = state.withLock({ $0.place }) {
            let page = try await devices.knownIDs(after: place.after, limit: Self.page)
            state.withLock { state in
                // If the place differs, another call has read this page, or has restarted the read of all ids.
                guard state.place == place else { return }
                for device in page { state.ids?.insert(device.deviceID) }
                (state.after, state.isRead) = (page.last, page.isEmpty)
            }
        }
    }

    /// Adds the devices of new events.
    ///
    /// - Returns: false if all ids must be read again. Either the log does not continue the part that was read, because another
    ///   database was restored or promoted, or an event is damaged or was written by a newer version. After all ids were read, the
    ///   log is followed from its newest event on, so the damaged or newer event is not read again.
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
            for recorded in events {
                guard let code = recorded.event.code else { return false }
                guard Self.adding.contains(code) else { continue }
                guard let id = recorded.event.deviceID else { return false }
                insert(id)
            }
        }
        state.withLock { if $0.last == last { $0.last = newest } }
        return true
    }

    /// The events of new devices.
    private static let adding: Set<AuditEvent.Code> = [.deviceRegistered, .devicePending]
}
