internal import AuthService
internal import GRDB

extension StoreDatabase {
    private static let journal = "claim_journal"
    /// The value that older versions wrote: it only states that there was a journal.
    private static let kept = "kept"

    /// The recorded state of the claim journal next to this file. If the journal is missing or older, claims were lost.
    func journalExpectation() throws(StoreOpenError) -> JournalExpectation {
        let text = try writeNow { database in
            try String.fetchOne(database, sql: "SELECT value FROM facts WHERE name = ?", arguments: [Self.journal])
        }
        guard let text else { return .nothing }
        if text == Self.kept { return .kept }
        return JournalNote(text).map { .note($0) } ?? .unreadable
    }

    /// Records the state of the claim journal before any claim is made in it.
    func note(_ journal: JournalNote) throws(StoreOpenError) {
        try writeNow { try Self.note(journal, $0) }
    }

    /// Records the new state of the claim journal. If that fails, the older record remains, which detects fewer losses.
    func keep(_ journal: JournalNote) async {
        try? await write { try Self.note(journal, $0) }
    }

    static func note(_ note: JournalNote, _ database: Database) throws {
        try database.execute(
            sql: "INSERT INTO facts (name, value) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET value = ?2",
            arguments: [journal, note.text])
    }
}
