internal import AuthService
internal import NIOCore
internal import NIOPosix

/// Measures how long a task waits for an event loop of the listeners. A busy loop delays all its connections.
struct EventLoopDelay: Sendable {
    let metrics: ServerMetrics
    /// The pause between two measurements.
    static let interval: Duration = .seconds(1)

    /// Measures each loop once a second, until the task is cancelled.
    func run(sleep: @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }) async {
        while (try? await sleep(Self.interval)) != nil { await measure() }
    }

    /// Measures each loop once. A loop that hangs delays the measurement of all loops, so that tasks do not pile up.
    func measure() async {
        await withTaskGroup(of: Void.self) { group in
            for loop in MultiThreadedEventLoopGroup.singleton.makeIterator() {
                let asked = ContinuousClock.now
                group.addTask {
                    guard let begun = try? await loop.submit({ ContinuousClock.now }).get() else { return }
                    metrics.eventLoopDelayed(by: begun - asked)
                }
            }
        }
    }
}
