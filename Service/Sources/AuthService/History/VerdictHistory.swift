internal import AuthContract
internal import Bytes
internal import Logging

/// The verdicts of the last 90 days: counted in memory, written to the store minute by minute, answered from the store.
///
/// No request waits for the store. If it fails, the counts stay in memory and are written later. A batch is added once, also
/// if the store answered an earlier attempt with a failure after it had added it.
public final class VerdictHistory: Sendable {
    /// Seconds of a minute, the finest step.
    public static let minute: Int64 = 60
    /// Seconds of an hour, to which old minutes are joined.
    public static let hour: Int64 = 3600
    /// Seconds for which minutes are kept apart.
    public static let minutesKept: Int64 = 48 * hour
    /// Seconds for which hours are kept.
    public static let hoursKept: Int64 = 90 * 24 * hour

    private let store: (any VerdictHistoryStore)?
    private let clock: any ServiceClock
    private let random: any RandomSource
    private let buffer = VerdictBuffer()
    /// The batch that the store has not acknowledged.
    private let unwritten = Locked<VerdictBatch?>(nil)
    /// Whether a question is being answered.
    private let isAsked = Locked(false)
    private let logger = Logger(label: "synheart.history")

    init(store: (any VerdictHistoryStore)?, clock: any ServiceClock, random: any RandomSource) {
        self.store = store
        self.clock = clock
        self.random = random
    }

    /// Counts a verdict now. It is quick, and does not call the store.
    public func count(_ verdict: CountedVerdict) {
        guard store != nil else { return }
        buffer.count(verdict, at: clock.now)
    }

    /// Writes the minutes that have ended.
    ///
    /// - Parameter isStopping: whether to write the present minute too, because the process ends.
    public func write(isStopping: Bool = false) async {
        guard let store else { return }
        while let batch = next(endedBy: isStopping ? nil : clock.now) {
            do throws(StoreError) { try await store.add(batch) } catch {
                logger.warning(
                    "verdict counts are not written yet", metadata: ["reason": .string("\(error)")])
                return
            }
            unwritten.withLock { $0 = nil }
        }
    }

    /// The batch that was not acknowledged, or else that of the oldest minute. The store may have forgotten whether it knows
    /// a batch of a minute that it no longer keeps. So such a batch is not sent.
    private func next(endedBy end: UnixTime?) -> VerdictBatch? {
        let oldest = clock.now - Self.minutesKept
        return unwritten.withLock { unwritten in
            if let batch = unwritten, batch.minute >= oldest { return batch }
            unwritten = nil
            while let (minute, counts) = buffer.takeOldest(endedBy: end) {
                guard minute >= oldest else { continue }
                unwritten = VerdictBatch(id: RandomUUID(from: random).text, minute: minute, counts: counts)
                break
            }
            return unwritten
        }
    }

    /// Joins minutes to hours and removes hours, once they are old enough, in short steps.
    public func condense() async {
        guard let store else { return }
        while !Task.isCancelled,
            (try? await store.condense(
                minutesBefore: clock.now - Self.minutesKept, hoursBefore: clock.now - Self.hoursKept)) == true
        {}
    }

    /// The sums that a query asks for.
    ///
    /// A question may read millions of rows. So one is answered at a time, and another one is refused at once. Otherwise
    /// callers of the history could take every reader of the store from devices.
    public func sums(_ query: VerdictQuery) async throws(Refusal) -> [VerdictSum] {
        guard let store else { return [] }
        let isFirst = isAsked.withLock { isAsked in
            defer { isAsked = true }
            return !isAsked
        }
        guard isFirst else {
            throw Refusal(
                .rateLimited, "another question to the history is being answered", retryAfter: 1,
                hint: "Another question to the history is being answered. Ask again after it")
        }
        defer { isAsked.withLock { $0 = false } }
        // A task of its own: a caller that goes away does not let the next question begin before this one has ended.
        let answer = Task { () async -> Result<[VerdictSum], Refusal> in
            do throws(Refusal) {
                return .success(try await storeCall { () async throws(StoreError) in try await store.sums(query) })
            } catch { return .failure(error) }
        }
        return try await answer.value.get()
    }
}
