/// Waits. It is injected, so that tests do not wait.
public protocol Sleeper: Sendable {
    /// Waits for `duration`. Throws `CancellationError` if the task is cancelled.
    func sleep(for duration: Duration, _ purpose: SleepPurpose) async throws
}

/// The purpose of a wait.
public enum SleepPurpose: Sendable, Hashable, CaseIterable {
    /// The pause before the next attempt.
    case retry
    /// The wait for another process or task.
    case turn
    /// The delay after which a call is treated as hung.
    case deadline
}

/// Waits by `Task.sleep`.
public struct TaskSleeper: Sleeper {
    /// A sleeper.
    public init() {}

    /// Waits by `Task.sleep`, whatever the purpose.
    public func sleep(for duration: Duration, _ purpose: SleepPurpose) async throws {
        try await Task.sleep(for: duration)
    }
}

extension Sleeper {
    /// Waits. Throws the SDK's `cancelled` error if `sleep` throws.
    func pause(_ duration: Duration, _ purpose: SleepPurpose) async throws(SynheartAuthError) {
        do {
            try await sleep(for: duration, purpose)
        } catch {
            throw .cancelled
        }
    }
}
