import ArgumentParser
import AuthServer
import StrictJSON

/// The commands for the audit log.
struct AuditCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "audit", abstract: "Read and follow the audit log, and verify that it is unchanged.",
        discussion: """
            Each event has the hash of the one before it, which reveals a change or a gap. A head is the signed end of the log; \
            the service logs one every hour. A head kept elsewhere also reveals a cut end and a rewritten log.

              synheart-auth audit list --app com.example.app
              synheart-auth audit --follow --json
              synheart-auth audit head > head
              synheart-auth audit verify --head "$(cat head)"
            """,
        subcommands: [List.self, Verify.self, Head.self], defaultSubcommand: List.self)

    struct List: AdministrationCommand {
        static let configuration = CommandConfiguration(
            abstract: "List events, newest first, or follow the log.",
            discussion: """
                With --follow, events are printed as they are appended, oldest first, until the command is stopped. It goes \
                on after a lost connection and a restart of the service. A program resumes with --after and the last number \
                that it has seen.

                  synheart-auth audit list --app com.example.app --limit 20
                  synheart-auth audit list --device 7d0f6c1a-2b1e-4f6b-9c3d-0a1b2c3d4e5f --json
                  synheart-auth audit list --code app.changed --code app.removed
                  synheart-auth audit list --follow --after 4711 --json
                """)
        @Flag(help: "Print events as they are appended, each on one line.") var follow = false
        @Option(help: "With --follow: only after this event; 0: from the log's oldest on. Default: only later events.")
        var after: Int64?
        @Option(name: .customLong("app"), help: "Only of this app.") var app: String?
        @Option(name: .customLong("device"), help: "Only of this device.") var device: String?
        @Option(name: .customLong("code"), help: "Only with this code, such as app.changed; may be repeated.")
        var codes: [String] = []
        @Option(help: "Only before the event with this number.") var before: Int64?
        @OptionGroup var page: LimitOptions
        @OptionGroup var options: AdministrationOptions

        private static let columns = ["sequence", "at", "code", "actor", "app_id", "device_id"]

        func validate() throws {
            guard after == nil || follow else { throw ValidationError("--after goes with --follow") }
            guard before == nil || !follow else { throw ValidationError("--before excludes --follow") }
            guard codes.isEmpty || !follow else { throw ValidationError("--code excludes --follow") }
        }

        func perform(_ administration: any Administration, _ output: OutputOptions) async throws {
            guard !follow else {
                return try await administration.followAudit(
                    after: after, query: [("app_id", app), ("device_id", device)]
                ) { (event) throws(CommandFailure) in try output.line(event, columns: Self.columns) }
            }
            let events = try await administration.list(
                .queryAudit, "events", limit: page.limit, cursor: ("before", "next_before"),
                from: before.map { String($0) },
                query: [
                    ("app_id", app), ("device_id", device),
                    ("code", codes.isEmpty ? nil : codes.joined(separator: ",")),
                ])
            try output.list(events, columns: Self.columns, empty: "no events")
        }
    }

    struct Verify: AdministrationCommand {
        static let configuration = CommandConfiguration(
            abstract: "Verify the whole log; exit code 1 if it was changed.",
            discussion: """
                A head of another service and a changed head are refused with exit code 1, too.

                  synheart-auth audit verify
                  synheart-auth audit verify --head "$(cat head)"
                """)
        @Option(help: "A head that `audit head` or the service's log gave; the log must still contain it.")
        var head: String?
        @OptionGroup var options: AdministrationOptions

        func perform(_ administration: any Administration, _ output: OutputOptions) async throws {
            let verdict = try await administration.ask(.verifyAudit, query: [("head", head)])
            let sentence = verdict["message"]?.string ?? ""
            guard verdict["intact"]?.bool == true else {
                if output.json { try output.show(verdict) }
                throw CommandFailure(.refused, sentence)
            }
            try output.done(sentence, verdict)
        }
    }

    struct Head: AdministrationCommand {
        static let configuration = CommandConfiguration(
            abstract: "Print the signed head of the log: one word, to keep elsewhere.",
            discussion: """
                  synheart-auth audit head > head
                """)
        @OptionGroup var options: AdministrationOptions

        func perform(_ administration: any Administration, _ output: OutputOptions) async throws {
            let head = try await administration.ask(.showAuditHead)
            try output.done(head["head"]?.string ?? "", head)
        }
    }
}
