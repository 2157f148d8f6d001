internal import AuthService
internal import GRDB

extension StoreDatabase {
    private static let journal = "claim_journal"
    /// The value that older versions wrote: it only states that there was a journal.
    private static let kept = "kept"

    /// The recorded state of the claim journal next to this file. If the journal is missing or its state is older, claims were
    /// lost.
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

    private static let moved = "moved_to"

    /// Throws if the rows of this database were moved to another engine. A service on this file would not know devices
    /// that registered later, and phones whose device is unknown give up their identity. It would not know later
    /// revocations, and would accept used requests again.
    func requireNotMoved() throws(StoreOpenError) {
        let place: String?
        do {
            place = try readNow { database in
                try String.fetchOne(database, sql: "SELECT value FROM facts WHERE name = ?", arguments: [Self.moved])
            }
        } catch { throw StoreOpenError(.unavailable, "\(path) cannot be read: \(error).") }
        guard let place else { return }
        throw StoreOpenError(
            .moved,
            """
            The rows of \(path) were moved to \(place): name that database in stores.postgresql. If no node has used it \
            since, and you give up the move: synheart-auth migrate-store --from sqlite:\(path) --undo.
            """)
    }

    /// Notes that the rows were moved.
    func noteMove(to place: String) throws(StoreOpenError) { try writeNow { try Self.set(Self.moved, to: place, $0) } }

    /// Removes the note about the move. The journal next to this file lacks the claims that the other engine has made meanwhile.
    /// So this makes the note about the journal unreadable, and the next start treats the journal as lost.
    ///
    /// - Returns: false if the rows were not moved.
    func undoMove() async throws(StoreError) -> Bool {
        try await write { database in
            try database.execute(sql: "DELETE FROM facts WHERE name = ?", arguments: [Self.moved])
            guard database.changesCount > 0 else { return false }
            try Self.set(Self.journal, to: "moved", database)
            return true
        }
    }

    static func note(_ note: JournalNote, _ database: Database) throws { try set(journal, to: note.text, database) }

    private static func set(_ name: String, to value: String, _ database: Database) throws {
        try database.execute(
            sql: "INSERT INTO facts (name, value) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET value = ?2",
            arguments: [name, value])
    }
}
