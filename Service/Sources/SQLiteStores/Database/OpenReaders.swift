internal import Dispatch
internal import GRDB

/// The reading connections of a pool that are open.
///
/// GRDB closes a connection when nothing refers to it any more, which may be a moment after the connection was given back. SQLite
/// destroys the functions of a connection after it has closed the files (sqlite3LeaveMutexAndCloseZombie), so each connection has a
/// function whose end is counted.
struct OpenReaders: Sendable {
    private let connections = DispatchGroup()

    /// Counts a connection until it is closed.
    func count(_ database: Database) {
        let connection = Connection(of: connections)
        database.add(
            function: DatabaseFunction("counted", argumentCount: 0) { _ in
                withExtendedLifetime(connection) { nil }
            })
    }

    /// Waits until every connection is closed, for at most ten seconds. It blocks its thread.
    func waitUntilClosed() { _ = connections.wait(timeout: .now() + 10) }

    private final class Connection: Sendable {
        private let group: DispatchGroup

        init(of group: DispatchGroup) {
            self.group = group
            group.enter()
        }

        deinit { group.leave() }
    }
}
