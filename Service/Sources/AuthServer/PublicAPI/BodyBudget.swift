internal import AuthContract
internal import AuthService
internal import NIOConcurrencyHelpers

/// The memory that the bodies of all requests of a listener may take together, from their first byte here until the request
/// was answered.
///
/// What arrived counts and not what was announced, or announcing alone would use it up. The first bytes of each body do not
/// count: they are bounded by the number of connections, cost small requests nothing, and so a flood of large bodies keeps
/// no small one out.
final class BodyBudget: Sendable {
    /// Bytes of each body that do not count: more than a device's own requests have.
    static let uncounted = 16 * 1024

    private let state: NIOLockedValueBox<(total: Int, held: Int)>

    init(bytes total: Int) { state = NIOLockedValueBox((total, 0)) }

    /// Changes how much there is; what is held stays.
    func resize(to total: Int) { state.withLockedValue { $0.total = total } }

    /// What one request holds of a budget.
    struct Hold: Sendable {
        private let budget: BodyBudget
        private var bytes = 0

        fileprivate init(_ budget: BodyBudget) { self.budget = budget }

        /// Takes what a body of so many bytes counts for.
        mutating func cover(_ length: Int) throws(Refusal) {
            let more = length - BodyBudget.uncounted - bytes
            guard more > 0 else { return }
            guard budget.take(more) else {
                throw Refusal(
                    .serviceUnavailable, "the bodies of all requests together are too large", retryAfter: 1,
                    hint: "Too many large requests are being received")
            }
            bytes += more
        }

        /// Gives everything back.
        mutating func release() {
            guard bytes > 0 else { return }
            budget.give(back: bytes)
            bytes = 0
        }
    }

    /// A hold of nothing yet.
    var hold: Hold { Hold(self) }

    private func take(_ bytes: Int) -> Bool {
        state.withLockedValue { state in
            guard state.held + bytes <= state.total else { return false }
            state.held += bytes
            return true
        }
    }

    private func give(back bytes: Int) { state.withLockedValue { $0.held -= bytes } }
}
