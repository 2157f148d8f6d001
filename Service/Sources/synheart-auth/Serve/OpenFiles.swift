import Foundation

/// The limit of open files. Each connection is an open file.
enum OpenFiles {
    /// Files that are not connections of clients: the database, the journal, connections to providers.
    private static let reserve = 256

    /// Raises the process's soft limit to the hard limit, and returns the number of connections that fit.
    static func makeRoomForConnections() -> Int {
        var limit = rlimit()
        guard getrlimit(resource, &limit) == 0 else { return .max }
        if limit.rlim_cur < limit.rlim_max {
            // Darwin refuses values above a maximum of its own, below the hard limit. In that case the limit stays unchanged.
            var raised = limit
            raised.rlim_cur = limit.rlim_max
            if setrlimit(resource, &raised) == 0 { limit = raised }
        }
        return max(1, (Int(exactly: limit.rlim_cur) ?? .max) - reserve)
    }
}
