internal import AuthContract
internal import AuthService
internal import Foundation
internal import Logging

/// The replay store: all live claims in memory, and a journal of them in files, into which each is stored before its answer.
///
/// What it guarantees: a claim that was answered survives the end of the process in any way. Of a loss of power it knows by
/// the machine's boot id, and refuses then the requests whose claims may not have reached the disk. No live claim is ever
/// forgotten for room: what does not fit is refused. A clock that was ahead opens nothing when it falls back: the dates of what
/// was purged too early are refused, and no others.
final class ClaimJournal: ReplayStore {
    struct Settings: Sendable {
        var maximumClaims = 24_000_000
        var deadline: Duration = .seconds(2)
        /// The longest that a record is only in the system's memory.
        var syncInterval: Duration = .milliseconds(50)
        /// How long after a segment could not be made the next attempt is made.
        var retryInterval: Duration = .milliseconds(250)
        /// Seconds of a clock that nobody sets, since the machine started.
        var monotonic: @Sendable () -> Int64 = BootIdentity.seconds
        /// After how much of the service's time, and after how many records, the next segment is begun.
        var segmentSeconds: Int64 = 60
        var segmentRecords = 50_000

        /// Room for as many again until the next segment is there.
        var segmentCapacity: Int { SegmentHeader.size + 2 * segmentRecords * ClaimRecord.size }
    }

    private let state: JournalState
    private let keeper: JournalKeeper
    private let watchdog: DeadlineWatchdog

    /// Opens the journal in a folder, reading back what is alive.
    ///
    /// - Parameters:
    ///   - path: the folder.
    ///   - expectation: what the database says of the journal that should be there.
    ///   - noted: called with what the database is to keep of it from now on, on the journal's own thread.
    init(
        folder path: String, settings: Settings, expecting expectation: JournalExpectation, boot: BootIdentity,
        now: UnixTime, logger: Logger, noted: @escaping @Sendable (JournalNote) -> Void = { _ in }
    ) throws(OpenError) {
        let folder = try JournalFolder(path)
        let recovery = try JournalRecovery.read(
            folder,
            JournalRecovery.Opening(
                boot: boot, now: now.seconds, monotonic: settings.monotonic(), expectation: expectation,
                logger: logger))
        do throws(SystemError) {
            let header = SegmentHeader(sequence: recovery.nextSequence, boot: boot)
            let segment = try JournalSegment(header, capacity: settings.segmentCapacity, in: folder)
            state = JournalState(recovery, segment: segment, now: now.seconds, settings: settings)
            try segment.synchronize()
        } catch {
            throw OpenError(.notWritable, "The claim journal in \(path) cannot be written: \(error).")
        }
        // Only now that what replaces them is on the disk.
        if let damaged = recovery.damaged { folder.putAside(damaged) }
        for sequence in recovery.obsolete { folder.remove(sequence) }

        keeper = JournalKeeper(state, folder: folder, settings: settings, logger: logger, noted: noted)
        watchdog = DeadlineWatchdog(state)
        keeper.start()
    }

    deinit { state.beginClosing(sealing: true) }

    /// What the database is to keep of the journal.
    var note: JournalNote { state.note }

    /// How many claims live, and how many slots of memory they take.
    var size: (live: Int, slots: Int) { state.size }

    func claim(
        _ claims: [ReplayClaim], timestamp: UnixTime, expiresAt: UnixTime, now: UnixTime, futureWindow: Int64
    ) async throws(StoreError) -> ClaimOutcome {
        let request = ClaimRequest(
            claims: claims, timestamp: timestamp, expiresAt: expiresAt, now: now, futureWindow: futureWindow)
        switch state.claim(request) {
        case .answered(let answer): return try answer.get()
        case .claimedAhead: return try await withCheckedContinuation { state.awaitSync($0) }.get()
        }
    }

    /// Brings everything to the disk, seals the journal and lets go of it.
    func close() async { await end(sealing: true) }

    /// Ends as a process that is killed does: nothing more is written.
    func abandon() async { await end(sealing: false) }

    private func end(sealing: Bool) async {
        state.beginClosing(sealing: sealing)
        await withCheckedContinuation { continuation in
            DispatchQueue.global().async { [keeper] in
                keeper.join()
                continuation.resume()
            }
        }
    }
}

/// One call, as it came.
struct ClaimRequest {
    let claims: [ReplayClaim]
    let timestamp: UnixTime
    let expiresAt: UnixTime
    let now: UnixTime
    let futureWindow: Int64
}
