internal import AuthContract
internal import Bytes
internal import Logging

/// The verdicts of the last 90 days: counted in memory, written to the store minute by minute, and read from the
/// store.
///
/// For each of ``steps``, the store divides time into slots of that length. It adds each count to one slot of each
/// step, so a query about a long time reads few slots.
///
/// No request waits for the store. If a write fails, the counts stay in memory and are written later. The store adds
/// a batch only once, even if an earlier attempt added the batch and then failed.
public final class VerdictHistory: Sendable {
    /// Seconds of a minute, the finest step.
    public static let minute: Int64 = 60
    /// Seconds of an hour, the shortest step that is kept for 90 days.
    public static let hour: Int64 = 3600
    /// The steps for which the store keeps slots, in seconds. Each divides the next one, and all divide a day.
    public static let steps: [Int64] = [minute, 300, 900, hour, 21_600, 86_400]
    /// Seconds for which slots of less than an hour are kept after their end.
    public static let minutesKept: Int64 = 48 * hour
    /// Seconds for which slots of an hour or more are kept after their end.
    public static let hoursKept: Int64 = 90 * 24 * hour

    private let store: (any VerdictHistoryStore)?
    private let clock: any ServiceClock
    private let random: any RandomSource
    private let buffer = VerdictBuffer()
    /// The batch that the store has not acknowledged.
    private let unwritten = Locked<VerdictBatch?>(nil)
    private let questions = QuestionQueue(to: "the history")
    private let logger = Logger(label: "synheart.history")

    init(store: (any VerdictHistoryStore)?, clock: any ServiceClock, random: any RandomSource) {
        self.store = store
        self.clock = clock
        self.random = random
    }

    /// Counts a verdict now, in memory. Does not call the store.
    public func count(_ verdict: CountedVerdict) {
        guard store != nil else { return }
        buffer.count(verdict, at: clock.now)
    }

    /// Writes the minutes that have ended.
    ///
    /// - Parameter isStopping: whether to write the current minute too, because the process ends.
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

    /// The batch to write: the unacknowledged one, or else that of the oldest minute that ended by `end`. Nil: there is none.
    ///
    /// A batch older than the kept minutes is dropped, because the store may have forgotten whether it added that batch.
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

    /// Removes the slots that ended more than ``minutesKept`` or ``hoursKept`` ago, in short transactions.
    public func expire() async {
        guard let store else { return }
        while !Task.isCancelled,
            (try? await store.expire(
                minutesBefore: clock.now - Self.minutesKept, hoursBefore: clock.now - Self.hoursKept)) == true
        {}
    }

    /// The sums for a query. Queries run one after another (`QuestionQueue`).
    public func sums(_ query: VerdictQuery) async throws(Refusal) -> [VerdictSum] {
        guard let store else { return [] }
        return try await questions.answer { () async throws(StoreError) in try await store.sums(query) }
    }
}
