internal import Foundation
internal import Logging

/// The thread behind the claims: brings them to the disk, makes new segments, deletes those of which nothing lives, and gives
/// back memory.
final class JournalKeeper: @unchecked Sendable {
    // Unchecked: after `start` only the thread touches what varies.
    private let state: JournalState
    private let settings: ClaimJournal.Settings
    private let folder: JournalFolder
    private let logger: Logger
    private let noted: @Sendable (JournalNote) -> Void
    private let ended = DispatchGroup()
    /// Segments to delete, oldest first.
    private var deletable: [UInt64] = []
    private var rotationFailed = false

    init(
        _ state: JournalState, folder: JournalFolder, settings: ClaimJournal.Settings, logger: Logger,
        noted: @escaping @Sendable (JournalNote) -> Void
    ) {
        self.state = state
        self.settings = settings
        self.folder = folder
        self.logger = logger
        self.noted = noted
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

    private func keepUp(_ upkeep: JournalState.Upkeep) {
        deletable += upkeep.deletable
        let error = synchronize(upkeep)
        state.didSynchronize(error, reading: upkeep.reading, falls: upkeep.falls)
        if let wrong = upkeep.wrong {
            logger.warning(
                "the clock was ahead",
                metadata: ["wrong": "\(wrong.readings)", "last_right": "\(wrong.lastRight ?? 0)"])
        }
        guard error == nil else { return }
        // What was purged is recorded on the disk now. In order, and none after one that stays: segments have no gap.
        while let oldest = deletable.first, folder.remove(oldest) { deletable.removeFirst() }
        if upkeep.retired != nil || upkeep.wrong != nil { noted(upkeep.note) }
    }

    /// Ends, with what there was to keep up when it was asked to.
    private func end(_ upkeep: JournalState.Upkeep) {
        if state.endsInOrder {
            // It would be the newest one, and is not sealed.
            if let unused = state.takePrepared() { folder.remove(unused.header.sequence) }
            keepUp(upkeep)
            // Somebody whose claim was decided before may have come to wait since.
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

    private func synchronize(_ upkeep: JournalState.Upkeep) -> SystemError? {
        do throws(SystemError) {
            try upkeep.retired?.synchronize()
            if upkeep.isDirty { try upkeep.current.synchronize() }
            // Only room is lost where it fails.
            try? upkeep.retired?.trim()
            return nil
        } catch {
            logger.error("the claim journal cannot be synchronized", metadata: ["error": "\(error)"])
            return error
        }
    }

    private func rotate(_ upkeep: JournalState.Upkeep) {
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
