internal import AuthService
internal import Foundation
internal import Logging

/// The background thread of the journal: syncs claims to the disk, creates segments, deletes expired ones, and releases memory.
final class JournalMaintenance: @unchecked Sendable {
    // Unchecked: after `start` only the thread uses the variables.
    private let state: JournalState
    private let settings: ClaimJournal.Settings
    private let folder: JournalFolder
    private let logger: Logger
    private let noted: @Sendable (JournalNote) -> Void
    private let ended = DispatchGroup()
    /// Segments to delete, oldest first.
    private var deletable: [UInt64] = []
    private var rotationFailed = false
    /// The latest reading of the clock for which the database has a note.
    private var notedClock: Int64

    init(
        _ state: JournalState, folder: JournalFolder, settings: ClaimJournal.Settings, logger: Logger,
        noted: @escaping @Sendable (JournalNote) -> Void
    ) {
        self.state = state
        self.settings = settings
        self.folder = folder
        self.logger = logger
        self.noted = noted
        // Opening the journal records this note before any claim.
        notedClock = state.note.clock
    }

    func start() {
        ended.enter()
        let thread = Thread { [self] in
            run()
            ended.leave()
        }
        thread.name = "claims.keep"
        thread.start()
    }

    func join() { ended.wait() }

    private func run() {
        while true {
            let upkeep = state.nextUpkeep()
            if upkeep.isClosing { return end(upkeep) }
            keepUp(upkeep)
            if upkeep.wantsRotation { rotate(upkeep) }
            if upkeep.wantsSweep { for shard in 0..<ClaimTable.shardCount { state.sweep(shard: shard) } }
        }
    }

    private func keepUp(_ upkeep: JournalState.MaintenanceWork) {
        deletable += upkeep.deletable
        let error = synchronize(upkeep)
        state.didSynchronize(error, reading: upkeep.reading, falls: upkeep.falls)
        if let wrong = upkeep.wrong {
            logger.warning(
                "the clock was ahead",
                metadata: ["wrong": "\(wrong.stretches)", "last_right": "\(wrong.lastRight ?? 0)"])
        }
        guard error == nil else { return }
        // The purged expiry is on the disk now. Delete in order and stop at the first failure, because segments must have no
        // gap.
        while let oldest = deletable.first, folder.remove(oldest) { deletable.removeFirst() }
        if upkeep.retired != nil || upkeep.wrong != nil || upkeep.reading > notedClock {
            notedClock = upkeep.note.clock
            noted(upkeep.note)
        }
    }

    /// Stops after the work that was due when it was called.
    private func end(_ upkeep: JournalState.MaintenanceWork) {
        if state.endsInOrder {
            // Delete the unused segment: recovery would take it as the newest and find no seal.
            if let unused = state.takePrepared() { folder.remove(unused.header.sequence) }
            keepUp(upkeep)
            // A caller whose claim was decided earlier may be waiting now.
            keepUp(state.upkeep())
            if state.endsInOrder { seal(upkeep.current) }
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

    private func synchronize(_ upkeep: JournalState.MaintenanceWork) -> SystemError? {
        do throws(SystemError) {
            try upkeep.retired?.synchronize()
            if upkeep.isDirty { try upkeep.current.synchronize() }
            // A failure only costs disk space.
            try? upkeep.retired?.trim()
            return nil
        } catch {
            logger.error("the claim journal cannot be synchronized", metadata: ["error": "\(error)"])
            return error
        }
    }

    private func rotate(_ upkeep: JournalState.MaintenanceWork) {
        let header = SegmentHeader(
            sequence: upkeep.current.header.sequence + 1, boot: upkeep.current.header.boot)
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
