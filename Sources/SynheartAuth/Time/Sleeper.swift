/// Waits; injected, so that no test does.
public protocol Sleeper: Sendable {
    /// Waits for `duration`, or throws `CancellationError`.
    func sleep(for duration: Duration, _ purpose: SleepPurpose) async throws
}

/// What is waited for.
public enum SleepPurpose: Sendable, Hashable, CaseIterable {
    /// Before the next attempt.
    case retry
    /// Another process or task to finish.
    case turn
    /// The moment when a call counts as hung.
    case deadline
}

/// The task's own sleep.
public struct TaskSleeper: Sleeper {
    /// A sleeper.
    public init() {}

    /// Sleeps, whatever for.
    public func sleep(for duration: Duration, _ purpose: SleepPurpose) async throws {
        try await Task.sleep(for: duration)
    }
}

extension Sleeper {
    /// The same for code that throws the SDK's errors.
    func pause(_ duration: Duration, _ purpose: SleepPurpose) async throws(SynheartAuthError) {
        do {
            try await sleep(for: duration, purpose)
        } catch {
            throw .cancelled
        }
    }
}
