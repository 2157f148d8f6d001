internal import AuthService
internal import Bytes

/// Tells listeners that the file changed without their knowledge: another process changed it, or a call of this process did
/// after its deadline. Polls only while there are listeners.
final class ExternalChanges: Sendable {
    private struct State: Sendable {
        weak var database: StoreDatabase?
        var listeners: [Int: AsyncStream<Void>.Continuation] = [:]
        var lastListener = 0
        var polling: Task<Void, Never>?
        var isFinished = false
        /// The version at the last poll. The first version is read at opening: a listener may get a signal for an earlier
        /// change, but never misses a later one.
        var lastVersion: Int64
    }

    private let interval: Duration
    private let state: Locked<State>

    init(interval: Duration, version: Int64) {
        self.interval = interval
        state = Locked(State(lastVersion: version))
    }

    /// Sets the database to poll. Called once, before there are listeners.
    func observe(_ database: StoreDatabase) {
        state.withLock { $0.database = database }
    }

    func stream() -> AsyncStream<Void> {
        // One buffered signal is enough: it says that something changed, not how often.
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        state.withLock { state in
            guard !state.isFinished else { return continuation.finish() }
            state.lastListener += 1
            let number = state.lastListener
            state.listeners[number] = continuation
            continuation.onTermination = { [weak self] _ in self?.remove(number) }
            guard state.polling == nil else { return }
            state.polling = Task { [weak self, interval] in
                while !Task.isCancelled {
                    await self?.poll()
                    do { try await Task.sleep(for: interval) } catch { return }
                }
            }
        }
        return stream
    }

    func finish() {
        let listeners = state.withLock { state in
            state.isFinished = true
            state.polling?.cancel()
            state.polling = nil
            defer { state.listeners = [:] }
            return Array(state.listeners.values)
        }
        for listener in listeners { listener.finish() }
    }

    private func remove(_ number: Int) {
        state.withLock { state in
            state.listeners[number] = nil
            guard state.listeners.isEmpty else { return }
            state.polling?.cancel()
            state.polling = nil
        }
    }

    /// Signals to the listeners that something changed.
    func announce() {
        for listener in state.withLock({ Array($0.listeners.values) }) { listener.yield() }
    }

    private func poll() async {
        guard let database = state.withLock({ $0.database }), let version = try? await database.dataVersion() else {
            return
        }
        let isNew = state.withLock { state in
            defer { state.lastVersion = version }
            return state.lastVersion != version
        }
        if isNew { announce() }
    }
}
