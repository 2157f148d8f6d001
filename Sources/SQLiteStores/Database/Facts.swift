internal import GRDB

extension StoreDatabase {
    private static let journal = "claim_journal"

    /// Whether a claim journal was ever beside this file: one that is missing then was lost.
    func hasClaimJournal() throws(OpenError) -> Bool {
        try writeNow { database in
            try Bool.fetchOne(
                database, sql: "SELECT EXISTS (SELECT 1 FROM facts WHERE name = ?)", arguments: [Self.journal]) ?? false
        }
    }

    func noteClaimJournal() throws(OpenError) {
        try writeNow { database in
            try database.execute(
                sql: "INSERT INTO facts (name, value) VALUES (?, 'kept') ON CONFLICT DO NOTHING",
                arguments: [Self.journal])
        }
    }
}
