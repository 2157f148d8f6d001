import StrictJSON

/// The fields about Google in an app's statistics: today's Play Integrity requests, and the list of revoked keys.
enum ProviderFigures {
    static let names = ["play_integrity_today", "revocation_list"]

    /// Both fields, with their names. A field is null without a running service, or if the service has no figures for it.
    static func of(_ app: JSONObject) -> [(String, JSONValue)] {
        Array(zip(names, [usage(app["play_integrity"]), list(app["revocation_list"])]))
    }

    private static func usage(_ value: JSONValue?) -> JSONValue {
        let days = (value?.array ?? []).compactMap(\.object)
        // Days are ISO 8601, so `max` finds the latest day with requests. The requests of all packages on that day are summed.
        guard let today = days.compactMap({ $0["day"]?.string }).max() else { return .null }
        let ofToday = days.filter { $0["day"]?.string == today }
        func sum(_ name: String) -> Int64 { ofToday.reduce(0) { $0 + ($1[name]?.integer ?? 0) } }
        let refused = sum("quota_refusals")
        return .string("\(sum("requests")) requests" + (refused == 0 ? "" : ", \(refused) refused for quota"))
    }

    private static func list(_ value: JSONValue?) -> JSONValue {
        guard let list = value?.object else { return .null }
        guard let age = list["age_seconds"]?.integer, let entries = list["entries"]?.integer else {
            return .string("never loaded: \(list["failure"]?.string ?? "no reason given")")
        }
        let state = list["usable"]?.bool == true ? "" : ", too old to be used"
        return .string("\(entries) keys, \(age) s old\(state)")
    }
}
