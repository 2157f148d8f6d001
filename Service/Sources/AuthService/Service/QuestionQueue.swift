internal import AuthContract
internal import Bytes

/// Runs questions, which are queries that read many rows of a store, one after another. So they never occupy more than one of the
/// connections with which the store reads. The requests of devices need these connections too. A question beyond eight is refused at once.
package final class QuestionQueue: Sendable {
    /// The largest number of questions that run or wait.
    package static let maximum = 8

    /// Questions that the store has not answered yet.
    private struct Waiting {
        var count = 0
        /// Returns when the newest question is answered; nil: no question waits.
        var last: (@Sendable () async -> Void)?
    }

    private let waiting = Locked(Waiting())
    /// The subject of the questions, for the text of a refusal.
    private let subject: String

    /// A queue without questions.
    ///
    /// - Parameter subject: the subject of the questions, such as `the history`.
    package init(to subject: String) { self.subject = subject }

    /// Asks the store once all earlier questions are answered.
    ///
    /// - Parameter ask: asks the store. It must end the store's work before it throws, such as at a deadline.
    /// - Throws: `RATE_LIMITED` if too many questions wait; the failure of the store.
    package func answer<Value: Sendable>(
        _ ask: @escaping @Sendable () async throws(StoreError) -> Value
    ) async throws(Refusal) -> Value {
        let answer = waiting.withLock { waiting -> Task<Result<Value, Refusal>, Never>? in
            guard waiting.count < Self.maximum else { return nil }
            waiting.count += 1
            let previous = waiting.last
            // Use a separate task: if the caller is cancelled, the next question must still wait until this one ends.
            let answer = Task { () async -> Result<Value, Refusal> in
                await previous?()
                defer { end() }
                do throws(Refusal) { return .success(try await storeCall(ask)) } catch { return .failure(error) }
            }
            waiting.last = { _ = await answer.value }
            return answer
        }
        guard let answer else {
            throw Refusal(
                .rateLimited, "\(Self.maximum) questions to \(subject) wait for their answers", retryAfter: 1,
                hint: "Too many questions to \(subject) are being answered. Ask again later")
        }
        return try await answer.value.get()
    }

    private func end() {
        waiting.withLock { waiting in
            waiting.count -= 1
            // Remove the closure: it keeps the last answer in memory.
            if waiting.count == 0 { waiting.last = nil }
        }
    }
}
