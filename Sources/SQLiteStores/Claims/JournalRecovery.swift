internal import AuthContract
internal import Logging

/// What the journal knows when it is opened: the live claims, and what it cannot know.
struct JournalRecovery {
    var table: ClaimTable
    var census = ClaimCensus()
    var loss = HistoryLoss()
    /// The latest expiry of segments that were ever deleted.
    var deletedTo: Int64 = .min
    /// Segments that still hold something, oldest first.
    var segments: [ClosedSegment] = []
    /// Segments that are of no use any more, once the next one is there.
    var obsolete: [UInt64] = []
    /// The one of them that is put aside instead.
    var damaged: UInt64?
    var nextSequence: UInt64 = 1

    /// Reads the folder. `expectsHistory` says that a journal was here before, so that a missing one was lost.
    static func read(
        _ folder: JournalFolder, boot: BootIdentity, now: UnixTime, expectsHistory: Bool, logger: Logger
    ) throws(OpenError) -> JournalRecovery {
        let sequences = try folder.sequences()
        var recovery = JournalRecovery(table: ClaimTable(purgedTo: .min))
        let (next, overflow) = (sequences.last ?? 0).addingReportingOverflow(1)
        guard !overflow else { throw OpenError(.damaged, "The claim journal in \(folder.path) has no numbers left.") }
        recovery.nextSequence = next

        var newest: SegmentContents?
        var latestClock = now.seconds
        let reader = SegmentReader(folder: folder, boot: boot, now: now.seconds)
        recovery.table.reserve(folder.recordCount(sequences))
        for sequence in sequences {
            do throws(SegmentReader.Failure) {
                if let newest, sequence != newest.header.sequence + 1 {
                    throw .damaged("a segment before it is missing")
                }
                let contents = try reader.read(sequence, into: &recovery.table, &recovery.census)
                newest = contents
                latestClock = max(latestClock, contents.latestClock)
                recovery.take(contents)
            } catch {
                switch error {
                case .unfinished where sequence == sequences.last:
                    // Nothing was ever claimed in it; its number is used again.
                    folder.remove(sequence)
                    recovery.nextSequence = sequence
                case .unfinished:
                    return recovery.startingOver(sequences, sequence, "its header is missing", latestClock, logger)
                case .damaged(let reason):
                    return recovery.startingOver(sequences, sequence, reason, latestClock, logger)
                case .newerVersion:
                    throw OpenError(
                        .newerVersion,
                        "The claim journal in \(folder.path) was written by a newer version. Install that version.")
                case .system(let error):
                    throw OpenError(.notReadable, "The claim journal in \(folder.path) cannot be read: \(error).")
                }
            }
        }
        if newest == nil, expectsHistory {
            return recovery.startingOver([], nil, "it is gone", latestClock, logger)
        }
        if let newest, newest.header.boot != boot, !newest.isSealed {
            recovery.loss.powerLostAt = latestClock
            logger.warning(
                "the machine restarted while claims were written: requests of before are refused for a moment")
        }
        return recovery
    }

    private mutating func take(_ contents: SegmentContents) {
        deletedTo = max(deletedTo, contents.header.purgedTo)
        loss = HistoryLoss(
            powerLostAt: Self.later(loss.powerLostAt, contents.header.loss.powerLostAt),
            damagedAt: Self.later(loss.damagedAt, contents.header.loss.damagedAt))
        segments.append(ClosedSegment(sequence: contents.header.sequence, latestExpiry: contents.latestExpiry))
        table.raisePurged(to: contents.header.purgedTo)
    }

    /// Starts over: every request that could have been claimed before is refused by its time, so that nothing of what was
    /// read is needed any more.
    private func startingOver(
        _ sequences: [UInt64], _ damaged: UInt64?, _ reason: String, _ time: Int64, _ logger: Logger
    ) -> JournalRecovery {
        logger.critical(
            "the claim journal is damaged: requests of before are refused",
            metadata: ["segment": "\(damaged.map { "\($0)" } ?? "all")", "reason": "\(reason)"])
        var fresh = JournalRecovery(table: ClaimTable(purgedTo: deletedTo))
        fresh.loss = HistoryLoss(powerLostAt: loss.powerLostAt, damagedAt: Self.later(loss.damagedAt, time))
        fresh.deletedTo = deletedTo
        fresh.nextSequence = nextSequence
        fresh.damaged = damaged
        fresh.obsolete = sequences.filter { $0 != damaged }
        return fresh
    }

    private static func later(_ left: Int64?, _ right: Int64?) -> Int64? {
        [left, right].compactMap { $0 }.max()
    }
}
