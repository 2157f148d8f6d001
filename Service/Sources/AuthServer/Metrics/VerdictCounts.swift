internal import AuthContract
internal import NIOConcurrencyHelpers

/// Verdicts by app: the busiest apps by name, all others together as `other`.
///
/// Every series only ever grows. What an app counted as one of the others stays with them when it becomes one of the
/// busiest, and an app that no longer is keeps its own count for when it is again.
final class VerdictCounts: Sendable {
    /// Apps that have series of their own.
    static let namedApps = 200
    /// Apps that are told apart at all; the verdicts on any further app count as `other`.
    private static let knownApps = 20_000
    static let other = "other"

    private struct App: Sendable {
        /// All its verdicts, by which the busiest are found.
        var total = 0
        var isNamed = false
        /// Those that were counted under its name.
        var byVerdict: [String: Int] = [:]
    }

    private struct State: Sendable {
        var apps: [AppID: App] = [:]
        var named: Set<AppID> = []
        var others: [String: Int] = [:]
        /// No named app has fewer verdicts than this: it need not be looked for.
        var fewest = 0

        /// Gives an app a name where there is room, or where it has become busier than one that has a name.
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

    private let state = NIOLockedValueBox(State())

    /// - Parameter id: nil where the request names no app of its credential.
    func count(_ verdict: String, of id: AppID?) {
        state.withLockedValue { state in
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

    /// Every series: of a named app all of `verdicts`, with 0 where there were none, and what else was counted.
    func series(of verdicts: [String]) -> [(labels: MetricsRegistry.Labels, value: Double)] {
        let (named, others) = state.withLockedValue { state in
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
