import ArgumentParser
import AuthServer
import StrictJSON

/// The numbers of devices and of requests to providers.
struct StatisticsCommand: AdministrationCommand {
    static let configuration = CommandConfiguration(
        commandName: "statistics", abstract: "Count devices by app and status.",
        discussion: """
            With --url also the running service's Play Integrity requests of today (Google grants 10,000 a day by default) and \
            the age of its list of revoked Android keys.

              synheart-auth statistics
              synheart-auth statistics --url http://127.0.0.1:9464 --json
            """)
    @OptionGroup var options: AdministrationOptions

    func perform(_ administration: any Administration, _ output: OutputOptions) async throws {
        let statistics = try await administration.ask(.showStatistics)
        guard !output.json else { return try output.show(statistics) }
        let apps = (statistics["apps"]?.array ?? []).compactMap(\.object)
        let rows = apps.map { app in
            JSONObject(
                [("app_id", app["app_id"] ?? .null)]
                    + (app["devices"]?.object ?? JSONObject()).members.map { ($0.name, $0.value) }
                    + ProviderFigures.of(app))
        }
        try output.list(
            rows,
            columns: ["app_id", "pending", "registered", "rejected", "revoked", "deregistered"] + ProviderFigures.names,
            empty: "no apps")
    }
}
