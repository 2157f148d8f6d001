internal import AuthService
internal import Bytes

/// The newest server timeline that this process has seen. Earlier timelines are rejected: a former primary may still run, and
/// would return stale data.
final class TimelineGuard: Sendable {
    static let question = Statement(
        """
        SELECT system_identifier::text AS system,
          ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint AS timeline
        FROM pg_control_system()
        """)

    private let newest = Locked<PrimaryPlace?>(nil)
    private let begun = Locked<UInt64>(0)

    /// The number of failovers since this process started: how often it found a server on a newer timeline.
    var failovers: UInt64 { begun.withLock { $0 } }

    private func count(from before: PrimaryPlace?, to place: PrimaryPlace) {
        guard let before, before.system == place.system, before.timeline < place.timeline else { return }
        begun.withLock { $0 &+= 1 }
    }

    /// Records a server's position. Throws if the server belongs to another database system, or is on an earlier timeline.
    func admit(_ place: PrimaryPlace) throws(StoreError) {
        let before = newest.withLock { newest -> PrimaryPlace? in
            let before = newest
            if (before ?? place).system == place.system, (before ?? place).timeline <= place.timeline { newest = place }
            return before
        }
        count(from: before, to: place)
        guard let before else { return }
        guard before.system == place.system else {
            throw StoreError(
                .unavailable, "it is another database system than before: start the node again if it shall use it")
        }
        guard before.timeline <= place.timeline else {
            throw StoreError(
                .unavailable,
                "it is a former primary, on timeline \(place.timeline), and \(before.timeline) has begun: stop it or make it a standby; if it shall be the only one again, run `synheart-auth keeper set` with the configuration of before, and then start the nodes again"
            )
        }
    }

    /// Records the primary that another node uses, if it is of the same database system and on a later timeline. Until this process
    /// has seen a primary itself, it records none.
    func learn(_ place: PrimaryPlace) {
        let before = newest.withLock { newest -> PrimaryPlace? in
            guard let known = newest, known.system == place.system, known.timeline < place.timeline else { return nil }
            newest = place
            return known
        }
        count(from: before, to: place)
    }

    /// Whether the process has seen no newer position than this one.
    func isNewest(_ place: PrimaryPlace) -> Bool { newest.withLock { $0.map { $0 == place } ?? true } }
}
