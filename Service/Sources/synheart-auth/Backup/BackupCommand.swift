import ArgumentParser
import AuthContract
import AuthServer
import AuthService
import StrictJSON

/// Writes a backup.
struct BackupCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "backup", abstract: "Write an encrypted backup, also while the service runs.",
        discussion: """
            Writes one snapshot of apps, devices, keys, credentials, signing keys, pending proofs, recordings and the audit log into \
            a new file, sealed with the service key. Reads the file again before it gets its name. \
            Challenges and replay claims are not in it: a restore records a loss of history instead.

            The service key is not in the file. Keep it in another place for as long as you keep the backup: without it, the \
            backup cannot be read.

              synheart-auth backup /backup/monday
              synheart-auth backup --config /etc/synheart-auth.yaml /backup/monday
            """)
    @Argument(help: "The new file.") var file: String
    @OptionGroup var stores: StoreOptions
    @Option(help: "The service's configuration file, for stores and service key. Default: $SYNHEART_AUTH_CONFIG.")
    var config: String?
    @OptionGroup var output: OutputOptions

    func run() async throws {
        try await reporting {
            let configuration = try ServiceConfiguration.inEffect(config: config, flags: stores.flags, for: .store)
            let opened = try await OpenedStores.forCommand(configuration)
            let (engine, key) = (opened.engine, opened.key.key)
            try await closing(engine.close) {
                try await opened.key.admitCommand(to: engine, writing: false)
                let trail = AuthService(stores: engine.all, key: key).auditTrail
                let takenAt = SystemClock().now
                let summary = try await BackupFile(path: file).create(key: key) { write in
                    try await engine.snapshot { end, export in
                        let contents = BackupContents(
                            takenAt: takenAt, version: Build.version, head: try trail.head(of: end))
                        var writer = try BackupWriter(key: key, contents: contents, write: write)
                        try export { table, cells in try writer.add(cells, of: table) }
                        try writer.finish()
                    }
                }
                try output.done(
                    "wrote \(file): \(summary.rows.sentence). The audit log ends with \(summary.contents.head)",
                    JSONObject([("file", .string(file))] + summary.members))
            }
        }
    }
}

extension BackupSummary {
    /// The members in the JSON of `backup` and `restore`.
    var members: [(String, JSONValue)] {
        let counts = StoredTable.allCases.map { ($0.rawValue, JSONValue.integer(rows[$0] ?? 0)) }
        return [
            ("taken_at", .string(contents.takenAt.iso8601)), ("version", .string(contents.version)),
            ("audit_head", .string(contents.head.description)), ("rows", .object(JSONObject(counts))),
        ]
    }
}
