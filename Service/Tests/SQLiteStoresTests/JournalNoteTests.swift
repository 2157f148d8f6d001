import AuthService
import Testing

@testable import SQLiteStores

/// The journal state that the database stores.
struct JournalNoteTests {
    @Test(arguments: [true, false])
    func `the recorded state of a journal is read unchanged`(_ isOpen: Bool) {
        var loss = HistoryLoss()
        loss.add(from: -5, to: 700, isOpen: isOpen)
        loss.add(from: 2000, to: 2001, isOpen: !isOpen)
        var note = JournalNote(sequence: 7, length: 960, opening: .max, clock: 1_750_000_000, loss: loss)
        #expect(JournalNote(note.text) == note)
        #expect(
            note.text
                == "3 7 960 \(UInt64.max) 1750000000 -5,700,\(isOpen ? "open" : "closed") 2000,2001,\(isOpen ? "closed" : "open")"
        )
        for number in Int64(3)...32 { note.loss.add(from: number * 1000, to: number * 1000, isOpen: isOpen) }
        #expect(note.loss.intervals.count == HistoryLoss.maximum)
        #expect(JournalNote(note.text) == note)
    }

    @Test func `a record of before the id is read, and its journal is not known`() {
        let note = JournalNote("2 7 960 1750000000 1,2,open")
        #expect(note?.opening == 0 && note?.clock == 1_750_000_000 && note?.loss.intervals.count == 1)
    }

    @Test(arguments: [
        "", "2", "3", "3 7 960", "3 7 960 1", "3 7 960 -1 1750000000", "4 7 960 1 1750000000", "1 7 960 1750000000",
        "2 7 960", "2 -7 960 1750000000", "2 7 960 1750000000 ",
        "2 7 960 1750000000 1,2",
        "2 7 960 1750000000 1,2,ajar", "2 7 960 1750000000 ,1,2,open", "2  7 960 1750000000",
        "2 7 960 1750000000 1,,2,open", "2 7 960 1750000000 3,2,open", "2 7 960 1750000000 1,2,open,",
    ])
    func `a malformed record of a journal is refused`(_ text: String) {
        #expect(JournalNote(text) == nil)
    }

    @Test(arguments: [33, 34]) func `a record with too many intervals is refused`(_ count: Int) {
        let intervals = (1...count).map { " \($0 * 10),\($0 * 10 + 1),open" }.joined()
        #expect(JournalNote("2 7 960 1750000000" + intervals) == nil)
    }
}
