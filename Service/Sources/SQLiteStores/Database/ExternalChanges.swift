internal import AuthService
internal import Foundation

/// Tells listeners that the file was changed by whom they do not know of: by another process, or by a call of our own that
/// had been given up. Looks only while somebody listens.
final class ExternalChanges: @unchecked Sendable {
    // Unchecked: the lock guards everything that varies.
    private let lock = NSLock()
    private let interval: Duration
    private weak var database: StoreDatabase?
    private var listeners: [Int: AsyncStream<Void>.Continuation] = [:]
    private var next = 0
    private var polling: Task<Void, Never>?
    private var isFinished = false
    /// What the last look saw; the first is taken at opening, so that a listener may get a signal for what happened
    /// before it came, but never misses one for what happens after.
    private var lastVersion: Int64

    init(interval: Duration, version: Int64) {
        self.interval = interval
        lastVersion = version
    }

    /// Whom to ask; before anybody listens.
    func observe(_ database: StoreDatabase) {
        lock.withLock { self.database = database }
    }

    func stream() -> AsyncStream<Void> {
        // What was not read yet is one signal: it says that something changed, not how often.
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        lock.withLock {
            guard !isFinished else { return continuation.finish() }
            next += 1
            listeners[next] = continuation
            let number = next
            continuation.onTermination = { [weak self] _ in self?.remove(number) }
            guard polling == nil else { return }
            polling = Task { [weak self, interval] in
                while !Task.isCancelled {
                    await self?.look()
                    do { try await Task.sleep(for: interval) } catch { return }
                }
            }
        }
        return stream
    }

    func finish() {
        let listeners = lock.withLock {
            isFinished = true
            polling?.cancel()
            polling = nil
            defer { self.listeners = [:] }
            return Array(self.listeners.values)
        }
        for listener in listeners { listener.finish() }
    }

    private func remove(_ number: Int) {
        lock.withLock {
            listeners[number] = nil
            guard listeners.isEmpty else { return }
            polling?.cancel()
            polling = nil
        }
    }

    /// Says that something changed.
    func announce() {
        for listener in lock.withLock({ Array(listeners.values) }) { listener.yield() }
    }

    private func look() async {
        guard let database = lock.withLock({ database }), let version = try? await database.dataVersion() else {
            return
        }
        let isNew = lock.withLock {
            defer { lastVersion = version }
            return lastVersion != version
        }
        if isNew { announce() }
    }
}
