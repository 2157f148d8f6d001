import ArgumentParser
import AuthContract
import AuthService
import Foundation
import StrictJSON

/// Provisioned apps.
struct AppsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "apps", abstract: "Provision apps.",
        discussion: """
            A change made beside a running service is seen by it within a second.

              synheart-auth apps example > app.json
              synheart-auth apps add --file app.json
              synheart-auth apps list --json
            """,
        subcommands: [Add.self, Change.self, List.self, Show.self, Remove.self, Example.self])

    /// Reads an app record, with an error that names the member.
    static func record(in file: String) throws -> AppRecord {
        do {
            return try AppRecord(JSONFields(try InputFile.json(file)))
        } catch let error as CommandFailure {
            throw error
        } catch {
            throw CommandFailure(.refused, "\(file): \(error)")
        }
    }

    struct Add: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Add an app from its record.")
        @Option(help: "The app record, JSON; - for standard input.") var file: String
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var output: OutputOptions

        func run() async throws {
            try await reporting {
                let record = try AppsCommand.record(in: file)
                guard try await database.open().apps.add(record, actor: "cli") else {
                    throw CommandFailure(.refused, "\(record.appID) exists already: use `apps change`")
                }
                output.done("added \(record.appID)", record.json(secrets: .masked))
            }
        }
    }

    struct Change: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Replace an app's record.")
        @Option(help: "The app record, JSON; - for standard input.") var file: String
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var output: OutputOptions

        func run() async throws {
            try await reporting {
                let record = try AppsCommand.record(in: file)
                let changed: Bool
                do {
                    changed = try await database.administration().apps.change(record, actor: "cli")
                } catch let error as ContractError {
                    throw CommandFailure(.refused, error.description)
                }
                guard changed else {
                    throw CommandFailure(.refused, "there is no app \(record.appID), or it was changed meanwhile")
                }
                output.done("changed \(record.appID)", record.json(secrets: .masked))
            }
        }
    }

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "List apps.")
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var output: OutputOptions

        func run() async throws {
            try await reporting {
                let records = try await database.administration().apps.records()
                output.list(
                    records.map { record in
                        var object = record.json(secrets: .masked)
                        object["platforms"] = .array(
                            [(record.ios != nil, "ios"), (record.android != nil, "android")]
                                .filter(\.0).map { .string($0.1) })
                        return object
                    }, columns: ["app_id", "name", "build_channel", "platforms", "mode", "enabled"],
                    empty: "no apps: add one with `apps add --file`")
            }
        }
    }

    struct Show: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Show an app's record; secrets are masked.")
        @Argument(help: "The app id.") var appID: String
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var output: OutputOptions

        func run() async throws {
            try await reporting {
                let id = try AppID(appID)
                let service = try database.administration()
                guard let record = try await service.apps.record(id) else {
                    throw CommandFailure(.refused, "there is no app \(id)")
                }
                var object = record.json(secrets: .masked)
                if !output.json {
                    let counts = try await service.administration.count(of: id)
                    object["devices"] = .string(
                        DeviceStatus.allCases.compactMap { status in
                            counts[status].map { "\($0) \(status.rawValue)" }
                        }.joined(separator: ", "))
                }
                output.show(object)
            }
        }
    }

    struct Remove: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Remove an app that has no devices.")
        @Argument(help: "The app id.") var appID: String
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var output: OutputOptions

        func run() async throws {
            try await reporting {
                let id = try AppID(appID)
                guard try await database.administration().apps.remove(id, actor: "cli") else {
                    throw CommandFailure(.refused, "there is no app \(id), or it has devices: disable it instead")
                }
                output.done("removed \(id)", JSONObject([("app_id", .string(id.text)), ("removed", true)]))
            }
        }
    }
}
