internal import AuthServer
internal import StrictJSON

/// The verdicts of the last hour, summed for the first page.
struct Verdicts: Sendable {
    /// The outcome of a request.
    enum Outcome: Sendable {
        /// A verified request, or a registration that was answered with a device status, even with `rejected`.
        case accepted
        /// A request that the rules refuse.
        case refused
        /// A request that passed because the app is in mode `observe`. Mode `enforce` would have refused it.
        case observed
        /// A request that the service or a provider could not judge.
        case failed

        /// - Parameter code: the `code` of a series in the admin API's answer to a history query.
        init(_ code: String) {
            if code.hasPrefix(Self.observedPrefix) {
                self = .observed
            } else if ["SERVICE_UNAVAILABLE", "INTERNAL_ERROR", "PROVIDER_UNAVAILABLE"].contains(code) {
                self = .failed
            } else {
                // The codes of refusals are in capitals.
                self =
                    code.utf8.first.map { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) } ?? false
                    ? .refused : .accepted
            }
        }

        static let observedPrefix = "observed_"
    }

    /// The sums of one app.
    struct App: Sendable {
        let id: String
        var sums: [Outcome: Int64] = [:]
        /// The counts of the codes whose outcome is not `accepted`.
        var codes: [String: Int64] = [:]

        func sum(_ outcome: Outcome) -> Int64 { sums[outcome] ?? 0 }
        var total: Int64 { sums.values.reduce(0, +) }
        /// The most frequent code with an outcome; nil: `codes` has no code with this outcome.
        func mostFrequent(_ outcome: Outcome) -> String? {
            codes.filter { Outcome($0.key) == outcome }.max { ($0.value, $1.key) < ($1.value, $0.key) }?.key
        }
    }

    private(set) var apps: [App] = []

    /// - Parameter history: the admin API's answer to a history query, grouped by app and code.
    init(_ history: JSONValue) {
        var byID: [String: App] = [:]
        for series in history["series"]?.elements ?? [] {
            let id = series["app_id"]?.string ?? ""
            let code = series["code"]?.string ?? ""
            let total = series["total"]?.integer ?? 0
            let outcome = Outcome(code)
            byID[id, default: App(id: id)].sums[outcome, default: 0] += total
            if outcome != .accepted { byID[id]?.codes[code, default: 0] += total }
        }
        apps = byID.values.sorted { ($1.total, $0.id) < ($0.total, $1.id) }
    }

    /// The number of requests with an outcome in each time step, from a history answer that is grouped by code.
    static func counts(_ history: JSONValue, of outcome: Outcome) -> [Int64] {
        var sums: [Int64] = []
        for series in history["series"]?.elements ?? [] where Outcome(series["code"]?.string ?? "") == outcome {
            for (step, count) in (series["counts"]?.elements ?? []).enumerated() {
                if step >= sums.count { sums.append(0) }
                sums[step] += count.integer ?? 0
            }
        }
        return sums
    }
}
