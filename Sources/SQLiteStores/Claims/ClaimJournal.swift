internal import AuthContract
internal import AuthService
internal import Foundation
internal import Logging

/// The replay store: all live claims in memory, and a journal of them that is written before each answer.
///
/// What it guarantees: a claim that was answered survives the end of the process in any way. Of a loss of power it knows by
/// the machine's boot id, and refuses then the requests whose claims may not have reached the disk. No live claim is ever
/// forgotten for room: what does not fit is refused. A clock that steps back opens nothing, because what was purged is
/// known by its latest expiry.
final class ClaimJournal: ReplayStore {
    struct Settings: Sendable {
        var maximumClaims = 24_000_000
        /// Records that may wait for the disk.
        var maximumPending = 1_000_000
        var deadline: Duration = .seconds(2)
        /// The longest that a record is only in the system's memory.
        var syncInterval: Duration = .milliseconds(50)
        /// How long after a failed write the next attempt is made.
        var retryInterval: Duration = .milliseconds(250)
        /// How much of the service's time, and how many bytes, one segment takes up.
        var segmentSeconds: Int64 = 60
        var segmentBytes = 256 << 20
    }

    private let state: JournalState
    private let writer: JournalWriter
    private let keeper: JournalKeeper
    private let watchdog: DeadlineWatchdog

    /// Opens the journal in a folder, reading back what is alive.
    init(
        folder path: String, settings: Settings, expectsHistory: Bool, boot: BootIdentity, now: UnixTime, logger: Logger
    ) throws(OpenError) {
        let folder = try JournalFolder(path)
        let recovery = try JournalRecovery.read(
            folder, boot: boot, now: now, expectsHistory: expectsHistory, logger: logger)
        let segment: JournalSegment
        do throws(SystemError) {
            let header = SegmentHeader(
                sequence: recovery.nextSequence, boot: boot, purgedTo: recovery.deletedTo, loss: recovery.loss)
            segment = try JournalSegment(header, in: folder)
        } catch {
            throw OpenError(.notWritable, "The claim journal in \(path) cannot be written: \(error).")
        }
        // Only now that what replaces them is on the disk.
        if let damaged = recovery.damaged { folder.putAside(damaged) }
        for sequence in recovery.obsolete { folder.remove(sequence) }

        state = JournalState(recovery, segment: segment, now: now.seconds, settings: settings)
        writer = JournalWriter(state, logger: logger)
        keeper = JournalKeeper(state, writer: writer, folder: folder, recovery: recovery, logger: logger)
        watchdog = DeadlineWatchdog(state)
        writer.start()
        keeper.start()
    }

    deinit { state.beginClosing(sealing: true) }

    /// How many claims live, and how many slots of memory they take.
    var size: (live: Int, slots: Int) { state.size }

    func claim(
        _ claims: [ReplayClaim], timestamp: UnixTime, expiresAt: UnixTime, now: UnixTime, futureWindow: Int64
    ) async throws(StoreError) -> ClaimOutcome {
        let request = ClaimRequest(
            claims: claims, timestamp: timestamp, expiresAt: expiresAt, now: now, futureWindow: futureWindow)
        return try await withCheckedContinuation { state.claim(request, $0) }.get()
    }

    /// Writes what waits, seals the journal and lets go of it.
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
