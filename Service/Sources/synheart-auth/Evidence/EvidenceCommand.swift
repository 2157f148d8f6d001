import ArgumentParser
import AuthServer
import StrictJSON

/// Refusals that the service recorded.
struct EvidenceCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "evidence", abstract: "List refusals that were recorded, export and erase them.",
        discussion: """
            An app's refusals are recorded if its record has `"evidence": {"record": true}`. Exported evidence identifies a \
            device: treat it as personal data.

              synheart-auth evidence list --app com.example.app
              synheart-auth evidence export --app com.example.app 01k6x2m8 \\
                  --output refusal.json
              synheart-auth attestation replay refusal.json
            """,
        subcommands: [List.self, Export.self, Delete.self])

    struct List: AdministrationCommand {
        static let configuration = CommandConfiguration(
            abstract: "List recorded refusals, newest first.",
            discussion: """
                  synheart-auth evidence list --app com.example.app
                """)
        @Option(name: .customLong("app"), help: "Only of this app.") var app: String?
        @Option(help: "Only those older than this one.") var before: String?
        @OptionGroup var page: LimitOptions
        @OptionGroup var options: AdministrationOptions

        func perform(_ administration: any Administration, _ output: OutputOptions) async throws {
            let evidence = try await administration.list(
                .listEvidence, "evidence", limit: page.limit, cursor: ("cursor", "next_cursor"), from: before,
                query: [("app_id", app)])
            try output.list(
                evidence, columns: ["id", "app_id", "recorded_at", "format", "code", "step"],
                empty: "nothing was recorded")
        }
    }

    struct Export: AdministrationCommand {
        static let configuration = CommandConfiguration(
            abstract: "Write one as a document that `attestation replay` takes; audited.",
            discussion: """
                  synheart-auth evidence export --app com.example.app 01k6x2m8 \\
                      --output refusal.json
                """)
        @Option(name: .customLong("app"), help: "The app id.") var app: String
        @Argument(help: "The id, as listed.") var id: String
        @Option(name: .customLong("output"), help: "Write to this file, for its owner alone; else to standard output.")
        var file: String?
        @OptionGroup var options: AdministrationOptions

        func perform(_ administration: any Administration, _ output: OutputOptions) async throws {
            let document = try await administration.ask(.exportEvidence, ["app_id": app, "evidence_id": id])
            let text = JSONValue.object(document).text(.pretty)
            guard let file else { return try StandardOutput.print(json: text) }
            try OutputFile.write(text + "\n", to: file)
        }
    }

    struct Delete: AdministrationCommand {
        static let configuration = CommandConfiguration(
            abstract: "Erase one, or all of an app; audited.",
            discussion: """
                  synheart-auth evidence delete --app com.example.app 01k6x2m8
                  synheart-auth evidence delete --app com.example.app --all
                """)
        @Option(name: .customLong("app"), help: "The app id.") var app: String
        @Argument(help: "The id, as listed.") var id: String?
        @Flag(help: "All that was recorded of the app.") var all = false
        @OptionGroup var options: AdministrationOptions

        func validate() throws {
            guard (id == nil) == all else { throw ValidationError("name one, or --all") }
        }

        func perform(_ administration: any Administration, _ output: OutputOptions) async throws {
            let answer =
                if let id {
                    try await administration.ask(.eraseEvidence, ["app_id": app, "evidence_id": id])
                } else {
                    try await administration.ask(.eraseAllEvidence, ["app_id": app])
                }
            try output.done("\(answer["erased"]?.integer ?? 1) erased", answer)
        }
    }
}
