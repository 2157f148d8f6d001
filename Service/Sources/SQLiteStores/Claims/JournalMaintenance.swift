internal import AuthService
internal import Foundation
internal import Logging

/// The background thread of the journal: syncs claims to the disk, creates segments, deletes expired ones, and releases memory.
final class JournalMaintenance: Sendable {
    private let rounds: MaintenanceRounds
    private let ended = DispatchGroup()

    init(
        _ state: JournalState, folder: JournalFolder, settings: ClaimJournal.Settings, logger: Logger,
        noted: @escaping @Sendable (JournalNote) -> Void
    ) {
        // Treat the current note as recorded. The code that opens the journal stores it in the database before any claim.
        rounds = MaintenanceRounds(
            state: state, settings: settings, folder: folder, logger: logger, noted: noted,
            notedClock: state.note.clock)
    }

    func start() {
        ended.enter()
        let thread = Thread { [rounds, ended] in
            var rounds = rounds
            rounds.run()
            ended.leave()
        }
        thread.name = "claims.maintain"
        thread.start()
    }

    func join() { ended.wait() }
}

/// Runs the rounds of maintenance until the journal closes, and keeps their state.
private struct MaintenanceRounds: Sendable {
    let state: JournalState
    let settings: ClaimJournal.Settings
    let folder: JournalFolder
    let logger: Logger
    let noted: @Sendable (JournalNote) -> Void
    /// The latest reading of the clock that the note in the database covers (`JournalNote.clock`).
    var notedClock: Int64
    /// Segments to delete, oldest first.
    var deletable: [UInt64] = []
    var rotationFailed = false

    mutating func run() {
        while true {
            let work = state.nextWork()
            if work.isClosing { return end(work) }
            perform(work)
            if work.wantsRotation { rotate(work) }
            if work.wantsSweep { for shard in 0..<ClaimTable.shardCount { state.sweep(shard: shard) } }
        }
    }

    private mutating func perform(_ work: JournalState.MaintenanceWork) {
        deletable += work.deletable
        let error = synchronize(work)
        state.didSynchronize(error, reading: work.reading, falls: work.falls)
        if let wrong = work.wrong {
            logger.warning(
                "the clock was ahead",
                metadata: ["wrong": "\(wrong.stretches)", "last_right": "\(wrong.lastRight ?? 0)"])
        }
        // If the files were moved, the segments at these paths and the note in the database may be those of another service.
        guard error == nil, state.isInPlace() else { return }
        // The new segment's record of the latest purged expiry is on the disk now, so the old segments are not needed. Delete
        // them in order and stop at the first failure, because segments must have no gap.
        while let oldest = deletable.first, folder.remove(oldest) { deletable.removeFirst() }
        if work.retired != nil || work.wrong != nil || work.reading > notedClock {
            notedClock = work.note.clock
            noted(work.note)
        }
    }

    /// If the journal was not abandoned and no sync failed, performs the work that is due and seals the journal. Then
    /// refuses the remaining callers.
    private mutating func end(_ work: JournalState.MaintenanceWork) {
        if state.endsInOrder {
            // Delete the unused segment: after a reboot, recovery would take it for a sign of lost claims (`hasUnbegunSuccessor`).
            if state.isInPlace(), let unused = state.takePrepared() { folder.remove(unused.header.sequence) }
            perform(work)
            // A caller may have begun to wait for the disk since the work was taken.
            perform(state.takeWork())
            if state.endsInOrder { seal(work.current) }
        }
        state.refuseWaiters()
        folder.unlock()
    }

    private func seal(_ segment: JournalSegment) {
        do throws(SystemError) {
            state.seal()
            try segment.trim()
            try segment.synchronize()
        } catch {
            logger.error("the claim journal cannot be sealed", metadata: ["error": "\(error)"])
        }
    }

    private func synchronize(_ work: JournalState.MaintenanceWork) -> SystemError? {
        do throws(SystemError) {
            try work.retired?.synchronize()
            if work.isDirty { try work.current.synchronize() }
            // If `trim` fails, the only cost is disk space.
            try? work.retired?.trim()
            return nil
        } catch {
            logger.error("the claim journal cannot be synchronized", metadata: ["error": "\(error)"])
            return error
        }
    }

    private mutating func rotate(_ work: JournalState.MaintenanceWork) {
        guard state.isInPlace() else { return }
        let header = SegmentHeader(
            sequence: work.current.header.sequence + 1, opening: work.current.header.opening,
            boot: work.current.header.boot)
        do throws(SystemError) {
            state.prepare(try JournalSegment(header, capacity: settings.segmentCapacity, in: folder))
            rotationFailed = false
        } catch {
            guard !rotationFailed else { return }
            rotationFailed = true
            logger.error("a new segment of the claim journal cannot be made", metadata: ["error": "\(error)"])
        }
    }
}
