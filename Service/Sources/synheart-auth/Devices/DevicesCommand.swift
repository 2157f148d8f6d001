import ArgumentParser
import AuthServer
import StrictJSON

/// Registered devices.
struct DevicesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "devices", abstract: "Look at registered devices, approve and revoke them.",
        discussion: """
              synheart-auth devices list --app com.example.app --status registered
              synheart-auth devices revoke --app com.example.app \\
                  7d0f6c1a-2b1e-4f6b-9c3d-0a1b2c3d4e5f
            """,
        subcommands: [
            List.self, Show.self, Revoke.self, Approve.self, Reject.self, ForceRotation.self, LiftRotation.self,
            LowerScheme.self,
        ])

    /// The device of a command.
    struct Target: ParsableArguments {
        @Option(name: .customLong("app"), help: "The app id.") var app: String
        @Argument(help: "The device id.") var device: String

        var parameters: [String: String] { ["app_id": app, "device_id": device] }
    }

    struct List: AdministrationCommand {
        static let configuration = CommandConfiguration(
            abstract: "List devices, newest first.",
            discussion: """
                  synheart-auth devices list --app com.example.app --status pending
                  synheart-auth devices list --platform android --limit 1000 --json
                """)
        @Option(name: .customLong("app"), help: "Only of this app.") var app: String?
        @Option(help: "Only with this status: pending, registered, rejected, revoked, deregistered.")
        var status: String?
        @Option(help: "Only of this platform: ios, android.") var platform: String?
        @OptionGroup var page: LimitOptions
        @OptionGroup var options: AdministrationOptions

        func perform(_ administration: any Administration, _ output: OutputOptions) async throws {
            let devices = try await administration.list(
                .listDevices, "devices", limit: page.limit, cursor: ("cursor", "next_cursor"),
                query: [("app_id", app), ("status", status), ("platform", platform)])
            try output.list(
                devices, columns: ["device_id", "app_id", "platform", "status", "registered_at", "last_seen"],
                empty: "no devices")
        }
    }

    struct Show: AdministrationCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show everything the service knows of a device.",
            discussion: """
                  synheart-auth devices show --app com.example.app \\
                      7d0f6c1a-2b1e-4f6b-9c3d-0a1b2c3d4e5f
                """)
        @OptionGroup var target: Target
        @OptionGroup var options: AdministrationOptions

        func perform(_ administration: any Administration, _ output: OutputOptions) async throws {
            try output.show(try await administration.ask(.showDevice, target.parameters))
        }
    }

    struct Revoke: Decision {
        static let configuration = CommandConfiguration(
            abstract: "Revoke a device for good.",
            discussion: """
                Revocation ends an identity, not a phone: the phone may register a new key unless the app asks for approval. \
                Revocation is permanent.

                  synheart-auth devices revoke --app com.example.app \\
                      7d0f6c1a-2b1e-4f6b-9c3d-0a1b2c3d4e5f --reason "lost phone"
                """)
        static let decision = (route: AdminRoute.revokeDevice, verb: "revoked")
        @OptionGroup var target: Target
        @Option(help: "Why; kept in the audit log.") var reason: String?
        @OptionGroup var options: AdministrationOptions

        var body: JSONObject { JSONObject(reason.map { [("reason", .string($0))] } ?? []) }
    }

    struct Approve: Decision {
        static let configuration = CommandConfiguration(
            abstract: "Let a pending device in.",
            discussion: """
                A device whose proof was never verified, because its provider did not answer, needs --unproven. Its assurance is then \
                none, with the label "unproven", and the audit log says so.

                  synheart-auth devices approve --app com.example.app \\
                      7d0f6c1a-2b1e-4f6b-9c3d-0a1b2c3d4e5f
                """)
        static let decision = (route: AdminRoute.approveDevice, verb: "approved")
        @OptionGroup var target: Target
        @Flag(help: "Also where its proof never verified.") var unproven = false
        @OptionGroup var options: AdministrationOptions

        var body: JSONObject { JSONObject(unproven ? [("unproven", true)] : []) }
    }

    struct Reject: Decision {
        static let configuration = CommandConfiguration(
            abstract: "Turn a pending device away.",
            discussion: """
                  synheart-auth devices reject --app com.example.app \\
                      7d0f6c1a-2b1e-4f6b-9c3d-0a1b2c3d4e5f
                """)
        static let decision = (route: AdminRoute.rejectDevice, verb: "rejected")
        @OptionGroup var target: Target
        @OptionGroup var options: AdministrationOptions
    }

    struct ForceRotation: Decision {
        static let configuration = CommandConfiguration(
            abstract: "Make a device rotate its key.",
            discussion: """
                Responses to the device demand it from now on. After the given time the device can do nothing else. With --reason \
                compromise it can then not even rotate, and must register again.

                  synheart-auth devices force-rotation --app com.example.app \\
                      7d0f6c1a-2b1e-4f6b-9c3d-0a1b2c3d4e5f --within 3600
                """)
        static let decision = (route: AdminRoute.forceRotation, verb: "must rotate")
        @OptionGroup var target: Target
        @Option(help: "Seconds from now.") var within: Int64 = 86_400
        @Option(help: "Why: scheduled or compromise.") var reason = "scheduled"
        @OptionGroup var options: AdministrationOptions

        var body: JSONObject { JSONObject([("within_seconds", .integer(within)), ("reason", .string(reason))]) }
    }

    struct LiftRotation: Decision {
        static let configuration = CommandConfiguration(
            abstract: "Take back a demand to rotate.",
            discussion: """
                A demand of force-rotation stays until the device rotates, and one for a compromise is never replaced by a weaker \
                one. This lifts it: a key that it had ended is accepted again.

                  synheart-auth devices lift-rotation --app com.example.app \\
                      7d0f6c1a-2b1e-4f6b-9c3d-0a1b2c3d4e5f
                """)
        static let decision = (route: AdminRoute.liftRotation, verb: "need not rotate")
        @OptionGroup var target: Target
        @OptionGroup var options: AdministrationOptions
    }

    struct LowerScheme: Decision {
        static let configuration = CommandConfiguration(
            abstract: "Let a device sign under an older scheme again.",
            discussion: """
                A device needs this after its app was downgraded to a version without the newer scheme.

                  synheart-auth devices lower-scheme --app com.example.app \\
                      7d0f6c1a-2b1e-4f6b-9c3d-0a1b2c3d4e5f --scheme 1
                """)
        static let decision = (route: AdminRoute.lowerScheme, verb: "may sign under the older scheme")
        @OptionGroup var target: Target
        @Option(help: "The scheme: 1 or 2.") var scheme: Int64
        @OptionGroup var options: AdministrationOptions

        var body: JSONObject { JSONObject([("scheme", .integer(scheme))]) }
    }
}

/// One decision about one device.
protocol Decision: AdministrationCommand {
    static var decision: (route: AdminRoute, verb: String) { get }
    var target: DevicesCommand.Target { get }
    var body: JSONObject { get }
}

extension Decision {
    var body: JSONObject { JSONObject() }

    func perform(_ administration: any Administration, _ output: OutputOptions) async throws {
        let device = try await administration.ask(Self.decision.route, target.parameters, body: body)
        try output.done("\(target.device) \(Self.decision.verb)", device)
    }
}
