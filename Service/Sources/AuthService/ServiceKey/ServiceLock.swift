/// The lock that a service holds for as long as it has the database open.
///
/// A service reads the check values of the service keys once, when it starts. So a command that changes the sealing
/// key must prevent services from starting until the new check value is recorded.
public protocol ServiceLock: Sendable {
    /// Holds the lock during a change.
    ///
    /// - Returns: false, without making the change, if a service has the database open.
    func withoutService(_ change: () async throws -> Void) async throws -> Bool
}
