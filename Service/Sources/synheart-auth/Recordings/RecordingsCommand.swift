import ArgumentParser
import AuthServer
import StrictJSON

/// The commands for refusals that the service recorded.
struct RecordingsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "recordings", abstract: "List refusals that were recorded, export and erase them.",
        discussion: """
            An app's refusals are recorded if its record has `"evidence": {"record": true}`. A recording identifies \
            a device: treat it as personal data.

              synheart-auth recordings list --app com.example.app
              synheart-auth recordings export --app com.example.app 01k6x2m8 \\
                  --output refusal.json
              synheart-auth attestation replay refusal.json
            """,
        subcommands: [List.self, Export.self, Delete.self],
        // The former name of the command. It still works in all versions 1.x.
        aliases: ["evidence"])

    struct List: AdministrationCommand {
        static let configuration = CommandConfiguration(
            abstract: "List recorded refusals, newest first.",
            discussion: """
                  synheart-auth recordings list --app com.example.app
                """)
        @Option(name: .customLong("app"), help: "Only of this app.") var app: String?
        @Option(help: "Only those older than this one.") var before: String?
        @OptionGroup var page: LimitOptions
        @OptionGroup var options: AdministrationOptions

        func perform(_ administration: any Administration, _ output: OutputOptions) async throws {
            let recordings = try await administration.list(
                .listRecordings, "recordings", limit: page.limit, cursor: ("cursor", "next_cursor"), from: before,
                query: [("app_id", app)])
            try output.list(
                recordings, columns: ["id", "app_id", "recorded_at", "format", "code", "step"],
                empty: "nothing was recorded")
        }
    }

    struct Export: AdministrationCommand {
        static let configuration = CommandConfiguration(
            abstract: "Write one as a document that `attestation replay` takes; audited.",
            discussion: """
                  synheart-auth recordings export --app com.example.app 01k6x2m8 \\
                      --output refusal.json
                """)
        @Option(name: .customLong("app"), help: "The app id.") var app: String
        @Argument(help: "The id, as listed.") var id: String
        @Option(name: .customLong("output"), help: "Write to this file, for its owner alone; else to standard output.")
        var file: String?
        @OptionGroup var options: AdministrationOptions

        func perform(_ administration: any Administration, _ output: OutputOptions) async throws {
            let document = try await administration.ask(.exportRecording, ["app_id": app, "recording_id": id])
            let text = JSONValue.object(document).text(.pretty)
            guard let file else { return try StandardOutput.print(json: text) }
            try OutputFile.write(text + "\n", to: file)
        }
    }

    struct Delete: AdministrationCommand {
        static let configuration = CommandConfiguration(
            abstract: "Erase one, or all of an app; audited.",
            discussion: """
                  synheart-auth recordings delete --app com.example.app 01k6x2m8
                  synheart-auth recordings delete --app com.example.app --all
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
                    try await administration.ask(.eraseRecording, ["app_id": app, "recording_id": id])
                } else {
                    try await administration.ask(.eraseRecordings, ["app_id": app])
                }
            try output.done("\(answer["erased"]?.integer ?? 1) erased", answer)
        }
    }
}
