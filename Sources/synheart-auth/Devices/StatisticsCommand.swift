import ArgumentParser
import AuthServer
import StrictJSON

/// How many devices there are.
struct StatisticsCommand: AdministrationCommand {
    static let configuration = CommandConfiguration(
        commandName: "statistics", abstract: "Count devices by app and status.")
    @OptionGroup var options: AdministrationOptions

    func perform(_ administration: any Administration, _ output: OutputOptions) async throws {
        let statistics = try await administration.ask(.showStatistics)
        guard !output.json else { return output.show(statistics) }
        let apps = (statistics["apps"]?.array ?? []).compactMap(\.object)
        let rows = apps.map { app in
            JSONObject(
                [("app_id", app["app_id"] ?? .null)]
                    + (app["devices"]?.object ?? JSONObject()).members.map { ($0.name, $0.value) })
        }
        output.list(
            rows, columns: ["app_id", "pending", "registered", "rejected", "revoked", "deregistered"],
            empty: "no apps")
    }
}
