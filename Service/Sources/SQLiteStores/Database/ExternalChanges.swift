internal import AuthService
internal import Bytes

/// Tells listeners that the file changed without their knowledge: another process changed it, or a call of this
/// process changed it after the call's deadline. Polls only while there are listeners.
final class ExternalChanges: Sendable {
    private struct State: Sendable {
        weak var database: StoreDatabase?
        var polling: Task<Void, Never>?
        /// The version at the last poll. The first version is read when the database is opened. So a listener may get a signal
        /// for an earlier change, but misses no later change.
        var lastVersion: Int64
    }

    private let interval: Duration
    private let listeners = ChangeListeners()
    private let state: Locked<State>

    init(interval: Duration, version: Int64) {
        self.interval = interval
        state = Locked(State(lastVersion: version))
    }

    /// Sets the database to poll. Called once, before there are listeners.
    func observe(_ database: StoreDatabase) {
        state.withLock { $0.database = database }
    }

    func stream() -> AsyncStream<Void> { listeners.stream { [weak self] in self?.update() } }

    func finish() {
        listeners.finish()
        update()
    }

    /// Signals to the listeners that something changed.
    func announce() { listeners.announce() }

    /// Starts polling for the first listener, and ends it after the last one.
    private func update() {
        state.withLock { state in
            guard !listeners.isEmpty else {
                state.polling?.cancel()
                state.polling = nil
                return
            }
            guard state.polling == nil else { return }
            state.polling = Task { [weak self, interval] in
                while !Task.isCancelled {
                    await self?.poll()
                    do { try await Task.sleep(for: interval) } catch { return }
                }
            }
        }
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
