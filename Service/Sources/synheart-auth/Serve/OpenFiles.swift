import Foundation

/// The limit of open files. Each connection is an open file.
enum OpenFiles {
    /// The number of open files that are not connections of clients: the database, the journal, connections to providers.
    private static let reserve = 256

    /// Raises the process's soft limit to the hard limit, and returns the number of connections that fit.
    static func makeRoomForConnections() -> Int {
        var limit = rlimit()
        guard getrlimit(resource, &limit) == 0 else { return .max }
        if limit.rlim_cur < limit.rlim_max {
            // Darwin has a maximum that is lower than the hard limit, and refuses a higher value. The limit then stays unchanged.
            var raised = limit
            raised.rlim_cur = limit.rlim_max
            if setrlimit(resource, &raised) == 0 { limit = raised }
        }
        return max(1, (Int(exactly: limit.rlim_cur) ?? .max) - reserve)
    }
}
