import AuthContract
import AuthService
import Bytes
import Foundation
import Testing

@testable import SQLiteStores

/// The state that callers and the maintenance thread share, tested without that thread.
struct JournalStateTests {
    private let start = JournalBench.start
    private let year: Int64 = 31_536_000
    private let bench: JournalBench
    private let folder: JournalFolder
    private let monotonic = Locked<Int64>(100)

    init() throws {
        bench = try JournalBench(monotonic: monotonic)
        folder = try JournalFolder(bench.path)
    }

    /// A segment with room for this many records.
    private func segment(_ sequence: UInt64 = 1, records: Int = 1000) throws -> JournalSegment {
        try JournalSegment(
            SegmentHeader(sequence: sequence, opening: 0, boot: BootIdentity("first boot")),
            capacity: SegmentHeader.size + records * ClaimRecord.size, in: folder)
    }

    /// A state whose segment begins with two records.
    private func state(records: Int = 1000, at now: UnixTime = JournalBench.start) throws -> JournalState {
        JournalState(
            JournalRecovery(), segment: try segment(records: records),
            now: now.seconds, settings: bench.settings)
    }

    private func request(_ count: Int = 1, at now: UnixTime, dated date: UnixTime? = nil) -> ClaimRequest {
        ClaimRequest(
            claims: bench.claims(count), timestamp: date ?? now, expiresAt: (date ?? now) + 660, now: now,
            futureWindow: 300)
    }

    /// The immediate answer; nil if it comes only after the claim is on the disk.
    private func answer(_ decision: JournalState.Decision) throws -> ClaimOutcome? {
        guard case .answered(let result) = decision else { return nil }
        return try result.get()
    }

    private func claim(_ state: JournalState, _ count: Int = 1, at now: UnixTime) throws -> ClaimOutcome? {
        try answer(state.claim(request(count, at: now)))
    }

    /// The number of records in the segment.
    private func records(_ state: JournalState) -> Int {
        (state.note.length - SegmentHeader.size) / ClaimRecord.size
    }

    // MARK: Claims

    @Test(arguments: [(-1, 0), (0, 0), (4, 0), (5, 1), (60, 1)] as [(Int64, Int)])
    func `a claim of a request dated five seconds ahead waits for the disk`(_ ahead: Int64, _ waits: Int) throws {
        let decision = try state().claim(request(at: start, dated: start + ahead))
        #expect(try (answer(decision) == nil) == (waits == 1))
    }

    @Test func `a claim waits for the disk once the clock is two seconds past the last synced reading`() throws {
        let state = try state()
        #expect(try claim(state, at: start + 1) == .claimed)
        #expect(try claim(state, at: start + 2) == nil)
        state.didSynchronize(nil, reading: (start + 2).seconds, falls: 0)
        #expect(try claim(state, at: start + 3) == .claimed)
        #expect(try claim(state, at: start + 4) == nil)
        // A sync result has no effect if its count of clock falls differs from the state's count, which is 0 here.
        state.didSynchronize(nil, reading: (start + 4).seconds, falls: 1)
        #expect(try claim(state, at: start + 4) == nil)
        // The second result is late: its older reading changes nothing.
        state.didSynchronize(nil, reading: (start + 4).seconds, falls: 0)
        state.didSynchronize(nil, reading: start.seconds, falls: 0)
        #expect(try claim(state, at: start + 4) == .claimed)
    }

    @Test(arguments: [(0, false), (1, true), (4_294_967_295, true), (4_294_967_296, false)] as [(Int64, Bool)])
    func `a claim lives until a second that the journal can record`(_ expiry: Int64, _ isClaimed: Bool) throws {
        let now = UnixTime(expiry - 1)
        let state = try state(at: now)
        let decision = state.claim(
            ClaimRequest(
                claims: bench.claims(), timestamp: now, expiresAt: UnixTime(expiry), now: now, futureWindow: 60))
        if isClaimed {
            #expect(try answer(decision) == .claimed)
        } else {
            #expect(throws: StoreError.self) { try answer(decision) }
        }
    }

    @Test func `one second has one reading on record, and a request without claims has none`() throws {
        let state = try state()
        #expect(records(state) == 2)
        _ = try claim(state, at: start)
        #expect(records(state) == 3)
        _ = try claim(state, 0, at: start + 1)
        #expect(records(state) == 3)
        _ = try claim(state, at: start + 1)
        _ = try claim(state, at: start + 1)
        #expect(records(state) == 6)
    }

    // The segment needs room for its two first records, the claims, one reading of the clock, and the seal.
    @Test(arguments: [(5, false), (6, true)]) func `claims that do not all fit are refused`(
        _ space: Int, _ fit: Bool
    ) throws {
        let state = try state(records: space)
        if fit {
            #expect(try claim(state, 2, at: start) == .claimed)
        } else {
            #expect(throws: StoreError.self) { try claim(state, 2, at: start) }
            #expect(records(state) == 2)
        }
    }

    // MARK: A clock that falls back

    /// A state after a claim, a claim under a clock that was a year ahead, and the fall of the clock. The segment has five records from
    /// before the fall. If it has room, the three records of the fall follow: the loss, the purged expiry and the reading.
    private func fallen(records: Int = 1000) throws -> JournalState {
        let state = try state(records: records)
        _ = try claim(state, at: start)
        _ = try claim(state, at: start + year)
        #expect(self.records(state) == 5)
        // A call without claims, so that only the records of the fall are written.
        _ = state.takeWork()
        _ = try claim(state, 0, at: start)
        return state
    }

    @Test(arguments: [(8, 5), (9, 8)])
    func `the losses that a fall of the clock reveals are recorded if the segment has room`(
        _ space: Int, _ count: Int
    ) throws {
        #expect(try records(fallen(records: space)) == count)
    }

    @Test func `if the losses do not fit in the segment, claims are refused until the next segment records them`()
        throws
    {
        let state = try fallen(records: 8)
        // The segment has room for the claim's record, but not for the records of the fall. Claims are refused until the next
        // segment has these records.
        #expect(throws: StoreError.self) { try claim(state, at: start) }
        #expect(state.takeWork().wantsRotation)
        state.prepare(try segment(2))
        #expect(try claim(state, at: start) == nil)
        // The records are the loss, the purged expiry, the reading and the claim.
        #expect(records(state) == 4)
        _ = try claim(state, at: start)
        #expect(records(state) == 5)
        #expect(!state.takeWork().wantsRotation)
    }

    @Test func `a fall of the clock is written to the disk, and reported once`() throws {
        let state = try fallen()
        let work = state.takeWork()
        #expect(work.isDirty && work.falls == 1 && work.reading == start.seconds)
        #expect(work.wrong?.stretches == [(start + year).seconds...(start + year).seconds])
        #expect(work.note.loss.intervals.contains { $0.isOpen && $0.last == (start + year).seconds })
        let next = state.takeWork()
        #expect(!next.isDirty && next.wrong == nil)
    }

    @Test func `claims too far ahead are swept away once`() throws {
        let state = try fallen()
        #expect(state.size.slots == 2)
        #expect(state.takeWork().wantsSweep)
        for shard in 0..<ClaimTable.shardCount { state.sweep(shard: shard) }
        #expect(state.size.slots == 1)
        #expect(!state.takeWork().wantsSweep)
    }

    @Test(arguments: [(360, false), (361, true), (1000, true)] as [(Int64, Bool)])
    func `a sweep keeps the claims of the present, however long after the fall it comes`(
        _ seconds: Int64, _ isOver: Bool
    ) throws {
        let state = try fallen()
        monotonic.withLock { $0 += seconds }
        let request = request(at: start + seconds, dated: start + seconds + 300)
        _ = state.claim(request)
        for shard in 0..<ClaimTable.shardCount { state.sweep(shard: shard) }
        #expect(try answer(state.claim(request)) == .taken(request.claims[0]))
        // A late sweep (`isOver`) drops only expired claims. The limit from the fall of the clock no longer applies, because
        // claims of the present may now expire after that limit. So the claim that is a year ahead keeps its slot, too. The
        // first claim keeps its slot until it expires.
        #expect(state.size.slots == (isOver ? 2 : 1) + (seconds < 660 ? 1 : 0))
    }

    // MARK: Work for the thread

    @Test func `a claim wakes the maintenance thread`() async throws {
        let (state, isDirty) = (try state(), Locked<Bool?>(nil))
        Thread.detachNewThread {
            let work = state.nextWork()
            isDirty.withLock { $0 = work.isDirty }
        }
        _ = try claim(state, at: start)
        await eventually { isDirty.withLock { $0 } == true }
    }

    @Test func `a claim is brought to the disk once`() throws {
        let state = try state()
        _ = state.takeWork()
        #expect(!state.takeWork().isDirty)
        _ = try claim(state, at: start)
        #expect(state.takeWork().isDirty)
        #expect(!state.takeWork().isDirty)
    }

    @Test func `claims that expired are swept away when there are many`() throws {
        let state = try state(records: 68_000)
        for _ in 0..<67 { _ = try claim(state, 1000, at: start) }
        #expect(!state.takeWork().wantsSweep)
        monotonic.withLock { $0 += 720 }
        _ = try claim(state, at: start + 720)
        #expect(state.takeWork().wantsSweep)
        for shard in 0..<ClaimTable.shardCount { state.sweep(shard: shard) }
        #expect(state.size.slots == 1)
        #expect(!state.takeWork().wantsSweep)
    }

    @Test func `the next segment is due after its time, and only one`() throws {
        let state = try state(records: 2 * bench.settings.segmentRecords)
        let due = start + bench.settings.segmentSeconds
        _ = try claim(state, at: due - 1)
        #expect(!state.takeWork().wantsRotation)
        _ = try claim(state, at: due)
        #expect(state.takeWork().wantsRotation)
        state.prepare(try segment(2))
        #expect(!state.takeWork().wantsRotation)
        _ = try claim(state, at: due)
        #expect(state.takeWork().retired?.header.sequence == 1)
        #expect(state.takeWork().retired == nil)
        _ = try claim(state, at: due + bench.settings.segmentSeconds - 1)
        #expect(!state.takeWork().wantsRotation)
    }

    // The segment begins with two records of its own, and keeps room for the seal.
    @Test(arguments: [(0, false), (1, true)]) func `the next segment is due when half of the space is used`(
        _ more: Int, _ isDue: Bool
    ) throws {
        let half = bench.settings.segmentRecords
        let state = try state(records: 2 * half)
        _ = try claim(state, half - 3 + more, at: start)
        #expect(state.takeWork().wantsRotation == isDue)
    }

    @Test(arguments: [(659, false), (660, true)] as [(Int64, Bool)])
    func `a complete segment is deleted once its last claim has expired`(_ age: Int64, _ isOver: Bool) throws {
        let state = try state()
        _ = try claim(state, at: start)
        state.prepare(try segment(2))
        monotonic.withLock { $0 += age }
        _ = try claim(state, at: start + age)
        #expect(state.takeWork().deletable == (isOver ? [1] : []))
        #expect(state.takeWork().deletable == [])
    }

    // MARK: The end

    @Test(arguments: [true, false]) func `the first call that closes the journal decides whether it is sealed`(
        _ sealing: Bool
    ) throws {
        let state = try state()
        state.beginClosing(sealing: sealing)
        state.beginClosing(sealing: !sealing)
        #expect(state.endsInOrder == sealing)
        #expect(state.takeWork().isClosing && !state.takeWork().wantsRotation)
    }

    @Test func `no claim waits for the disk after the end`() async throws {
        let state = try state()
        state.refuseWaiters()
        let answer = await withCheckedContinuation { state.awaitSync($0) }
        #expect(throws: StoreError.self) { try answer.get() }
    }
}
