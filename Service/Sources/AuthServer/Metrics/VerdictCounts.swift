internal import AuthContract
internal import Bytes

/// Verdicts by app. The busiest apps have their own series, and all others share `other`.
///
/// Every series only grows. When an app becomes one of the busiest, its verdicts so far stay in `other`. When it is no longer
/// one of them, the counts of its own series are kept, and continue if it becomes one of them again.
final class VerdictCounts: Sendable {
    /// The largest number of apps with their own series.
    static let namedApps = 200
    /// The largest number of apps whose verdicts are totaled to find the busiest apps. Further apps never get their own series.
    private static let knownApps = 20_000
    static let other = "other"

    private struct App: Sendable {
        /// All verdicts of the app. The totals decide which apps are the busiest.
        var total = 0
        var isNamed = false
        /// The verdicts in the app's own series.
        var byVerdict: [String: Int] = [:]
    }

    private struct State: Sendable {
        var apps: [AppID: App] = [:]
        var named: Set<AppID> = []
        var others: [String: Int] = [:]
        /// No named app has fewer verdicts than this. An app that does not exceed it needs no search for the quietest named app.
        var fewest = 0

        /// Gives an app its own series if there is room, or if the app has become busier than one that has its own series.
        mutating func considerNaming(_ id: AppID, _ app: inout App) {
            if named.count >= VerdictCounts.namedApps {
                guard app.total > fewest else { return }
                let quietest = named.min { apps[$0]?.total ?? 0 < apps[$1]?.total ?? 0 }
                guard let quietest, let least = apps[quietest]?.total else { return }
                fewest = least
                guard app.total > least else { return }
                named.remove(quietest)
                apps[quietest]?.isNamed = false
            }
            named.insert(id)
            app.isNamed = true
        }
    }

    private let state = Locked(State())

    /// - Parameter id: the app; nil if the request names no app, or one that the caller's credential does not include.
    func count(_ verdict: String, of id: AppID?) {
        state.withLock { state in
            guard let id, var app = state.apps[id] ?? (state.apps.count < Self.knownApps ? App() : nil) else {
                state.others[verdict, default: 0] += 1
                return
            }
            app.total += 1
            if !app.isNamed { state.considerNaming(id, &app) }
            if app.isNamed {
                app.byVerdict[verdict, default: 0] += 1
            } else {
                state.others[verdict, default: 0] += 1
            }
            state.apps[id] = app
        }
    }

    /// Every series. Each named app, and `other`, has all of `verdicts`, including those with 0, and any other verdict that was
    /// counted.
    func series(of verdicts: [String]) -> [(labels: MetricsRegistry.Labels, value: Double)] {
        let (named, others) = state.withLock { state in
            (state.named.map { ($0.text, state.apps[$0]?.byVerdict ?? [:]) }, state.others)
        }
        let zeros = Dictionary(uniqueKeysWithValues: verdicts.map { ($0, 0) })
        return (named + [(Self.other, others)]).flatMap { app, counts in
            zeros.merging(counts) { $1 }.map { verdict, count in
                ([("app", app), ("verdict", verdict)], Double(count))
            }
        }
    }
}
