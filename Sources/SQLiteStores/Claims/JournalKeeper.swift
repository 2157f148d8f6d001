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
    private let loss: HistoryLoss
    private let ended = DispatchGroup()
    private var closed: [ClosedSegment]
    private var deletedTo: Int64
    private var rotationFailed = false

    init(
        _ state: JournalState, folder: JournalFolder, recovery: JournalRecovery, settings: ClaimJournal.Settings,
        logger: Logger
    ) {
        self.state = state
        self.settings = settings
        self.folder = folder
        self.logger = logger
        loss = recovery.loss
        closed = recovery.segments
        deletedTo = recovery.deletedTo
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
            if upkeep.isClosing { return end() }
            state.didSynchronize(synchronize(upkeep))
            if upkeep.wantsRotation { rotate(upkeep) }
            if upkeep.wantsSweep { for shard in 0..<ClaimTable.shardCount { state.sweep(shard: shard) } }
        }
    }

    private func end() {
        if state.endsInOrder {
            // It would be the newest one, and is not sealed.
            if let unused = state.takePrepared() { folder.remove(unused.header.sequence) }
            let upkeep = state.upkeep()
            state.didSynchronize(synchronize(upkeep))
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
        if let retired = upkeep.retired {
            closed.append(ClosedSegment(sequence: retired.header.sequence, latestExpiry: retired.latestExpiry))
        }
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

    /// Begins the next segment, and deletes the oldest ones that have expired: their latest expiry is in the new one's
    /// header, on the disk, before they go.
    private func rotate(_ upkeep: JournalState.Upkeep) {
        let expired = closed.prefix { $0.latestExpiry <= upkeep.latestNow }
        deletedTo = expired.reduce(deletedTo) { max($0, $1.latestExpiry) }
        let header = SegmentHeader(
            sequence: upkeep.current.header.sequence + 1, boot: upkeep.current.header.boot, purgedTo: deletedTo,
            loss: loss)
        do throws(SystemError) {
            state.prepare(try JournalSegment(header, capacity: settings.segmentCapacity, in: folder))
            for segment in expired { folder.remove(segment.sequence) }
            closed.removeFirst(expired.count)
            rotationFailed = false
        } catch {
            guard !rotationFailed else { return }
            rotationFailed = true
            logger.error("a new segment of the claim journal cannot be made", metadata: ["error": "\(error)"])
        }
    }
}
