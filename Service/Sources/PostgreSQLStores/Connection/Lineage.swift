internal import AuthService
internal import Bytes

/// Which history of the data a process has seen. It follows a promotion, and never goes back: the former primary may still run,
/// and would answer as if nothing had happened since.
final class Lineage: Sendable {
    /// A server's place in the history.
    struct Place: Sendable, Hashable {
        /// The identifier of the database system, which a replica shares with its primary.
        let system: String
        /// Each promotion begins the next one.
        let timeline: Int64
    }

    static let question = Statement(
        """
        SELECT system_identifier::text AS system,
          ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint AS timeline
        FROM pg_control_system()
        """)

    private let newest = Locked<Place?>(nil)

    /// Takes note of a server. Throws if it is not where this process was last, or behind it.
    func admit(_ place: Place) throws(StoreError) {
        let before = newest.withLock { newest -> Place? in
            let before = newest
            if (before ?? place).system == place.system, (before ?? place).timeline <= place.timeline { newest = place }
            return before
        }
        guard let before else { return }
        guard before.system == place.system else {
            throw StoreError(
                .unavailable, "it is another database system than before: start the node again if it shall use it")
        }
        guard before.timeline <= place.timeline else {
            throw StoreError(
                .unavailable,
                "it is a former primary, on timeline \(place.timeline), and \(before.timeline) has begun: stop it or make it a standby; if it was restored, start the nodes again"
            )
        }
    }

    /// Whether nothing newer was seen than this.
    func isNewest(_ place: Place) -> Bool { newest.withLock { $0.map { $0 == place } ?? true } }
}
