import ArgumentParser
import AuthServer
import StrictJSON

/// The commands for receivers of audit events.
struct WebhooksCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "webhooks", abstract: "Add, list, switch and remove receivers of audit events.",
        discussion: """
            The service posts each event to them, signed by Standard Webhooks, at least once, and in order for one device. A \
            failed delivery is tried again for 24 hours.

              synheart-auth webhooks add https://hooks.example.com/ --event device.revoked
              synheart-auth webhooks list
              synheart-auth webhooks disable 0f554c442940d5d2
              synheart-auth webhooks deliveries 0f554c442940d5d2
              synheart-auth webhooks resend 0f554c442940d5d2 --after 4711
            """,
        subcommands: [
            List.self, Add.self, Enable.self, Disable.self, Remove.self, Deliveries.self, Resend.self,
        ])

    struct List: AdministrationCommand {
        static let configuration = CommandConfiguration(
            abstract: "List webhooks, with their place in the audit log and their last failure.",
            discussion: """
                  synheart-auth webhooks list
                """)
        @OptionGroup var options: AdministrationOptions

        func perform(_ administration: any Administration, _ output: OutputOptions) async throws {
            try output.list(
                try await administration.list(.listWebhooks, "webhooks"),
                columns: ["id", "url", "apps", "events", "enabled", "position", "failing_since", "failure"],
                empty: "no webhooks: add one with `webhooks add`")
        }
    }

    struct Add: AdministrationCommand {
        static let configuration = CommandConfiguration(
            abstract: "Add a webhook and show its secret, once.",
            discussion: """
                If the secret cannot be written, the webhook is removed at once.

                  synheart-auth webhooks add https://hooks.example.com/synheart
                  synheart-auth webhooks add https://hooks.example.com/synheart \\
                      --app com.example.app --event device.revoked --event device.key_rotated
                """)
        @Argument(help: "Where events are posted to: https, or http to this machine.") var url: String
        @Option(name: .customLong("app"), help: "An app whose events it gets; may be repeated. Default: all apps.")
        var apps: [String] = []
        @Option(name: .customLong("event"), help: "A code of events that it gets; may be repeated. Default: all.")
        var events: [String] = []
        @OptionGroup var options: AdministrationOptions

        func perform(_ administration: any Administration, _ output: OutputOptions) async throws {
            var members = JSONObject([
                ("url", .string(url)),
                apps.isEmpty ? ("all_apps", true) : ("apps", .array(apps.map { .string($0) })),
            ])
            if !events.isEmpty { members["events"] = .array(events.map { .string($0) }) }
            let added = try await administration.askForSecret(
                .addWebhook, body: members, ofA: "webhook", listedBy: "webhooks list")
            do throws(CommandFailure) {
                try output.show(added)
                try StandardOutput.synchronize()
            } catch {
                try await withdraw(added["id"]?.string ?? "", from: administration, because: error)
            }
        }

        /// Removes a webhook whose secret could not be printed: its receiver could verify nothing.
        private func withdraw(
            _ id: String, from administration: any Administration, because loss: CommandFailure
        ) async throws {
            do {
                _ = try await administration.ask(.removeWebhook, ["webhook_id": id])
            } catch {
                throw CommandFailure(
                    loss.kind,
                    "\(loss.description); webhook \(id) could not be removed (\(error)): remove it with "
                        + "`webhooks remove \(id)`")
            }
            throw CommandFailure(
                loss.kind, "\(loss.description); webhook \(id) is removed, because its secret was not printed")
        }
    }

    struct Remove: AdministrationCommand {
        static let configuration = CommandConfiguration(
            abstract: "Remove a webhook. Nothing more is delivered to it.",
            discussion: """
                  synheart-auth webhooks remove 0f554c442940d5d2
                """)
        @Argument(help: "The webhook's id, as in the list.") var id: String
        @OptionGroup var options: AdministrationOptions

        func perform(_ administration: any Administration, _ output: OutputOptions) async throws {
            _ = try await administration.ask(.removeWebhook, ["webhook_id": id])
            try output.done("removed \(id)", JSONObject([("id", .string(id)), ("removed", true)]))
        }
    }

    struct Deliveries: AdministrationCommand {
        static let configuration = CommandConfiguration(
            abstract: "List the last deliveries of a webhook, newest first, with their answers.",
            discussion: """
                Each attempt to deliver an event is one. The service keeps the last 100 of a webhook: of an answer the status, \
                and nothing that the receiver sent.

                  synheart-auth webhooks deliveries 0f554c442940d5d2
                  synheart-auth webhooks deliveries 0f554c442940d5d2 --json
                """)
        @Argument(help: "The webhook's id, as in the list.") var id: String
        @OptionGroup var options: AdministrationOptions

        func perform(_ administration: any Administration, _ output: OutputOptions) async throws {
            let answer = try await administration.ask(.listDeliveries, ["webhook_id": id])
            try output.list(
                (answer["deliveries"]?.array ?? []).compactMap(\.object),
                columns: ["at", "sequence", "attempt", "status", "took_milliseconds", "failure"],
                empty: "nothing was delivered yet")
        }
    }

    struct Resend: AdministrationCommand {
        static let configuration = CommandConfiguration(
            abstract: "Deliver again from an event on.",
            discussion: """
                Deliveries have the same ids as before. A receiver that kept the last number that it saw misses nothing.

                  synheart-auth webhooks resend 0f554c442940d5d2 --after 4711
                """)
        @Argument(help: "The webhook's id, as in the list.") var id: String
        @Option(help: "The number of the last event that is not delivered again; 0: the log's oldest is the first.")
        var after: Int64
        @OptionGroup var options: AdministrationOptions

        func perform(_ administration: any Administration, _ output: OutputOptions) async throws {
            let webhook = try await administration.ask(
                .resendWebhook, ["webhook_id": id], body: JSONObject([("after", .integer(after))]))
            try output.done("delivers again after event \(after)", webhook)
        }
    }
}
