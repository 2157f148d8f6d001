internal import Dispatch
internal import GRDB

/// Counts the open reading connections of a pool.
///
/// GRDB closes a connection when the last reference to it ends, which may be a moment after the connection was returned to the
/// pool. SQLite destroys the functions of a connection after it has closed the files (sqlite3LeaveMutexAndCloseZombie). So each
/// connection gets a function whose destruction shows that the connection is closed.
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
