import ArgumentParser
import AuthContract
import AuthServer
import AuthService
import PostgreSQLStores
import SQLiteStores
import StrictJSON

/// Makes a new database from a backup.
struct RestoreCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "restore", abstract: "Make a new database from a backup, and say what it cannot know.",
        discussion: """
            Reads the whole backup before it writes anything. It refuses a database that exists, a PostgreSQL database with rows, a \
            backup of another service key, a damaged one, and one of a newer version. A backup of a SQLite file can be restored to \
            PostgreSQL, and the other way round.

            Put the service key in place first: as the file <database>.key, or as service_key. Run it as the user of the service.

            What happened after the backup is unknown. The command lists what that means, and how far back the backup is. The \
            first service on the new database refuses requests that the service before may have accepted.

              synheart-auth restore /backup/monday --database db.sqlite
              synheart-auth restore --config /etc/synheart-auth.yaml /backup/monday
            """)
    @Argument(help: "A file that `backup` wrote.") var file: String
    @OptionGroup var stores: StoreOptions
    @Option(help: "The service's configuration file, for stores and service key. Default: $SYNHEART_AUTH_CONFIG.")
    var config: String?
    @OptionGroup var output: OutputOptions

    func run() async throws {
        try await reporting {
            let configuration = try ServiceConfiguration.inEffect(config: config, flags: stores.flags, for: .store)
            let place = try configuration.storePlace()
            if let path = place.file { try SQLiteStores.requireNew(path) }
            let key = try StoreKey(configuration, of: place, creating: false).key
            let backup = BackupFile(path: file)
            let summary = try await backup.check(key: key)
            let (now, taken) = (SystemClock().now, summary.contents.takenAt)
            guard now >= taken else {
                throw CommandFailure(
                    .impossible,
                    "the backup was taken at \(taken.iso8601), and the clock of this machine says \(now.iso8601): set it right, "
                        + "because what the service refuses after a restore depends on it")
            }
            let missing = summary.keyChecks.filter { !key.checks.contains($0) }
            guard missing.isEmpty else {
                throw CommandFailure(
                    .impossible,
                    "the secrets in \(file) also need the service key \(missing[0]): list both in service_key, "
                        + "and run `service-key rotate` after the restore")
            }
            let restored = try await restore(
                backup, Restoration(contents: summary.contents, key: key, archive: configuration.auditArchive),
                to: place)
            try OutputOptions.reporting("restored \(summary.rows.sentence) to \(place)") { () throws(CommandFailure) in
                try report(summary, place, restored)
            }
        }
    }

    private func restore(
        _ backup: BackupFile, _ restoration: Restoration, to place: StorePlace
    ) async throws -> Restoration.Outcome {
        let (key, takenAt) = (restoration.key, restoration.contents.takenAt)
        let export: @Sendable ((StoredTable, [StoredTable.Cell]) throws -> Void) throws -> Void = { visit in
            _ = try backup.read(key: key) { table, cells in try visit(table, table.restored(cells)) }
        }
        var outcome = Restoration.Outcome()
        switch place {
        case .file(let path):
            try await SQLiteStores.restore(path, lastReading: takenAt, at: SystemClock().now, from: export) { stores in
                outcome = try await restoration.complete(stores)
            }
            outcome.refusal = max(outcome.refusal, SignaturePolicy.maximumFutureWindow)
        case .servers(let url, let redis):
            _ = try await PostgreSQLStores.importRows(url, from: export, lastReading: takenAt)
            let stores = try await ServerStores.forCommand(postgresql: url, redis: nil, creating: false)
            try await closing(stores.close) {
                outcome = try await restoration.complete(
                    stores, else: ". The PostgreSQL database has its rows already: empty it before another attempt")
            }
            // With Redis, add the largest difference between two nodes' clocks, and the time for which a former node may still
            // make claims.
            let apart = ClaimHistory.nodesApart + ClaimHistory.lease
            outcome.refusal += redis == nil ? SignaturePolicy.maximumFutureWindow : apart
        }
        return outcome
    }

    private func report(
        _ summary: BackupSummary, _ place: StorePlace, _ restored: Restoration.Outcome
    ) throws(CommandFailure) {
        let taken = summary.contents.takenAt
        let age = SystemClock().now.seconds - taken.seconds
        let unknown = Self.unknown(restored.refusal)
        guard !output.json else {
            let reasons = unknown.map { ($0.0, JSONValue.string($0.1)) }
            let further: [(String, JSONValue)] = [
                ("unknown_seconds", .integer(age)), ("refuses_seconds", .integer(restored.refusal)),
                ("unknown", .object(JSONObject(reasons))),
                ("unchecked_archives", .array(restored.unchecked.map { .string($0) })),
            ]
            return try output.show(JSONObject(summary.members + further))
        }
        let width = unknown.map(\.0.count).max() ?? 0
        let lines = unknown.map { "  \($0.0.padded(to: width))  \($0.1)" }
        try StandardOutput.print(
            """
            restored \(summary.rows.sentence) to \(place)

            What happened after \(taken.iso8601), up to \(Self.span(age)) ago, is unknown:
            \(lines.joined(separator: "\n"))

            The audit log continues \(summary.contents.head)\(restored.warning)
            """)
    }

    /// The history that the backup cannot contain, and the consequences.
    private static func unknown(_ refusal: Int64) -> [(String, String)] {
        [
            ("claims", "the service refuses requests of before its first start, and all for about \(refusal) s: 503"),
            ("revocations", "a device, credential or signing key that was revoked since is valid: revoke it again"),
            (
                "rotations",
                "a device that rotated since gets INVALID_SIGNATURE, and must register again. Its former key is valid again, "
                    + "also one that was rotated away as compromised: revoke that device"
            ),
            ("registrations", "a device that registered since gets NOT_REGISTERED, and must register again"),
            ("deregistrations", "a device that deregistered or was rejected since is as before"),
            ("forgotten", "a device that was forgotten since has its data again, until it is forgotten again"),
            ("schemes", "a device that first used scheme 2 since may use scheme 1 until it uses scheme 2 again"),
            ("made", "signing keys, their tokens, and credentials that were made since are unknown: make new ones"),
            (
                "webhooks",
                "all are switched off, also those that were removed since, and they have their secrets of before: switch on "
                    + "those that you need, and remove the others"
            ),
            ("changes", "apps, credentials, approvals and demands to rotate are as before"),
        ]
    }

    private static func span(_ seconds: Int64) -> String {
        switch seconds {
        case 172_800...: "\(seconds / 86_400) days"
        case 7_200...: "\(seconds / 3_600) hours"
        case 120...: "\(seconds / 60) minutes"
        default: "\(seconds) seconds"
        }
    }
}
