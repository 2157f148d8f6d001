internal import AuthContract
internal import AuthService
internal import Logging

/// The restored state of a journal: the live claims, and the dates whose claims it may have lost.
struct JournalRecovery {
    var table = ClaimTable()
    var counter = LiveClaimCounter()
    var history = ClaimHistory()
    /// The segments that were read, oldest first, even those without live claims. Empty if the journal starts over.
    var segments: [ClosedSegment] = []
    /// Segments that are obsolete once the next one exists.
    var obsolete: [UInt64] = []
    /// The obsolete segment that is kept for inspection instead of being deleted; nil if there is none.
    var damaged: UInt64?
    var nextSequence: UInt64 = 1
    /// The id of the segments that are made from now on.
    let opening = UInt64.random(in: 1...(.max))

    /// The inputs of a recovery, except the folder.
    struct Opening {
        let boot: BootIdentity
        let now: Int64
        let monotonic: Int64
        let expectation: JournalExpectation
        let logger: Logger
    }

    /// Reads the folder.
    static func read(_ folder: JournalFolder, _ opening: Opening) throws(StoreOpenError) -> JournalRecovery {
        let sequences = try folder.sequences()
        let (next, overflow) = (sequences.last ?? 0).addingReportingOverflow(1)
        guard !overflow else {
            throw StoreOpenError(.damaged, "The claim journal in \(folder.path) has no numbers left.")
        }
        var recovery = JournalRecovery()
        recovery.nextSequence = next
        var contents = JournalContents()
        contents.table.reserve(folder.recordCount(sequences))

        var last: UInt64?
        // The last segment that has all the records with which a segment must begin (`isBegun`). A segment without them does
        // not show what was lost, so it is never treated as the newest.
        var newest: SegmentContents?
        // Whether a segment of an earlier boot follows `newest` and lacks its first records. If so, the machine lost its
        // power, and later claims may never have reached the disk.
        var hasUnbegunSuccessor = false
        // The ids of the segments that were read.
        var openings: Set<UInt64> = []
        let reader = SegmentReader(folder: folder, boot: opening.boot, now: opening.now)
        for sequence in sequences {
            do throws(SegmentReader.Failure) {
                if let last, sequence != last + 1 {
                    throw .damaged("a segment before it is missing")
                }
                let read = try reader.read(sequence, into: &contents)
                last = sequence
                if read.isBegun {
                    (newest, hasUnbegunSuccessor) = (read, false)
                    openings.insert(read.header.opening)
                } else if read.header.boot != opening.boot {
                    hasUnbegunSuccessor = true
                }
                recovery.segments.append(ClosedSegment(sequence: sequence, latestExpiry: read.latestExpiry))
            } catch {
                switch error {
                case .unfinished where sequence == sequences.last:
                    // The segment has no claims. Its number is reused.
                    folder.remove(sequence)
                    recovery.nextSequence = sequence
                case .unfinished:
                    return recovery.startingOver(contents, sequences, sequence, "its header is missing", opening)
                case .damaged(let reason):
                    return recovery.startingOver(contents, sequences, sequence, reason, opening)
                case .newerVersion:
                    throw StoreOpenError(
                        .newerVersion,
                        "The claim journal in \(folder.path) was written by a newer version. Install that version.")
                case .system(let error):
                    throw StoreOpenError(.notReadable, "The claim journal in \(folder.path) cannot be read: \(error).")
                }
            }
        }
        if let reason = opening.expectation.reasonAgainst(newest, openings) {
            return recovery.startingOver(contents, sequences, nil, reason, opening)
        }
        let isCut = newest.map { $0.header.boot != opening.boot && !$0.isSealed } ?? false
        contents.measure(from: opening.boot, monotonic: opening.monotonic)
        recovery.finish(contents, powerLost: isCut || hasUnbegunSuccessor, opening)
        return recovery
    }

    /// Restores a journal that is complete, or was complete until a loss of power.
    private mutating func finish(_ contents: JournalContents, powerLost: Bool, _ opening: Opening) {
        (table, counter, history) = (contents.table, contents.counter, contents.history)
        let (last, now) = (contents.lastReading, opening.now)
        history.purged(to: UnixTime(contents.expiredTo))
        counter.advance(to: now)
        let finding = history.read(now, monotonic: opening.monotonic)
        let wrong: ClockHistory.WrongReadings? = if case .wrong(let wrong) = finding { wrong } else { nil }
        if powerLost {
            history.lose(around: [last, now].compactMap { $0 }, and: wrong, isWhole: true)
            opening.logger.warning(
                "the machine restarted while claims were written: requests of before are refused for a moment")
        }
        guard let wrong else { return }
        opening.logger.warning(
            "the clock was ahead",
            metadata: ["now": "\(now)", "wrong": "\(wrong.stretches)", "last_right": "\(wrong.lastRight ?? 0)"])
        let latest = ClaimHistory.latestKept(now: now)
        for shard in 0..<ClaimTable.shardCount {
            history.purged(to: UnixTime(table.sweep(shard: shard, now: now, latest: latest)))
        }
        counter.forget(after: latest)
        for index in segments.indices { segments[index].latestExpiry = min(segments[index].latestExpiry, latest) }
    }

    /// Starts a new journal that refuses, by date, every request whose claims the old journal may have held. So the
    /// claims that were read are not needed.
    private func startingOver(
        _ contents: JournalContents, _ sequences: [UInt64], _ damaged: UInt64?, _ reason: String, _ opening: Opening
    ) -> JournalRecovery {
        opening.logger.critical(
            "the claim journal is damaged: requests of before are refused",
            metadata: ["segment": "\(damaged.map { "\($0)" } ?? "all")", "reason": "\(reason)"])
        var contents = contents
        var readings = [contents.lastReading].compactMap { $0 }
        // Use the losses and the readings of both the segments and the note, because either may be outdated: the segments may
        // end before the clock fell back, and the note may be older than the segments.
        if let note = opening.expectation.note {
            contents.history.add(note.loss)
            readings.append(note.clock)
            if contents.history.restoredAt == nil {
                contents.history.recall(purgedTo: contents.history.purgedTo, restoredAt: note.restoredAt)
            }
        }
        var fresh = JournalRecovery()
        fresh.nextSequence = max(nextSequence, opening.expectation.note?.nextSequence(at: opening.now) ?? 1)
        fresh.damaged = damaged
        fresh.obsolete = sequences.filter { $0 != damaged }
        contents.measure(from: opening.boot, monotonic: opening.monotonic)
        fresh.history = contents.history.startingOver(
            after: readings, now: opening.now, monotonic: opening.monotonic,
            isRestored: opening.expectation.note?.isOfRestore ?? false)
        return fresh
    }
}

extension JournalExpectation {
    /// Why a journal with this newest segment, and segments of these openings, is not the expected one; nil if it is.
    fileprivate func reasonAgainst(_ newest: SegmentContents?, _ openings: Set<UInt64>) -> String? {
        if note?.isOfRestore == true { return "the database was restored from a backup" }
        guard let newest else { return self == .nothing ? nil : "it is gone" }
        switch self {
        case .nothing, .kept: return nil
        case .unreadable: return "what the database notes of it cannot be read"
        case .note(let note):
            guard note.opening == 0 || openings.contains(note.opening) else {
                return "it is not the journal that this database had last"
            }
            let (sequence, length) = (newest.header.sequence, newest.length)
            let isOlder = sequence < note.sequence || sequence == note.sequence && length < note.length
            return isOlder ? "it is older than the database" : nil
        }
    }
}
