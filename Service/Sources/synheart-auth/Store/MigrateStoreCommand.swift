import ArgumentParser
import AuthService
import Foundation
import PostgreSQLStores
import SQLiteStores
import StrictJSON

/// Moves a deployment from SQLite to PostgreSQL, or gives up a move.
struct MigrateStoreCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "migrate-store", abstract: "Move a deployment from a SQLite file to PostgreSQL.",
        discussion: """
            Copies apps, devices, keys, credentials, signing keys, pending proofs, recordings and the audit log with its chain into \
            an empty database, in one transaction, and verifies the chain there. Stop the service first, and start the nodes with \
            the same service key: the content of <database>.key, or the value of service_key. The file stays as a backup of \
            this moment: no service and no other command opens it, even if the move was killed at its end. `--undo` gives up a move, \
            before any node has used PostgreSQL: it asks the database that --to or the variable names.

            Challenges and replay claims stay behind. A client whose challenge is gone starts again, and the first node refuses \
            requests from before the move for some minutes, as after any loss of history.

              synheart-auth migrate-store --from sqlite:/var/lib/synheart-auth/db.sqlite \\
                  --to postgresql://auth@db.example.com/auth
              synheart-auth migrate-store --from sqlite:/var/lib/synheart-auth/db.sqlite \\
                  --to postgresql://auth@db.example.com/auth --undo
            """)
    @Option(help: "sqlite: and the path of the file.") var from: String
    @Option(
        help: ArgumentHelp(
            "The URL of an empty PostgreSQL database. Default: $SYNHEART_AUTH_STORES_POSTGRESQL.",
            discussion: "Every process can read a flag: give a URL with a password in the variable."))
    var to: String?
    @Flag(help: "Give up the move: a service may use the file again. It knows no device and no revocation since.")
    var undo = false
    @OptionGroup var output: OutputOptions

    func run() async throws {
        try await reporting {
            let (path, url) = (try file(), undo ? nil : try requiredTarget())
            guard FileManager.default.fileExists(atPath: path) else {
                throw CommandFailure(.impossible, "there is no database at \(path)")
            }
            let database = try SQLiteStores.resolvedPath(path)
            let source = try SQLiteStores(path: database, role: .move)
            try await closing(source.close) {
                guard let url else { return try await giveUp(source, database) }
                if let broken = try await source.audit.firstBrokenLink() {
                    throw CommandFailure(
                        .refused,
                        "the audit log of \(database) is changed at event \(broken): nothing was moved. Compare it with a backup"
                    )
                }
                var moved: [StoredTable: Int] = [:]
                let isUnserved = try await source.lock.withoutService {
                    moved = try await PostgreSQLStores.importRows(
                        url, from: source.export,
                        // Note the move before PostgreSQL commits the rows. Otherwise, if this command is killed after the commit,
                        // a service could start on the file, which lacks the devices that register in PostgreSQL.
                        committing: { try source.noteMove(to: "PostgreSQL at \(Date.now.formatted(.iso8601))") },
                        progress: { table, count in Self.tell("\(table.rawValue): \(count)") })
                    try await verify(url, against: source)
                }
                guard isUnserved else {
                    throw CommandFailure(.impossible, "a service uses \(database): stop it first")
                }
                try report(moved, database)
            }
        }
    }

    /// Gives up the move. If the URL of PostgreSQL is given, refuses if a node has used PostgreSQL since the move: the file lacks the
    /// devices and revocations of that time. A phone that registered in that time would get NOT_REGISTERED and discard its identity.
    private func giveUp(_ source: SQLiteStores, _ database: String) async throws {
        if let target {
            let stores = try await PostgreSQLStores.connect(target, role: .administration)
            var isUsed = false
            try await closing(stores.close) { isUsed = try await stores.namedKeeper().renewedAt != nil }
            guard !isUsed else {
                throw CommandFailure(
                    .refused,
                    "a node has used PostgreSQL since the move, so it may have devices and revocations that \(database) lacks. "
                        + "Keep PostgreSQL. To give all of that up, run this without --to and without "
                        + "SYNHEART_AUTH_STORES_POSTGRESQL")
            }
        }
        var wasMoved = false
        let isUnserved = try await source.lock.withoutService { wasMoved = try await source.undoMove() }
        guard isUnserved else { throw CommandFailure(.impossible, "a service uses \(database): stop it first") }
        guard wasMoved else { throw CommandFailure(.refused, "the rows of \(database) were not moved") }
        try output.done(
            "a service may use \(database) again. Requests of before are refused for some minutes."
                + (target == nil
                    ? " PostgreSQL was not asked whether a node has used it: make sure that none runs on it" : ""),
            JSONObject([("database", .string(database))]))
    }

    private func file() throws -> String {
        guard from.hasPrefix("sqlite:"), from.count > "sqlite:".count else {
            throw CommandFailure(
                .impossible, "--from is sqlite: and a path, such as sqlite:/var/lib/synheart-auth/db.sqlite")
        }
        return String(from.dropFirst("sqlite:".count))
    }

    private var target: String? { to ?? ProcessInfo.processInfo.environment["SYNHEART_AUTH_STORES_POSTGRESQL"] }

    private func requiredTarget() throws -> String {
        guard let url = target else {
            throw CommandFailure(
                .impossible, "--to is the URL of an empty database, such as postgresql://auth@db.example.com/auth")
        }
        return url
    }

    /// Checks that the copied audit log has no broken link, and ends with the same event as the log in the file.
    private func verify(_ url: String, against source: SQLiteStores) async throws {
        let target = try await PostgreSQLStores.connect(url, role: .administration)
        try await closing(target.close) {
            let (broken, end) = (try await target.audit.firstBrokenLink(), try await target.audit.link(at: nil))
            guard broken == nil, end == (try await source.audit.link(at: nil)) else {
                throw CommandFailure(
                    .refused,
                    "the audit log is not whole after the move" + (broken.map { ", from event \($0) on" } ?? "")
                        + ". Empty the PostgreSQL database before another attempt; `--undo` opens \(from) again")
            }
        }
    }

    private func report(_ moved: [StoredTable: Int], _ database: String) throws {
        let counts = StoredTable.allCases.map { ($0.rawValue, moved[$0] ?? 0) }
        let sentence = counts.filter { $0.1 > 0 }.map { "\($0.1) \($0.0)" }.joined(separator: ", ")
        try output.done(
            "moved \(sentence). Start the nodes with this database's service key (\(database).key, unless service_key is "
                + "configured). No service and no command opens \(database) any more: keep it as a backup",
            JSONObject(counts.map { ($0.0, .integer(Int64($0.1))) }))
    }

    /// Shows progress on standard error, and only on a terminal, because it is for the user and not for programs.
    private static func tell(_ line: String) {
        if isatty(STDERR_FILENO) == 1 { FileHandle.standardError.write(Data("\r\(line)\u{1B}[K".utf8)) }
    }
}
