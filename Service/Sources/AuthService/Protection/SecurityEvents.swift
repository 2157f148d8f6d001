internal import AuthContract
internal import Bytes

/// Decides which security events of unauthenticated requests are recorded. The audit log and its archives are
/// never shortened, so unbounded events would fill the disk.
///
/// One event a minute is recorded for each app and address, and 10 a minute for each app. Other events are only counted, and
/// the next recorded event has their number.
final class SecurityEvents: Sendable {
    /// Events after the last recorded one, which were only counted.
    struct Unrecorded: Sendable, Hashable {
        /// The events of this app and address.
        let ofAddress: Int
        /// The events of this app from all addresses.
        let ofApp: Int
    }

    private struct Source: Hashable, Sendable {
        let app: AppID
        let address: ClientAddress
    }

    private struct Address: Sendable {
        var recordedAt: UnixTime?
        var unrecorded = 0
    }

    private struct App: Sendable {
        /// The times of the last recorded events, at most `maximumOfApp`, oldest first.
        var recorded: [UnixTime] = []
        var unrecorded = 0
    }

    private struct State: Sendable {
        var addresses = BoundedCache<Source, Address>(capacity: 20_000)
        var apps = BoundedCache<AppID, App>(capacity: 20_000)
    }

    static let maximumOfApp = 10
    private static let minute: Int64 = 60
    private let state = Locked(State())

    /// Counts an event. If it is recorded, returns how many events before it were only counted. Otherwise returns nil.
    func record(app id: AppID, address: ClientAddress, now: UnixTime) -> Unrecorded? {
        state.withLock { state in
            let source = Source(app: id, address: address)
            var (known, app) = (state.addresses[source] ?? Address(), state.apps[id] ?? App())
            defer { (state.addresses[source], state.apps[id]) = (known, app) }
            // A clock that was set back starts a new minute.
            app.recorded.removeAll { !Self.isRecent($0, now) }
            let isFirst = known.recordedAt.map { !Self.isRecent($0, now) } ?? true
            guard isFirst, app.recorded.count < Self.maximumOfApp else {
                known.unrecorded += 1
                app.unrecorded += 1
                return nil
            }
            let unrecorded = Unrecorded(ofAddress: known.unrecorded, ofApp: app.unrecorded)
            (known, app.unrecorded) = (Address(recordedAt: now), 0)
            app.recorded.append(now)
            return unrecorded
        }
    }

    private static func isRecent(_ time: UnixTime, _ now: UnixTime) -> Bool { (0..<minute).contains(now - time) }
}
