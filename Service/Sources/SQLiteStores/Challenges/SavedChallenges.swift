internal import AuthContract
internal import AuthService
internal import GRDB

/// Carries challenges from one run of the service to the next.
extension StoreDatabase {
    /// Saves the challenges of a closing service. If that fails they are lost, which the protocol allows.
    func save(_ challenges: [(challenge: IssuedChallenge, source: String)]) async {
        try? await write { database in
            let statement = try database.cachedStatement(
                sql: """
                    INSERT INTO saved_challenges (challenge, app_id, purpose, expires_at, source) VALUES (?, ?, ?, ?, ?)
                    ON CONFLICT DO NOTHING
                    """)
            for (challenge, source) in challenges {
                try statement.execute(arguments: [
                    challenge.bytes.data, challenge.appID.text, challenge.purpose.rawValue,
                    challenge.expiresAt.seconds, source,
                ])
            }
        }
    }

    /// Returns the saved challenges and removes them from the file, so that two runs cannot both accept one. Rows that cannot be
    /// read are lost.
    func takeSavedChallenges() throws(StoreOpenError) -> [(challenge: IssuedChallenge, source: String)] {
        try writeNow { database in
            let rows = try Row.fetchAll(database, sql: "SELECT * FROM saved_challenges ORDER BY rowid")
            try database.execute(sql: "DELETE FROM saved_challenges")
            return rows.compactMap { row in
                let row = StoredRow(row)
                guard let bytes = try? row.bytes("challenge"), let app = try? AppID(row.text("app_id")),
                    let purpose = (try? row.text("purpose")).flatMap(ChallengePurpose.init(rawValue:)),
                    let expiry = try? row.integer("expires_at"), let source = try? row.text("source")
                else { return nil }
                return (
                    IssuedChallenge(bytes: bytes, appID: app, purpose: purpose, expiresAt: UnixTime(expiry)), source
                )
            }
        }
    }
}
