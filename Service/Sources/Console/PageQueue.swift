internal import Bytes

/// The pages that this node works on at once, and those that wait. They use the stores of the public listener, so that many of them would
/// make devices wait.
///
/// A page of a person who has left keeps its place. Places are few, and every page ends.
final class PageQueue: Sendable {
    static let maximumAtOnce = 2
    static let maximumWaiting = 4

    private struct State {
        var running = 0
        var waiting: [CheckedContinuation<Bool, Never>] = []
    }

    private let state = Locked(State())

    /// The pages that wait.
    var waiting: Int { state.withLock { $0.waiting.count } }

    /// Waits for a place. False: too many wait already. Otherwise the caller must leave.
    func enter() async -> Bool {
        await withCheckedContinuation { continuation in
            let isIn = state.withLock { state -> Bool? in
                if state.running < Self.maximumAtOnce {
                    state.running += 1
                    return true
                }
                guard state.waiting.count < Self.maximumWaiting else { return false }
                state.waiting.append(continuation)
                return nil
            }
            if let isIn { continuation.resume(returning: isIn) }
        }
    }

    /// Gives the place to the page that has waited longest.
    func leave() {
        let next = state.withLock { state -> CheckedContinuation<Bool, Never>? in
            guard !state.waiting.isEmpty else {
                state.running -= 1
                return nil
            }
            return state.waiting.removeFirst()
        }
        next?.resume(returning: true)
    }
}
