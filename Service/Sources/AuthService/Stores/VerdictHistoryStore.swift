public import AuthContract

/// The verdicts that one process counted in a minute.
public struct VerdictBatch: Sendable, Hashable {
    /// Identifies the batch, so that the store adds it only once.
    public let id: String
    /// The start of the minute.
    public let minute: UnixTime
    /// The number of each verdict, at least 1.
    public let counts: [CountedVerdict: Int64]

    /// Memberwise initializer.
    public init(id: String, minute: UnixTime, counts: [CountedVerdict: Int64]) {
        self.id = id
        self.minute = minute
        self.counts = counts
    }
}

/// Selects counts, and how they are summed.
public struct VerdictQuery: Sendable, Hashable {
    /// The first second: the start of a slot.
    public var since: UnixTime
    /// The end of the last slot: the start of the next one.
    public var until: UnixTime
    /// Seconds of a slot: each sum covers one slot. Slots start at multiples of the step.
    public var step: Int64
    /// The longest of ``VerdictHistory/steps`` that divides ``step``. The query reads slots of this length, because they
    /// are the fewest that answer it.
    public var keptStep: Int64 { VerdictHistory.steps.last { step % $0 == 0 } ?? VerdictHistory.minute }
    /// The apps; nil: all, including counts without an app.
    public var apps: Set<AppID>?
    /// Only verdicts with these texts (``CountedVerdict/text(_:)``).
    public var only: [CountedVerdict.Member: String]
    /// The members that the sums are grouped by.
    public var groups: Set<CountedVerdict.Member>
    /// The largest number of sums.
    public var limit: Int

    /// Memberwise initializer.
    public init(
        since: UnixTime, until: UnixTime, step: Int64, apps: Set<AppID>? = nil,
        only: [CountedVerdict.Member: String] = [:], groups: Set<CountedVerdict.Member> = [], limit: Int
    ) {
        self.since = since
        self.until = until
        self.step = step
        self.apps = apps
        self.only = only
        self.groups = groups
        self.limit = limit
    }
}

/// A sum of counts.
public struct VerdictSum: Sendable, Hashable {
    /// The start of the slot.
    public let slot: UnixTime
    /// The texts of the query's groups.
    public let texts: [CountedVerdict.Member: String]
    /// The number of verdicts.
    public let count: Int64

    /// Memberwise initializer.
    public init(slot: UnixTime, texts: [CountedVerdict.Member: String], count: Int64) {
        self.slot = slot
        self.texts = texts
        self.count = count
    }
}

/// Keeps counts of verdicts, in slots of each of ``VerdictHistory/steps``.
///
/// Guarantees:
/// - Counts of the same slot and verdict add up, whichever process adds them.
/// - A batch is added to the slots of all steps or to none, and only once, until its minute is removed.
/// - Slots of different steps agree. Removing the slots of minutes does not change the sums of hours.
public protocol VerdictHistoryStore: Sendable {
    /// Adds the counts of a batch to one slot of each of ``VerdictHistory/steps``: the one that contains the batch's minute. Adds
    /// to all of these slots or to none. Does nothing if the batch was added before.
    func add(_ batch: VerdictBatch) async throws(StoreError)

    /// Sums that are not 0, in the order of their slots, from the slots of ``VerdictQuery/keptStep``.
    ///
    /// The service runs one query at a time: the next one may start when this call returns or throws. So, at its deadline, the
    /// store stops the query before it throws.
    func sums(_ query: VerdictQuery) async throws(StoreError) -> [VerdictSum]

    /// Removes the oldest slot of each step if the slot ended at or before a time. Also removes the ids of batches of minutes
    /// before that time.
    ///
    /// - Parameters:
    ///   - minutesBefore: the time for steps of less than ``VerdictHistory/hour``, and for ids.
    ///   - hoursBefore: the time for the other steps.
    /// - Returns: whether a slot was removed.
    func expire(minutesBefore: UnixTime, hoursBefore: UnixTime) async throws(StoreError) -> Bool
}
