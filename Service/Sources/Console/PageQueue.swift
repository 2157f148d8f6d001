internal import Bytes

/// The pages that this node works on at once, and those that wait. They use the stores of the public listener, so that many of them would
/// make devices wait. One person cannot take all places from the others.
///
/// A page of a person who has left keeps its place. Places are few, and every page ends.
final class PageQueue: Sendable {
    static let maximumAtOnce = 2
    static let maximumWaiting = 4
    /// The places, of both kinds, that one credential may have.
    static let maximumOfCredential = 3

    private struct State {
        var running = 0
        var waiting: [CheckedContinuation<Bool, Never>] = []
        /// The places that each credential has.
        var places: [String: Int] = [:]
    }

    private let state = Locked(State())

    /// The pages that wait.
    var waiting: Int { state.withLock { $0.waiting.count } }

    /// Waits for a place. False: too many wait already, or the credential has enough places. Otherwise the caller must leave.
    func enter(_ credentialID: String) async -> Bool {
        await withCheckedContinuation { continuation in
            let isIn = state.withLock { state -> Bool? in
                let places = state.places[credentialID, default: 0]
                guard places < Self.maximumOfCredential,
                    state.running < Self.maximumAtOnce || state.waiting.count < Self.maximumWaiting
                else { return false }
                state.places[credentialID] = places + 1
                if state.running < Self.maximumAtOnce {
                    state.running += 1
                    return true
                }
                state.waiting.append(continuation)
                return nil
            }
            if let isIn { continuation.resume(returning: isIn) }
        }
    }

    /// Gives the place to the page that has waited longest.
    func leave(_ credentialID: String) {
        let next = state.withLock { state -> CheckedContinuation<Bool, Never>? in
            let places = state.places[credentialID, default: 0] - 1
            state.places[credentialID] = places > 0 ? places : nil
            guard !state.waiting.isEmpty else {
                state.running -= 1
                return nil
            }
            return state.waiting.removeFirst()
        }
        next?.resume(returning: true)
    }
}
