import ArgumentParser
import AuthContract
import AuthServer
import AuthService
import StrictJSON

/// The commands for provisioned apps.
struct AppsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "apps", abstract: "Provision apps.",
        discussion: """
            A running service sees a change within a second. You can edit the output of `apps show --json` and give it back: \
            masked secrets stay.

              synheart-auth apps example > app.json
              synheart-auth apps add --file app.json
              synheart-auth apps list --json
            """,
        subcommands: [Add.self, Change.self, List.self, Show.self, Remove.self, Example.self])

    /// An app record in a file, in the form of the API.
    struct Record: ParsableArguments {
        @Option(help: "The app record, JSON; - for standard input.") var file: String

        func read() throws -> JSONObject {
            guard let record = try InputFile.json(file).object else {
                throw CommandFailure(.refused, "\(file) is not an app record: a JSON object")
            }
            return record
        }
    }

    struct Add: AdministrationCommand {
        static let configuration = CommandConfiguration(
            abstract: "Add an app from its record.",
            discussion: """
                  synheart-auth apps add --file app.json
                  vault kv get -field=record secret/app | synheart-auth apps add --file -
                """)
        static let makesDatabase = true
        @OptionGroup var record: Record
        @OptionGroup var options: AdministrationOptions

        /// Reads the record before the store is opened, so that no database is created if the record is unreadable.
        func run() async throws {
            try await reporting {
                let record = try record.read()
                let administration = try await options.open(creating: Self.makesDatabase)
                try await closing(administration.close) { try await add(record, administration, options.output) }
            }
        }

        func perform(_ administration: any Administration, _ output: OutputOptions) async throws {
            try await add(try record.read(), administration, output)
        }

        private func add(
            _ record: JSONObject, _ administration: any Administration, _ output: OutputOptions
        ) async throws {
            let added = try await administration.ask(.addApp, body: record)
            try output.done("added \(added["app_id"]?.string ?? "")", added)
        }
    }

    struct Change: AdministrationCommand {
        static let configuration = CommandConfiguration(
            abstract: "Replace an app's record.",
            discussion: """
                  synheart-auth apps show com.example.app --json > app.json
                  synheart-auth apps change --file app.json
                """)
        @OptionGroup var record: Record
        @OptionGroup var options: AdministrationOptions

        func perform(_ administration: any Administration, _ output: OutputOptions) async throws {
            let record = try record.read()
            guard let id = record["app_id"]?.string else {
                throw CommandFailure(.refused, "the record has no app_id")
            }
            let before = try? await administration.ask(.showApp, ["app_id": id])
            let changed = try await administration.ask(.changeApp, ["app_id": id], body: record)
            try output.done("changed \(id)", changed)
            for demand in Self.demands(changed) where !(before.map(Self.demands) ?? []).contains(demand) {
                guard let by = demand.object?["rotate_by"]?.string.flatMap({ try? UnixTime(iso8601: $0) }),
                    by <= SystemClock().now
                else { continue }
                StandardError.print(
                    """
                    warning: rotate_by of keys.compromise, \(by.iso8601), has passed: keys of before \
                    \(demand.object?["keys_before"]?.string ?? "then") are refused from now on, also when they rotate, and their phones \
                    register again. If you meant a later time, change it at once
                    """)
            }
        }

        /// The demands of a record's `keys.compromise`: none, one or a list.
        private static func demands(_ record: JSONObject) -> [JSONValue] {
            let compromise = record["keys"]?.object?["compromise"] ?? .null
            return compromise.array ?? (compromise.isNull ? [] : [compromise])
        }
    }

    struct List: AdministrationCommand {
        static let configuration = CommandConfiguration(
            abstract: "List apps.",
            discussion: """
                  synheart-auth apps list
                  synheart-auth apps list --json --database /var/lib/synheart-auth/db.sqlite
                """)
        @OptionGroup var options: AdministrationOptions

        func perform(_ administration: any Administration, _ output: OutputOptions) async throws {
            let answer = try await administration.ask(.listApps)
            let records = (answer["apps"]?.array ?? []).compactMap(\.object).map { record in
                var record = record
                record["platforms"] = .array(
                    ["ios", "android"].filter { record[$0].map { !$0.isNull } ?? false }.map { .string($0) })
                return record
            }
            try output.list(
                records, columns: ["app_id", "name", "build_channel", "platforms", "mode", "enabled"],
                empty: "no apps: add one with `apps add --file`")
            let unreadable = (answer["unreadable"]?.array ?? []).compactMap(\.string)
            guard unreadable.isEmpty else {
                throw CommandFailure(
                    .impossible,
                    "records that cannot be read: \(unreadable.joined(separator: ", ")). See `synheart-auth doctor`")
            }
        }
    }

    struct Show: AdministrationCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show an app's record; secrets are masked.",
            discussion: """
                  synheart-auth apps show com.example.app
                  synheart-auth apps show com.example.app --json > app.json
                """)
        @Argument(help: "The app id.") var appID: String
        @OptionGroup var options: AdministrationOptions

        func perform(_ administration: any Administration, _ output: OutputOptions) async throws {
            var record = try await administration.ask(.showApp, ["app_id": appID])
            if !output.json {
                let apps = try await administration.list(.showStatistics, "apps")
                let statistics = apps.first { $0["app_id"]?.string == appID } ?? JSONObject()
                let counts = statistics["devices"]?.object?.members ?? []
                record["devices"] = .string(
                    counts.filter { $0.value != 0 }.map { "\($0.value.text()) \($0.name)" }.joined(separator: ", "))
                for (name, value) in ProviderFigures.of(statistics) where !value.isNull { record[name] = value }
            }
            try output.show(record)
        }
    }

    struct Remove: AdministrationCommand {
        static let configuration = CommandConfiguration(
            abstract: "Remove an app that has no devices.",
            discussion: """
                  synheart-auth apps remove com.example.app
                """)
        @Argument(help: "The app id.") var appID: String
        @OptionGroup var options: AdministrationOptions

        func perform(_ administration: any Administration, _ output: OutputOptions) async throws {
            _ = try await administration.ask(.removeApp, ["app_id": appID])
            try output.done("removed \(appID)", JSONObject([("app_id", .string(appID)), ("removed", true)]))
        }
    }
}
