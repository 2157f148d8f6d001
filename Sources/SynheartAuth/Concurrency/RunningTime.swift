/// Asks the operating system to let the app run on when the user leaves it.
///
/// A process that is suspended while it holds a file lock in an app group's container is killed, and one that holds any lock keeps
/// the app's extensions waiting.
protocol RunningTime: Sendable {
    /// Begins such a time. The closure ends it.
    func begin() -> @Sendable () -> Void
}

/// Where the system suspends no process.
struct UnlimitedTime: RunningTime {
    func begin() -> @Sendable () -> Void { {} }
}
