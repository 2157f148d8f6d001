internal import Bytes

/// Limits the number of pages that this node renders concurrently, of pages that wait, and of forms that it receives. Pages use
/// the stores of the public listener, so many pages at once would make devices wait. A form that arrives slowly occupies memory.
/// One person cannot occupy all places.
///
/// If a person stops waiting for a page, the page keeps its place until it ends. That is acceptable, because every page and
/// every form ends in bounded time.
final class PageQueue: Sendable {
    static let maximumAtOnce = 2
    static let maximumWaiting = 4
    /// The largest number of pages, running and waiting together, for one credential. The same number of forms is allowed in
    /// addition. Checks of drafts are counted separately.
    static let maximumOfCredential = 3

    /// The number of places that each credential occupies.
    private struct Places {
        private var counts: [String: Int] = [:]

        func hasRoom(for id: String, atMost maximum: Int = PageQueue.maximumOfCredential) -> Bool {
            counts[id, default: 0] < maximum
        }

        mutating func add(_ id: String) { counts[id, default: 0] += 1 }

        mutating func remove(_ id: String) {
            let left = counts[id, default: 0] - 1
            counts[id] = left > 0 ? left : nil
        }
    }

    private struct State {
        var running = 0
        var waiting: [CheckedContinuation<Bool, Never>] = []
        var pages = Places()
        var forms = Places()
    }

    private let state = Locked(State())

    /// The number of pages that wait.
    var waiting: Int { state.withLock { $0.waiting.count } }

    /// The name under which the pages and forms of a request are counted. Checks of a draft are counted under a name of their own, so
    /// they do not use up the same person's limits. The name is unique, because an id of a credential has no space.
    static func place(of credentialID: String, isCheck: Bool) -> String {
        isCheck ? "check of \(credentialID)" : credentialID
    }

    // MARK: Forms

    /// Reserves a place for a form, before its body is read. Returns false if the credential already has the largest number of
    /// forms. If this returns true, the caller must call `leaveForm`.
    func enterForm(_ credentialID: String, atMost maximum: Int = maximumOfCredential) -> Bool {
        state.withLock { state in
            guard state.forms.hasRoom(for: credentialID, atMost: maximum) else { return false }
            state.forms.add(credentialID)
            return true
        }
    }

    /// Releases the place of a form.
    func leaveForm(_ credentialID: String) { state.withLock { $0.forms.remove(credentialID) } }

    // MARK: Pages

    /// Waits for a place. Returns false if too many pages wait already, or if the credential already has the largest number of
    /// pages. If this returns true, the caller must call `leave`.
    ///
    /// - Parameters:
    ///   - credentialID: the name under which the page is counted, as returned by `place(of:isCheck:)`.
    ///   - waits: whether to wait for a place. If false, this returns false unless a place is free now.
    func enter(_ credentialID: String, waits: Bool = true) async -> Bool {
        await withCheckedContinuation { continuation in
            let isIn = state.withLock { state -> Bool? in
                guard state.pages.hasRoom(for: credentialID),
                    state.running < Self.maximumAtOnce || waits && state.waiting.count < Self.maximumWaiting
                else { return false }
                state.pages.add(credentialID)
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

    /// Releases the place of a page: the page that has waited longest gets it. If no page waits, the place is free.
    func leave(_ credentialID: String) {
        let next = state.withLock { state -> CheckedContinuation<Bool, Never>? in
            state.pages.remove(credentialID)
            guard !state.waiting.isEmpty else {
                state.running -= 1
                return nil
            }
            return state.waiting.removeFirst()
        }
        next?.resume(returning: true)
    }
}
