internal import AuthContract
internal import AuthService
internal import NIOConcurrencyHelpers

/// The memory that the request bodies of a listener may take together, from their first byte until the answer.
///
/// Only bytes that have arrived count, so that announcing a large body takes nothing. The first 16 KiB of each body do not
/// count: the number of connections bounds them, and a flood of large bodies keeps no small request out.
final class BodyBudget: Sendable {
    /// Bytes of each body that do not count. A device's own requests have fewer.
    static let uncounted = 16 * 1024

    private let state: NIOLockedValueBox<(total: Int, taken: Int)>

    init(bytes total: Int) { state = NIOLockedValueBox((total, 0)) }

    /// Changes the budget. Bodies keep what they took.
    func resize(to total: Int) { state.withLockedValue { $0.total = total } }

    /// The share of one request.
    final class Share {
        private let budget: BodyBudget
        private var bytes = 0

        fileprivate init(_ budget: BodyBudget) { self.budget = budget }

        /// Takes as much as a body of this length counts for.
        func cover(_ length: Int) throws(Refusal) {
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
        func release() {
            guard bytes > 0 else { return }
            budget.giveBack(bytes)
            bytes = 0
        }
    }

    /// An empty share.
    func share() -> Share { Share(self) }

    private func take(_ bytes: Int) -> Bool {
        state.withLockedValue { state in
            guard state.taken + bytes <= state.total else { return false }
            state.taken += bytes
            return true
        }
    }

    private func giveBack(_ bytes: Int) { state.withLockedValue { $0.taken -= bytes } }
}
