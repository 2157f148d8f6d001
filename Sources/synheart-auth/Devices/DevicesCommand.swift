import ArgumentParser
import AuthContract
import AuthServer
import AuthService
import Foundation
import StrictJSON

/// Registered devices.
struct DevicesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "devices", abstract: "Look at registered devices, approve and revoke them.",
        discussion: """
              synheart-auth devices list --app com.example.app --status registered
              synheart-auth devices revoke --app com.example.app 7d0f…
            """,
        subcommands: [List.self, Show.self, Revoke.self, Approve.self, Reject.self, ForceRotation.self])

    /// Which device a command is about.
    struct Target: ParsableArguments {
        @Option(name: .customLong("app"), help: "The app id.") var app: String
        @Argument(help: "The device id.") var device: String

        func parsed() throws -> (app: AppID, device: DeviceID) { (try AppID(app), try DeviceID(device)) }
    }

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "List devices, newest first.")
        @Option(name: .customLong("app"), help: "Only of this app.") var app: String?
        @Option(help: "Only with this status: pending, registered, rejected, revoked, deregistered.") var status:
            String?
        @Option(help: "Only of this platform: ios, android.") var platform: String?
        @Option(help: "At most so many.") var limit = 50
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var output: OutputOptions

        func run() async throws {
            try await reporting {
                var query = DeviceQuery(limit: min(max(limit, 1), 1000))
                query.appID = try app.map { try AppID($0) }
                query.status = try status.map { try choice($0, DeviceStatus.self, "--status") }
                query.platform = try platform.map { try choice($0, Platform.self, "--platform") }
                let devices = try await database.administration().administration.list(query)
                output.list(
                    devices.map(\.summary),
                    columns: ["device_id", "app_id", "platform", "status", "registered_at", "last_seen"],
                    empty: "no devices")
            }
        }

        private func choice<Choice: RawRepresentable<String> & CaseIterable>(
            _ text: String, _ type: Choice.Type, _ option: String
        ) throws -> Choice {
            guard let choice = Choice(rawValue: text) else {
                let words = Choice.allCases.map(\.rawValue).joined(separator: ", ")
                throw ValidationError("\(option) is one of \(words)")
            }
            return choice
        }
    }

    struct Show: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Show everything the service knows of a device.")
        @OptionGroup var target: Target
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var output: OutputOptions

        func run() async throws {
            try await reporting {
                let (app, id) = try target.parsed()
                let service = try database.administration()
                guard let device = try await service.administration.show(id, of: app) else {
                    throw CommandFailure(.refused, "\(app) has no device \(id)")
                }
                output.show(device.administrationJSON(try await service.apps.record(app)))
            }
        }
    }

    struct Revoke: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Revoke a device, for ever.",
            discussion:
                "Revoking ends an identity, not a phone: it may register a new key unless the app asks for approval.")
        @OptionGroup var target: Target
        @Option(help: "Why; kept in the audit log.") var reason: String?
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var output: OutputOptions

        func run() async throws {
            try await decide(target, database, output, "revoked", "it is not there, or revoked or deregistered already")
            {
                try await $0.revoke($1, of: $2, reason: reason, actor: "cli")
            }
        }
    }

    struct Approve: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Let a pending device in.")
        @OptionGroup var target: Target
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var output: OutputOptions

        func run() async throws {
            try await decide(target, database, output, "approved", "it is not pending") {
                try await $0.approve($1, of: $2, actor: "cli")
            }
        }
    }

    struct Reject: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Turn a pending device away.")
        @OptionGroup var target: Target
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var output: OutputOptions

        func run() async throws {
            try await decide(target, database, output, "rejected", "it is not pending") {
                try await $0.reject($1, of: $2, actor: "cli")
            }
        }
    }

    struct ForceRotation: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Make a device rotate its key.",
            discussion: "Its answers say so from now on; past the time given it can do nothing else.")
        @OptionGroup var target: Target
        @Option(name: .customLong("within"), help: "Seconds from now.") var within: Int64 = 86_400
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var output: OutputOptions

        func run() async throws {
            try await decide(target, database, output, "must rotate", "it is not there") {
                try await $0.forceRotation($1, of: $2, by: SystemClock().now + within, actor: "cli")
            }
        }
    }
}

extension AsyncParsableCommand {
    /// Carries out one decision about one device and says whether it took effect.
    fileprivate func decide(
        _ target: DevicesCommand.Target, _ database: DatabaseOptions, _ output: OutputOptions, _ verb: String,
        _ otherwise: String, _ decision: (DeviceAdministration, DeviceID, AppID) async throws -> Bool
    ) async throws {
        try await reporting {
            let (app, id) = try target.parsed()
            let administration = try database.administration().administration
            guard try await decision(administration, id, app), let device = try await administration.show(id, of: app)
            else { throw CommandFailure(.refused, "\(id) of \(app) was not changed: \(otherwise)") }
            output.done("\(id) \(verb)", device.summary)
        }
    }
}

extension DeviceRecord {
    /// What a list shows.
    fileprivate var summary: JSONObject {
        JSONObject([
            ("device_id", .string(deviceID.text)), ("app_id", .string(appID.text)),
            ("platform", .string(platform.rawValue)), ("status", .string(status.rawValue)),
            ("registered_at", .string(registeredAt.iso8601)),
            ("key_rotated_at", keyRotatedAt.map { .string($0.iso8601) } ?? .null),
            ("last_seen", lastSeen.map { .string($0.iso8601) } ?? .null),
        ])
    }
}
