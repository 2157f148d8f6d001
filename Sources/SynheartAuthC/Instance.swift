internal import Bytes
internal import SynheartAuth

/// The instance that a handle owns.
final class Instance: Sendable {
    /// The default deadline of every call except `send`, which has its own.
    static let usualDeadline = Duration.seconds(120)

    let sdk: SynheartAuth
    let sleeper: any Sleeper
    let deadline = Locked(Instance.usualDeadline)
    private let configuration: Locked<SynheartAuth.Configuration>
    private let calls = Locked(Calls())
    private let observation = Locked<Task<Void, Never>?>(nil)

    /// The running calls, which `cancelCalls` ends.
    private struct Calls: Sendable {
        var last: UInt64 = 0
        var running: [UInt64: OnceValue<Void>] = [:]
    }

    deinit { observation.withLock { $0?.cancel() } }

    init(_ configuration: SynheartAuth.Configuration) {
        sdk = SynheartAuth(configuration)
        sleeper = configuration.sleeper
        self.configuration = Locked(configuration)
    }

    /// The instance of a handle. The handle still owns it.
    static func of(_ handle: OpaquePointer) -> Instance {
        Unmanaged<Instance>.fromOpaque(UnsafeRawPointer(handle)).takeUnretainedValue()
    }

    func change(_ change: (inout SynheartAuth.Configuration) -> Void) {
        let old = configuration.withLock { configuration in
            let old = configuration
            change(&configuration)
            sdk.reconfigure(configuration)
            return old
        }
        // The old configuration may be the last owner of a host's table, and the table's `release` may call this function again.
        // So the old configuration is released outside all locks.
        withExtendedLifetime(old) {}
    }

    /// Installs an observer of later events, replacing an earlier one.
    func observe(_ observer: HostObserver) {
        change { $0.logger = observer }
        let changes = sdk.stateChanges
        let task = Task { for await change in changes { observer.changed(change) } }
        let earlier = observation.withLock { observation in
            defer { observation = task }
            return observation
        }
        // Cancelling the earlier task may release its observer, whose `release` may call this function again. So it is cancelled
        // outside the lock.
        earlier?.cancel()
    }

    func cancelCalls() {
        let running = calls.withLock { Array($0.running.values) }
        for call in running { call.give(()) }
    }

    /// The result of a host's call.
    enum Ending<Value: Sendable>: Sendable {
        case value(Value)
        case deadlinePassed, cancelled
    }

    /// Runs `body` until the limit has passed or the host cancels its calls. An operation that `body` began continues.
    func value<Value: Sendable>(
        within limit: Duration, _ body: @escaping @Sendable () async -> Value
    ) async -> Ending<Value> {
        let end = OnceValue<Void>()
        let isCancelled = Locked(false)
        let id = calls.withLock { calls in
            calls.last += 1
            calls.running[calls.last] = end
            return calls.last
        }
        defer { calls.withLock { $0.running[id] = nil } }
        let sleeper = sleeper
        let work = Task { await withDeadline(limit, sleeper, body) }
        // If `work` is cancelled, it returns nil. After it has ended, the cancellation has no effect.
        Task {
            await end.value
            isCancelled.withLock { $0 = true }
            work.cancel()
        }
        defer { end.give(()) }
        if let value = await work.value { return .value(value) }
        return isCancelled.withLock { $0 } ? .cancelled : .deadlinePassed
    }
}
