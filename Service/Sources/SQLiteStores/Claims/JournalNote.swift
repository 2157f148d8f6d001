internal import AuthService

/// The journal state that the database stores, to detect a journal that is missing, outdated, or of another database.
struct JournalNote: Sendable, Hashable {
    /// The newest segment in use, and the number of its bytes on the disk.
    var sequence: UInt64
    var length: Int
    /// The id of the segment's opening (`SegmentHeader.opening`): the numbers of the journals of two copies of a database overlap.
    /// 0: not known.
    var opening: UInt64
    /// The latest reading of the service's clock that this note covers, in unix seconds. Claims made later need a newer note.
    var clock: Int64
    /// The dates whose requests are refused if the journal is missing or damaged.
    var loss: HistoryLoss

    private static let version = "3"
    /// How far `clock` is ahead of the service's clock when a note is made, in seconds. Once the service's clock has
    /// passed `clock`, the next note is due.
    static let life: Int64 = 60

    init(sequence: UInt64, length: Int, opening: UInt64, clock: Int64, loss: HistoryLoss) {
        self.sequence = sequence
        self.length = length
        self.opening = opening
        self.clock = clock
        self.loss = loss
    }

    /// Parses a note from its `text`; nil if the text is malformed or of another version.
    init?(_ text: String) {
        var words = text.split(separator: " ", omittingEmptySubsequences: false)
        // Version 2 had no id.
        if words.first == "2", words.count >= 3 { words.replaceSubrange(0...2, with: ["3", words[1], words[2], "0"]) }
        guard words.count >= 5, words[0] == Self.version, let sequence = UInt64(words[1]), let length = Int(words[2]),
            let opening = UInt64(words[3]), let clock = Int64(words[4]), words.count <= 5 + HistoryLoss.maximum
        else { return nil }
        var loss = HistoryLoss()
        for word in words.dropFirst(5) {
            let parts = word.split(separator: ",", omittingEmptySubsequences: false)
            guard parts.count == 3, let first = Int64(parts[0]), let last = Int64(parts[1]), first <= last,
                parts[2] == "open" || parts[2] == "closed"
            else { return nil }
            loss.add(from: first, to: last, isOpen: parts[2] == "open")
        }
        self.init(sequence: sequence, length: length, opening: opening, clock: clock, loss: loss)
    }

    var text: String {
        let intervals = loss.intervals.map { "\($0.first),\($0.last),\($0.isOpen ? "open" : "closed")" }
        return ([Self.version, "\(sequence)", "\(length)", "\(opening)", "\(clock)"] + intervals).joined(separator: " ")
    }
}

/// The journal state that the database expects.
enum JournalExpectation: Sendable, Hashable {
    /// There never was a journal.
    case nothing
    /// There was a journal. Older versions of the service recorded only this fact, and no note.
    case kept
    case note(JournalNote)
    /// The recorded note is unreadable.
    case unreadable

    var note: JournalNote? {
        if case .note(let note) = self { note } else { nil }
    }
}
