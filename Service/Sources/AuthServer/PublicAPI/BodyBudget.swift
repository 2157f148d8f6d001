internal import AuthContract
package import AuthService
internal import Bytes

/// The memory that all request bodies of a listener may use together, from their first byte until the answer.
///
/// Only received bytes are counted, so announcing a large body uses nothing. The first 16 KiB of each body are not
/// counted, so that a flood of large bodies does not block small requests. The number of connections bounds these bytes.
package final class BodyBudget: Sendable {
    /// The bytes of each body that are not counted. A device's own requests are usually smaller.
    static let uncounted = 16 * 1024

    private let state: Locked<(total: Int, taken: Int)>

    /// - Parameter total: in bytes.
    package init(bytes total: Int) { state = Locked((total, 0)) }

    /// Changes the budget to `total` bytes. Requests keep the bytes that they already took.
    func resize(to total: Int) { state.withLock { $0.total = total } }

    /// The bytes of the budget that one request has taken.
    package final class Share {
        private let budget: BodyBudget
        private var bytes = 0

        fileprivate init(_ budget: BodyBudget) { self.budget = budget }

        /// Takes the counted bytes of a body of `length` bytes from the budget, except those that this share already has.
        ///
        /// - Throws: `SERVICE_UNAVAILABLE` if the budget has too few bytes left.
        package func cover(_ length: Int) throws(Refusal) {
            let more = length - BodyBudget.uncounted - bytes
            guard more > 0 else { return }
            guard budget.take(more) else {
                throw Refusal(
                    .serviceUnavailable, "the bodies of all requests together are too large", retryAfter: 1,
                    hint: "Too many large requests are being received")
            }
            bytes += more
        }

        /// Gives the whole share back to the budget.
        package func release() {
            guard bytes > 0 else { return }
            budget.giveBack(bytes)
            bytes = 0
        }
    }

    /// An empty share.
    package func share() -> Share { Share(self) }

    private func take(_ bytes: Int) -> Bool {
        state.withLock { state in
            guard state.taken + bytes <= state.total else { return false }
            state.taken += bytes
            return true
        }
    }

    private func giveBack(_ bytes: Int) { state.withLock { $0.taken -= bytes } }
}
