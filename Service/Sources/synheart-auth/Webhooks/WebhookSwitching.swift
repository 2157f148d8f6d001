import ArgumentParser
import AuthServer
import StrictJSON

extension WebhooksCommand {
    struct Enable: AdministrationCommand {
        static let configuration = CommandConfiguration(
            abstract: "Deliver events to a webhook again, such as after a restore.",
            discussion: """
                It gets the events since its place in the log. `webhooks resend` moves that place.

                  synheart-auth webhooks enable 0f554c442940d5d2
                """)
        @Argument(help: "The webhook's id, as in the list.") var id: String
        @OptionGroup var options: AdministrationOptions

        func perform(_ administration: any Administration, _ output: OutputOptions) async throws {
            try output.done("enabled \(id)", try await WebhooksCommand.set(id, isEnabled: true, administration))
        }
    }

    struct Disable: AdministrationCommand {
        static let configuration = CommandConfiguration(
            abstract: "Deliver nothing to a webhook until it is enabled.",
            discussion: """
                It keeps its place in the log.

                  synheart-auth webhooks disable 0f554c442940d5d2
                """)
        @Argument(help: "The webhook's id, as in the list.") var id: String
        @OptionGroup var options: AdministrationOptions

        func perform(_ administration: any Administration, _ output: OutputOptions) async throws {
            try output.done("disabled \(id)", try await WebhooksCommand.set(id, isEnabled: false, administration))
        }
    }

    /// Changes whether events are delivered, and no other setting. The service refuses this if the webhook was changed meanwhile.
    private static func set(
        _ id: String, isEnabled: Bool, _ administration: any Administration
    ) async throws -> JSONObject {
        let (webhook, version) = try await administration.read(.showWebhook, ["webhook_id": id])
        var settings = JSONObject([("url", webhook["url"] ?? .null), ("enabled", .bool(isEnabled))])
        if webhook["all_apps"] == true {
            settings["all_apps"] = true
        } else {
            settings["apps"] = webhook["apps"] ?? .null
        }
        if let events = webhook["events"], !events.isNull { settings["events"] = events }
        var change = AdminCall(.changeWebhook, ["webhook_id": id], body: settings)
        change.ifMatch = version
        return try await administration.ask(change)
    }
}
