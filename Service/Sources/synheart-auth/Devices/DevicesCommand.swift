import ArgumentParser
import AuthServer
import AuthService
import StrictJSON

/// The commands for registered devices.
struct DevicesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "devices", abstract: "Look at registered devices, approve and revoke them.",
        discussion: """
              synheart-auth devices list --app com.example.app --status registered
              synheart-auth devices revoke --app com.example.app \\
                  7d0f6c1a-2b1e-4f6b-9c3d-0a1b2c3d4e5f

            Decisions take many devices with --from or --where. Each device is a change of its own, with its own audit event, saved \
            only if the device is still as it was selected. A rerun changes only what is left.

              synheart-auth devices revoke --app com.example.app --from ids --dry-run
              synheart-auth devices revoke --app com.example.app --from ids
            """,
        subcommands: [
            List.self, Show.self, Revoke.self, Approve.self, Reject.self, ForceRotation.self, LiftRotation.self,
            LowerScheme.self,
        ])

    /// The options that name the device of a command.
    struct Target: ParsableArguments {
        @Option(name: .customLong("app"), help: "The app id.") var app: String
        @Argument(help: "The device id.") var device: String

        var parameters: [String: String] { ["app_id": app, "device_id": device] }
    }

    struct List: AdministrationCommand {
        static let configuration = CommandConfiguration(
            abstract: "List devices, newest first.",
            discussion: """
                With --device or --status pending, devices of all apps of the credential are listed, unless --app names one.

                  synheart-auth devices list --app com.example.app --status pending
                  synheart-auth devices list --device 261e1e6db9703f6c
                  synheart-auth devices list --platform android --limit 1000 --json
                """)
        @Option(name: .customLong("app"), help: "Only of this app.") var app: String?
        @Option(help: "Only with this status: pending, registered, rejected, revoked, deregistered.")
        var status: String?
        @Option(help: "Only of this platform: ios, android.") var platform: String?
        @Option(help: "Only this device: its id, or the hash by which the log names it, 16 hexadecimal digits.")
        var device: String?
        @OptionGroup var page: LimitOptions
        @OptionGroup var options: AdministrationOptions

        func perform(_ administration: any Administration, _ output: OutputOptions) async throws {
            let devices = try await administration.list(
                .listDevices, "devices", limit: page.limit, cursor: ("cursor", "next_cursor"),
                query: [("app_id", app), ("status", status), ("platform", platform), AdminCall.device(device)])
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
                  synheart-auth devices revoke --app com.example.app \\
                      --where assurance.labels=root:1f2e3d4c --resume run --dry-run
                  synheart-auth devices revoke --app com.example.app \\
                      --where assurance.labels=root:1f2e3d4c --resume run
                """)
        static let decision = (route: AdminRoute.revokeDevice, name: "revoke", verb: "revoked")
        @OptionGroup var target: DecisionTarget
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
                  synheart-auth devices approve --app com.example.app \\
                      --where status=pending --where assurance.app=app-attest
                """)
        static let decision = (route: AdminRoute.approveDevice, name: "approve", verb: "approved")
        @OptionGroup var target: DecisionTarget
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
                  synheart-auth devices reject --app com.example.app --from ids
                """)
        static let decision = (route: AdminRoute.rejectDevice, name: "reject", verb: "rejected")
        @OptionGroup var target: DecisionTarget
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
                  synheart-auth devices force-rotation --app com.example.app \\
                      --where status=registered --where platform=ios --rate 10
                """)
        static let decision = (route: AdminRoute.forceRotation, name: "force-rotation", verb: "must rotate")
        @OptionGroup var target: DecisionTarget
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
        static let decision = (route: AdminRoute.liftRotation, name: "lift-rotation", verb: "need not rotate")
        @OptionGroup var target: DecisionTarget
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
        static let decision = (
            route: AdminRoute.lowerScheme, name: "lower-scheme", verb: "may sign under the older scheme"
        )
        @OptionGroup var target: DecisionTarget
        @Option(help: "The scheme: 1 or 2.") var scheme: Int64
        @OptionGroup var options: AdministrationOptions

        var body: JSONObject { JSONObject([("scheme", .integer(scheme))]) }
    }
}

/// A command that makes a decision, such as `revoke`, about one device or about many.
protocol Decision: AdministrationCommand {
    /// The route for one device, the decision's name in the route for many devices, and the word for the output, such as "revoked".
    static var decision: (route: AdminRoute, name: String, verb: String) { get }
    var target: DecisionTarget { get }
    var body: JSONObject { get }
}

extension Decision {
    var body: JSONObject { JSONObject() }

    func perform(_ administration: any Administration, _ output: OutputOptions) async throws {
        guard let id = target.device else {
            return try await FleetRun(administration, target).perform(
                Self.decision.name, with: body, at: SystemClock().now, output)
        }
        let device = try await administration.ask(Self.decision.route, target.parameters(of: id), body: body)
        try output.done("\(id) \(Self.decision.verb)", device)
    }
}
