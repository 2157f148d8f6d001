import Foundation

/// The open files that this process may have; each connection is one.
enum OpenFiles {
    /// Files that are no connections: the database, the journal, what providers are asked over.
    private static let reserve = 256

    /// Raises the process's own limit as far as it may without anybody's help, and says how many connections fit into it.
    static func makeRoomForConnections() -> Int {
        var limit = rlimit()
        guard getrlimit(resource, &limit) == 0 else { return .max }
        if limit.rlim_cur < limit.rlim_max {
            // Darwin has a smaller bound of its own, which refuses; then what was stays.
            var raised = limit
            raised.rlim_cur = limit.rlim_max
            if setrlimit(resource, &raised) == 0 { limit = raised }
        }
        return max(1, (Int(exactly: limit.rlim_cur) ?? .max) - reserve)
    }
}
