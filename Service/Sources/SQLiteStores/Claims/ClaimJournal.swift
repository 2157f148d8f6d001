internal import AuthContract
internal import AuthService
internal import Foundation
internal import Logging

/// The replay store: all live claims (the single-use values of accepted requests) in memory, and a journal of them in
/// files. Each claim is in the journal before its caller gets an answer.
///
/// Guarantees:
/// - An answered claim survives the end of the process, however the process ends.
/// - The machine's boot id reveals a loss of power. Requests whose claims may not have reached the disk are then
///   refused.
/// - No live claim is evicted. Claims that do not fit are refused.
/// - If the clock was ahead and fell back, the journal refuses only requests with dates whose claims may have been
///   purged too early or dropped.
final class ClaimJournal: ReplayStore {
    struct Settings: Sendable {
        var maximumClaims = 24_000_000
        var deadline: Duration = .seconds(2)
        /// How long maintenance waits for more claims before a sync. Until then, records may be only in the system's memory.
        var syncInterval: Duration = .milliseconds(50)
        /// The pause before another attempt to create a segment.
        var retryInterval: Duration = .milliseconds(250)
        /// Seconds of the monotonic clock since the machine started.
        var monotonic: @Sendable () -> Int64 = BootIdentity.seconds
        /// The next segment begins after `segmentSeconds` seconds or `segmentRecords` records, whichever comes first.
        var segmentSeconds: Int64 = 60
        var segmentRecords = 50_000

        /// The size of a segment in bytes, with room for twice `segmentRecords`, so that claims can continue until the next
        /// segment exists.
        var segmentCapacity: Int { SegmentHeader.size + 2 * segmentRecords * ClaimRecord.size }
    }

    private let state: JournalState
    private let maintenance: JournalMaintenance
    private let watchdog: DeadlineWatchdog

    /// Opens the journal in a folder, and restores the live claims.
    ///
    /// - Parameters:
    ///   - path: the folder.
    ///   - expectation: the journal's state, as the database recorded it.
    ///   - database: whether the database is at its path.
    ///   - noted: called on the journal's own thread with the journal's new state, which the database must record.
    init(
        folder path: String, settings: Settings, expecting expectation: JournalExpectation, boot: BootIdentity,
        now: UnixTime, logger: Logger, database: @escaping @Sendable () -> FileIdentity.Place = { .here },
        noted: @escaping @Sendable (JournalNote) -> Void = { _ in }
    ) throws(StoreOpenError) {
        let folder = try JournalFolder(path)
        let recovery = try JournalRecovery.read(
            folder,
            JournalRecovery.Opening(
                boot: boot, now: now.seconds, monotonic: settings.monotonic(), expectation: expectation,
                logger: logger))
        do throws(SystemError) {
            let header = SegmentHeader(sequence: recovery.nextSequence, opening: recovery.opening, boot: boot)
            let segment = try JournalSegment(header, capacity: settings.segmentCapacity, in: folder)
            state = JournalState(recovery, segment: segment, now: now.seconds, settings: settings) {
                let places = [folder.place, database()]
                return places.contains(.elsewhere) ? .elsewhere : places.contains(.unknown) ? .unknown : .here
            }
            try segment.synchronize()
        } catch {
            throw StoreOpenError(.notWritable, "The claim journal in \(path) cannot be written: \(error).")
        }
        // Remove the old segments only now, because the segment that replaces them is on the disk.
        if let damaged = recovery.damaged { folder.putAside(damaged) }
        for sequence in recovery.obsolete { folder.remove(sequence) }

        maintenance = JournalMaintenance(state, folder: folder, settings: settings, logger: logger, noted: noted)
        watchdog = DeadlineWatchdog(state)
        maintenance.start()
    }

    deinit { state.beginClosing(sealing: true) }

    /// The state of the journal, for the database to record.
    var note: JournalNote { state.note }

    /// Whether the journal's folder and the database are at their paths, and no earlier check found them elsewhere.
    var isInPlace: Bool { state.isInPlace() }

    /// The number of live claims, and the number of used slots. Slots of expired claims are used until they are purged.
    var size: (live: Int, slots: Int) { state.size }

    func claim(
        _ claims: [ReplayClaim], of device: DeviceID, timestamp: UnixTime, expiresAt: UnixTime, now: UnixTime,
        futureWindow: Int64, tag: ClaimTag?
    ) async throws(StoreError) -> ClaimOutcome {
        let request = ClaimRequest(
            claims: claims, timestamp: timestamp, expiresAt: expiresAt, now: now, futureWindow: futureWindow,
            tag: tag)
        switch state.claim(request) {
        case .answered(let answer): return try answer.get()
        case .claimedAhead: return try await withCheckedContinuation { state.awaitSync($0) }.get()
        }
    }

    func holds(_ tag: ClaimTag, of device: DeviceID, now: UnixTime) async throws(StoreError) -> Bool {
        state.holds(tag, now: now)
    }

    /// Syncs everything to the disk, seals the journal and closes it.
    func close() async { await end(sealing: true) }

    /// Ends the journal without writing, like a killed process.
    func abandon() async { await end(sealing: false) }

    private func end(sealing: Bool) async {
        state.beginClosing(sealing: sealing)
        await offloading { [maintenance] in maintenance.join() }
    }
}

/// The arguments of one call of `claim`, without the device.
struct ClaimRequest {
    let claims: [ReplayClaim]
    let timestamp: UnixTime
    let expiresAt: UnixTime
    let now: UnixTime
    let futureWindow: Int64
    var tag: ClaimTag?
}
