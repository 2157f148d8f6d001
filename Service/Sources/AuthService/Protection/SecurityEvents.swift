internal import AuthContract

/// Which security events of unauthenticated requests are recorded: nobody can prune the audit log, so anybody who could
/// write to it without bounds would fill the disk.
///
/// One a minute for each app and address, and 10 a minute for each app however many addresses there are. The rest is
/// counted, and the next event that is recorded says how many.
final class SecurityEvents: Sendable {
    /// How many events were not recorded since the last one that was.
    struct Unrecorded: Sendable, Hashable {
        /// Of this app and address.
        let ofAddress: Int
        /// Of this app, from all addresses.
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
        /// When the last events were recorded, at most `maximumOfApp`, oldest first.
        var recorded: [UnixTime] = []
        var unrecorded = 0
    }

    private struct State: Sendable {
        var addresses = RecentMemory<Source, Address>(capacity: 20_000)
        var apps = RecentMemory<AppID, App>(capacity: 20_000)
    }

    static let maximumOfApp = 10
    private static let minute: Int64 = 60
    private let state = Locked(State())

    /// Notes an event; nil where it is only counted.
    func note(app id: AppID, address: ClientAddress, now: UnixTime) -> Unrecorded? {
        state.access { state in
            let source = Source(app: id, address: address)
            var (known, app) = (state.addresses[source] ?? Address(), state.apps[id] ?? App())
            defer { (state.addresses[source], state.apps[id]) = (known, app) }
            // A clock that was set back starts a new minute: the times after it say nothing.
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
