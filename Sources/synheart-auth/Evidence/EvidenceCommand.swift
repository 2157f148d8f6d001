import ArgumentParser
import AuthContract
import AuthServer
import AuthService
import StrictJSON

/// Refusals that the service recorded.
struct EvidenceCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "evidence", abstract: "List refusals that were recorded, export and erase them.",
        discussion: """
            An app's refusals are recorded where its record says `"evidence": {"record": true}`. What is exported identifies a
            device: treat it as personal data.

              synheart-auth evidence list --app com.example.app
              synheart-auth evidence export --app com.example.app 7d0f… --output refusal.json
              synheart-auth attestation replay refusal.json
            """,
        subcommands: [List.self, Export.self, Delete.self])

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "List recorded refusals, newest first.")
        @Option(name: .customLong("app"), help: "Only of this app.") var app: String?
        @Option(help: "Only those older than this one.") var before: String?
        @Option(help: "At most so many.") var limit = 50
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var output: OutputOptions

        func run() async throws {
            try await reporting {
                let evidence = try await database.administration().evidence.list(
                    of: try app.map { try AppID($0) }, before: before, limit: limit)
                output.list(
                    evidence.map(\.administrationJSON),
                    columns: ["id", "app_id", "recorded_at", "format", "code", "step"], empty: "nothing was recorded")
            }
        }
    }

    struct Export: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Write one as a document that `attestation replay` takes; audited.")
        @Option(name: .customLong("app"), help: "The app id.") var app: String
        @Argument(help: "The id, as listed.") var id: String
        @Option(name: .customLong("output"), help: "Write to this file, for its owner alone; else to standard output.")
        var file: String?
        @OptionGroup var database: DatabaseOptions

        func run() async throws {
            try await reporting {
                let app = try AppID(app)
                guard let document = try await database.administration().evidence.export(id, of: app, actor: "cli")
                else { throw CommandFailure(.refused, "\(app) has no evidence \(id)") }
                let text = try JSONValue(parsing: document, limits: .init(bytes: 16 << 20, depth: 64)).text(.pretty)
                guard let file else { return print(text) }
                try OutputFile.write(text + "\n", to: file)
            }
        }
    }

    struct Delete: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Erase one, or all of an app; audited.")
        @Option(name: .customLong("app"), help: "The app id.") var app: String
        @Argument(help: "The id, as listed.") var id: String?
        @Flag(help: "All that was recorded of the app.") var all = false
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var output: OutputOptions

        func validate() throws {
            guard (id == nil) == all else { throw ValidationError("name one, or --all") }
        }

        func run() async throws {
            try await reporting {
                let app = try AppID(app)
                let erased = try await database.administration().evidence.erase(id, of: app, actor: "cli")
                if let id, erased == 0 { throw CommandFailure(.refused, "\(app) has no evidence \(id)") }
                output.done("\(erased) erased", JSONObject([("erased", .integer(erased))]))
            }
        }
    }
}
